#ifndef AUTOTUNE_CACHE_STORE_RECORD_H
#define AUTOTUNE_CACHE_STORE_RECORD_H

#include <array>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/store/identity.h"
#include "tuner/model/config.h"

namespace autotune {

/// Who checked a stored config, least trustworthy first. Rows that nobody checked are no records.
enum class Verified {
    elsewhere,  ///< by another machine: imported
    checked,    ///< against the reference, before it was timed
    verified,   ///< and again after timing, with other seeds and ragged problems
};

/// How long was searched, least first.
enum class SearchEffort { online, quick, normal, full };

std::string_view name_of(Verified verified) noexcept;
std::string_view name_of(SearchEffort effort) noexcept;
std::optional<Verified> verified_named(std::string_view name) noexcept;
std::optional<SearchEffort> search_effort_named(std::string_view name) noexcept;

/// What tells a run from all others.
using RunUuid = std::array<std::byte, 16>;
/// Of 32 hex digits; of any other text, the first of its SHA-256.
RunUuid run_uuid(std::string_view text);
std::string text_of(const RunUuid& uuid);
/// A new one, as text, for a run that begins at that time (seconds since 1970). Six of its bytes say in which 48 days
/// that was and are the same in most rows, so a file packs to three quarters of what it did; ten are random. Of n runs
/// in the world within these days two are one with a chance of n^2 / 2^81: 4 in ten million of a thousand million runs.
std::string new_run_uuid(std::int64_t started);
/// That of a run under a name that others gave it: of one run always the same, and with the days of its own, if any.
RunUuid uuid_of_imported(std::string_view text);
inline std::string_view bytes_of(const RunUuid& uuid) noexcept {
    return {reinterpret_cast<const char*>(uuid.data()), uuid.size()};
}

/// How a run was made, as far as rows need it.
struct RunInfo {
    std::string uuid{};  ///< text_of() a RunUuid, which the store makes of others; made by Store::begin_run when empty
    std::string strategy{};
    std::uint64_t seed = 0;
    std::string budget{};  ///< as the user gave it: "60s", "200"
    SearchEffort effort = SearchEffort::normal;
    std::string clock_policy = "free";  ///< "locked" where the clocks were
    int locked_mhz = 0;
    double power_w = 0, temperature_max = 0;
    std::string l2_policy{};       ///< "cold" or "warm"
    std::string method{};          ///< "graph" or "events"
    std::string reference{};       ///< "CPU, fp64"
    std::string tolerance{};       ///< JSON, empty: the op's own
    std::string host_hash{};       ///< SHA-256 of the host's name, never the name; made by Store::begin_run when empty
    std::string origin = "local";  ///< or "import", "import:ID"
    std::int64_t started = 0, ended = 0;  ///< seconds since 1970, UTC
};

/// A problem as rows of one database file name it: the form of its key and the numbers in it (KeyForm).
struct ProblemRef {
    std::int64_t form = 0;  ///< 0: of no problem
    std::string numbers{};
    std::span<const std::byte> blob() const noexcept { return std::as_bytes(std::span{numbers}); }
    friend auto operator<=>(const ProblemRef&, const ProblemRef&) = default;
};

/// Addresses one row of one database file; `text` is what `autotune query` prints with --json and takes back.
struct RecordKey {
    std::int64_t device = 0, source = 0;
    ProblemRef problem{};
    int nvrtc_major = 0, nvrtc_minor = 0, rank = 0;
    std::string text() const;  ///< "3-14-2x04f90010-13.0-0": the problem is of form 2, and its numbers are in hex
    static std::optional<RecordKey> parse(std::string_view text);
    friend auto operator<=>(const RecordKey&, const RecordKey&) = default;
};

/// A stored config with its provenance: rank 0 won its search, higher ranks came within 3 % of it.
struct Record {
    RecordKey id{};  ///< set by the store
    DeviceIdentity device{};
    TemplateIdentity source{};  ///< op, variant and hashes at the time of the search
    ProblemIdentity problem{};
    Environment environment{};
    RunInfo run{};
    Config config{};
    int rank = 0;

    double time_us = 0, low_us = 0, high_us = 0;  ///< median and its 95 % interval
    int samples = 0;
    std::optional<double> default_us{};  ///< what the default config took in the same search
    std::size_t evaluated = 0, space_size = 0;
    Verified verified = Verified::checked;
    double max_error = 0;         ///< largest error over its bound
    std::int64_t tuned_at = 0;    ///< seconds since 1970, UTC
    bool predicted = false;       ///< an emulator's model said so; never ranked with measurements
    std::string model_version{};  ///< of a prediction

    std::string stale{};  ///< why it may no longer be the best here; empty: fresh. Set by Store::records

    bool fresh() const noexcept { return stale.empty(); }
    bool local() const noexcept { return run.origin == "local"; }
};

/// The op files and the compiler of today, against which rows are stale.
struct Today {
    std::vector<TemplateIdentity> templates{};  ///< of every op that is asked about
    int nvrtc_major = 0, nvrtc_minor = 0;       ///< 0.0: no compiler, so its version makes no row stale
};

/// Why the record is stale: "measured with NVRTC 12.9", "softmax_rows.cu has changed"; empty: fresh.
std::string stale_reason(const TemplateIdentity& source, const Environment& environment, const Today& today);

/// What the order of records looks at. The texts belong to whoever made the key.
struct OrderKey {
    Verified verified = Verified::checked;
    bool fresh = true, locked_clocks = false;
    SearchEffort effort = SearchEffort::normal;
    bool local = true;
    int layer = 0;  ///< of its database among several, the nearest first
    std::int64_t time_ns = 0, tuned_at = 0;
    std::string_view config_hash{}, template_hash{};
    std::string_view run_uuid{};  ///< bytes_of() one
    int rank = 0;
    std::uint32_t crc = 0;
};

/// The total order of records of one problem on one device, best first: checked by whom, fresh, clocks locked, effort,
/// local, layer, time on a logarithmic grid of 2 % (a plain margin would not be transitive), newer, config. What is
/// left is decided by exact figures, so that no two different records are equal and merging is a maximum: commutative,
/// associative, idempotent.
std::strong_ordering compare(const OrderKey& a, const OrderKey& b);
/// What the order sees of a record, which outlives it.
struct RecordOrder {
    explicit RecordOrder(const Record& record);
    RecordOrder(const RecordOrder&) = delete;
    RecordOrder& operator=(const RecordOrder&) = delete;
    const std::string config_hash, template_hash;
    const RunUuid run_uuid;
    const OrderKey key;
};
std::strong_ordering compare(const Record& a, const Record& b);
inline bool better(const Record& a, const Record& b) { return compare(a, b) < 0; }

/// A time as the database keeps it.
inline std::int64_t nanoseconds(double microseconds) noexcept { return std::llround(microseconds * 1000.0); }

/// The parts of a record's checksum that it shares with others.
struct CrcParts {
    std::uint32_t device = 0, source = 0, problem = 0, config = 0, run = 0;
};
/// That of a run: of its uuid as text.
std::uint32_t crc_of(const RunUuid& uuid) noexcept;
/// numbers: NVRTC major and minor, rank, median, low and high in ns, samples, default in ns (-1: none), evaluated,
/// space size, effort, verified, tuned_at.
std::uint32_t crc_of_row(const CrcParts& parts, const std::array<std::int64_t, 13>& numbers, double max_error) noexcept;
/// The checksum of a record whose parts' are known.
std::uint32_t crc_of(const Record& record, const CrcParts& parts) noexcept;
/// CRC-32 (IEEE) of everything a record says, its device, template, problem and config by their hashes.
std::uint32_t crc_of(const Record& record);

}  // namespace autotune
#endif
