#ifndef AUTOTUNE_CACHE_SHARING_INTAKE_H
#define AUTOTUNE_CACHE_SHARING_INTAKE_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cache/sharing/judge.h"
#include "cache/store/contest.h"
#include "cache/store/database.h"
#include "cache/store/interning.h"
#include "cache/store/record.h"

namespace autotune {

/// Whose records they are.
enum class Trust {
    elsewhere,  ///< another's: what they say of checks counts for nothing, and they rank below what was measured here
    own,        ///< of this user's own machines: they keep what they say. They are judged all the same
};

/// A part that many rows share, judged once.
template <class T>
struct Part {
    T value{};
    std::string hash{};  ///< that of its row
    std::string refused{};
    std::uint32_t crc = 0;  ///< its share of a row's checksum
    // Whoever reads the file leaves this to whoever puts its rows, since they are two threads.
    std::int64_t id = 0;  ///< in the database it goes into; 0: not yet there
};

struct RunPart : Part<RunInfo> {
    Part<DeviceIdentity>* device = nullptr;
    Part<Environment>* environment = nullptr;
    // What it is in the database it goes into.
    bool settled = false;
    std::string refused_here{};
    RunUuid uuid{};
    std::uint32_t crc_here = 0;  ///< of its uuid
    SharedRow setting{};
};

/// A row of elsewhere. The parts belong to whoever reads the file.
struct IncomingRow {
    std::size_t number = 0;  ///< in its file, from 1: the row of a database, the line of a text
    Part<DeviceIdentity>* device = nullptr;
    Part<TemplateIdentity>* source = nullptr;
    Part<JudgedForm>* form = nullptr;
    Part<Config>* config = nullptr;
    RunPart* run = nullptr;
    std::string numbers{};          ///< of the problem's key, in its form
    std::string problem_refused{};  ///< why there is none
    RowFigures figures{};
    bool predicted = false;
    std::string model_version{};
    std::optional<std::uint32_t> crc{};  ///< what the file says; a prediction in a database has none
    std::uint32_t problem_crc = 0;       ///< of its key
};

/// Takes rows one after another; each may be taken to pieces.
using RowSink = std::function<void(IncomingRow& row)>;

/// The reason to refuse a row, by what its file says alone; empty: there is none.
std::string objection(const IncomingRow& row);

/// What became of rows that were not refused.
struct TakenRows {
    std::size_t added = 0, better = 0, not_better = 0;
};

/// Puts rows of elsewhere into a database, inside a transaction of the caller's, where they compete with what is there:
/// any order and any repetition end in the same rows.
class Intake {
public:
    Intake(Database& target, Trust trust, std::int64_t import_id)
        : db_{target}, trust_{trust}, import_id_{import_id}, contest_{target} {}

    /// Rows that nothing is to be said against, hundreds at once. Why some are refused all the same stands in `why`,
    /// one a row; empty: it is taken.
    void put(std::span<const IncomingRow> rows, std::vector<std::string>& why);
    const TakenRows& taken() const noexcept { return taken_; }
    /// Whether it put anything there, standing or not.
    bool kept_any() const noexcept { return kept_any_; }

private:
    ProblemRef settle(const IncomingRow& row);
    void settle_device(Part<DeviceIdentity>& device);
    void settle_runs(std::span<const IncomingRow> rows, std::span<const ProblemRef> problems);
    RunInfo told_here(RunPart& run) const;
    SharedRow setting_of(const Setting& setting, std::string_view device_fp, std::string_view environment_hash);
    bool differs(const RunPart& run, const RunInfo& told, std::int64_t device);
    RecordRow record_of(const IncomingRow& row, const ProblemRef& problem) const;
    PredictionRow prediction_of(const IncomingRow& row, const ProblemRef& problem) const;
    void count(Put put);

    Database& db_;
    Trust trust_;
    std::int64_t import_id_;
    Contest contest_;
    std::unordered_map<std::string, SharedRow> settings_{};  ///< by their hashes
    TakenRows taken_{};
    bool kept_any_ = false;
};

/// Takes out of a device's words what an import told, as far as any did: of those that are left the largest stand.
void forget_descriptions(Database& database, std::int64_t import_id);

}  // namespace autotune
#endif
