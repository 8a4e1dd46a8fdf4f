#ifndef AUTOTUNE_CACHE_STORE_STORE_H
#define AUTOTUNE_CACHE_STORE_STORE_H

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/store/record.h"
#include "tuner/model/outcome.h"

namespace autotune {

/// Of configs that must not be dispatched, the most that are kept of an op on a GPU: of more, those of the oldest
/// searches go, and then those that applications met, but none that was just met.
inline constexpr std::int64_t most_negatives = 10'000;

class Database;
using RunId = std::int64_t;

/// What one search is about.
struct RunStart {
    DeviceIdentity device{};
    Environment environment{};
    std::vector<TemplateIdentity> templates{};  ///< every variant of the op, as it stands today: templates_of(op)
    ProblemIdentity problem{};                  ///< problem_of(instance)
    RunInfo info{};
};

/// A finalist as the store takes it: fastest first.
struct Finalist {
    Config config{};
    double time_us = 0, low_us = 0, high_us = 0;  ///< median and its 95 % interval
    int samples = 0;
    double max_error = 0;
    bool tainted = false;  ///< never becomes a record
    Verified verified = Verified::checked;
};

/// How a search ended, as the store takes it.
struct RunEnd {
    /// Fastest first. Empty, as after an interruption: ranks come from the run's timed trials.
    std::vector<Finalist> finalists{};
    std::optional<double> default_us{};
    std::size_t evaluated = 0, space_size = 0;
    std::string method{}, reference{};  ///< as Preparation told them
    double power_w = 0, temperature_max = 0;
    std::string model_version{};  ///< of predictions
};

struct RunSummary {
    std::size_t records = 0;   ///< ranks this search left in the database
    bool kept_better = false;  ///< a better set of records was there already and stays
    std::size_t negatives = 0, predictions = 0;
};

/// A trial as stored, for `autotune why` and the report.
struct StoredTrial {
    std::size_t ordinal = 0;  ///< 1 for the first of its run
    Config config{};
    Outcome outcome{};       ///< with log and samples
    std::int64_t ended = 0;  ///< seconds since 1970, UTC
};

/// One search as stored.
struct StoredRun {
    RunId id = 0;  ///< 0: it did not begin here, and has no trials
    RunInfo info{};
    DeviceIdentity device{};
    Environment environment{};
    ProblemIdentity problem{};
    std::size_t trials = 0;
    bool finished = false;  ///< ended or was interrupted, with its records derived; false after a crash
};

/// Which records; an empty member does not narrow.
struct RecordQuery {
    std::string op{};
    std::string device_fp{};
    std::vector<std::byte> problem_key{};
    Expression where{};         ///< over the problem's key fields, such as "cols >= 4096"; unknown names: no match
    bool winners_only = false;  ///< rank 0 only
    bool predicted = false;     ///< predictions in place of measurements
    bool waiting = false;       ///< what waits beside better rows, in place of these
    /// Of a scan: false may leave RecordView::problem and run null, which saves reading what people are told of them.
    bool with_problem = true;
};

/// A record as a scan meets it: its parts are shared by many and live as long as the call of the sink.
struct RecordView {
    RecordKey id{};
    const DeviceIdentity* device = nullptr;
    const TemplateIdentity* source = nullptr;
    const Environment* environment = nullptr;
    const RunInfo* run = nullptr;
    const Config* config = nullptr;
    std::span<const std::byte> problem_key{};
    const ProblemIdentity* problem = nullptr;
    std::int64_t time_ns = 0, low_ns = 0, high_ns = 0;
    std::optional<std::int64_t> default_ns{};
    std::int64_t samples = 0, evaluated = 0, space_size = 0, tuned_at = 0;
    SearchEffort effort = SearchEffort::normal;
    Verified verified = Verified::checked;
    double max_error = 0;
    bool predicted = false;
    std::string_view model_version{};
    std::string_view stale{};  ///< empty: fresh
    std::uint32_t crc = 0;
    std::int64_t import = 0;  ///< the number of the one that brought it; 0: none
    OrderKey order{};         ///< compare() puts the better first
};

/// A config that must not be dispatched, and why.
struct Negative {
    std::string device_fp{};
    TemplateIdentity source{};
    std::vector<std::byte> problem_key{};  ///< empty: on no problem
    Config config{};
    Ending ending = Ending::crashed;
    Environment environment{};  ///< where it failed; put_negative() is told it

    /// Whether it says anything there: some failures are of the driver, and an update may mend them.
    bool holds_on(const DeviceIdentity& device) const {
        return info(ending).dies_with_source ||
               (environment.driver == device.driver && environment.runtime == device.driver_version);
    }
};

/// The database: tune.db (records) and trials.db beside it (every outcome), one transaction a write. One process may
/// have several, each used by one thread at a time and by no child of a fork.
///
/// Writers of any number of processes queue on an advisory lock; a killed one loses nothing that was committed. Where
/// the file cannot be used the Store works from memory or spools, says so once through `warn`, and goes on: losing the
/// cache never stops a search.
class Store {
public:
    enum class Mode {
        read,  ///< writes nothing, creates nothing; a missing file is empty
        write,
        memory,  ///< nothing on disk: tests, and `--db none`
    };
    struct Options {
        std::filesystem::path path{};  ///< empty: default_path()
        Mode mode = Mode::write;
        /// One sentence each, without level and full stop; empty: they are dropped.
        std::function<void(const std::string&)> warn{};
        std::chrono::milliseconds patience{10'000};  ///< for other writers
        bool allow_shared_folder = false;            ///< others may write there: as with AUTOTUNE_ALLOW_SHARED=1
        /// The file changes in no way while it is open: no lock is taken and no change seen. As on read-only media.
        bool immutable = false;
        bool spool_only = false;              ///< as on a network file system: records go to spool files
        std::function<std::int64_t()> now{};  ///< seconds since 1970; empty: the system's clock
    };

    /// Throws Error{usage} for a named file that is not ours or newer than this program, and leaves it as it is. At the
    /// default place one that is not ours is set aside (renamed with time and process id) and an empty one takes over;
    /// a newer one stays, and what is found is kept in memory. A newer one is read where its min_reader allows it, else
    /// counts as empty. A writer brings an older one to today's schema, after a copy that goes with success; a reader
    /// does so in memory. Throws Error{store} where a named one cannot be, and leaves it as it is.
    static Store open(const Options& options);
    /// A database in memory that others own and that outlives the Store: read only, neither copied nor trusted. Throws
    /// Error{usage} for bytes that are no database of ours, cut off, in write-ahead-log mode, newer than this program,
    /// or with anything but our tables in it.
    static Store open_bytes(std::span<const std::byte> bytes);
    static Store in_memory() { return open({.path = {}, .mode = Mode::memory, .warn = {}}); }
    /// AUTOTUNE_DB; else AUTOTUNE_CACHE_DIR, or autotune in $XDG_CACHE_HOME or ~/.cache, with /1/tune.db: the schema's
    /// major number is in the path, so older programs never meet a newer file. Empty when there is no home.
    static std::filesystem::path default_path();

    Store(Store&&) noexcept;
    Store& operator=(Store&&) noexcept;
    ~Store();

    /// Where the database is; empty: in memory.
    const std::filesystem::path& path() const noexcept;
    /// 32 hex digits that no other database has; empty where the file is not there yet.
    std::string uuid() const;
    /// Where binaries go (BinaryStore): beside the database; empty: in memory.
    std::filesystem::path binaries_folder() const;
    /// "tune.db in rollback mode", "memory: ~/.cache is not writable", "spool files: ~/.cache is on NFS": for `doctor`.
    std::string state() const;
    /// Of one that is in memory only though a file was named: the state without the word for that.
    std::string why_not_kept() const;
    /// 0 before anything was written; changes with every write of any process to the records, and for a reader with
    /// the spool files. -1 once another file stands in this one's place: open it anew.
    std::int64_t generation() const;

    // -- a search writes. Each throws Error{store} when the row could not be kept, after spooling what finish_run held.
    RunId begin_run(const RunStart& start);
    /// One transaction. A config tried again replaces its earlier row of the same run.
    void record_trial(RunId run, const Config& config, const Outcome& outcome);
    /// Derives records (within 3 % of the best, at most 8, none tainted) and negatives; also when interrupted. A set of
    /// records that the total order ranks higher stays. What was timed is no negative any more.
    RunSummary finish_run(RunId run, const RunEnd& end);
    /// Puts records of elsewhere (a spool, an import) under the same rule; returns how many of them now stand. Where
    /// records go to spool files, so do these; and where the file takes none, which throws Error{store} all the same.
    std::size_t put(std::span<const Record> records);
    /// Nothing happens where nothing is stored of the device or the problem: so nothing can be dispatched wrongly.
    /// Throws Error{store} where records go to spool files, which hold none of these, and so does what strikes one.
    void put_negative(const Negative& negative, const Environment& environment);
    /// The config is refused no longer on that problem; its ending is not looked at.
    void strike_negative(const Negative& negative);
    /// Folds spool files of finished processes into the database; returns how many records they held.
    std::size_t fold_spools();

    // -- what is known
    /// Outcomes that a new run of this search need not try again, latest first trial order. Times count while device,
    /// environment and source are the same; failures also want the same space; out_of_memory is never remembered.
    std::vector<std::pair<Config, Outcome>> known_outcomes(const RunStart& start) const;
    /// Best first by the total order within each problem; rows whose checksum fails are left out.
    std::vector<Record> records(const RecordQuery& query, const Today& today) const;
    std::optional<Record> record(const RecordKey& key, const Today& today) const;
    /// How many rows records() and scan() left out since the last write, as their checksums fail; check() names them.
    std::size_t left_out() const;
    /// The same rows in no order and without copies. `where` and `winners_only` are not looked at.
    void scan(const RecordQuery& query, const Today& today, const std::function<void(const RecordView&)>& sink) const;
    /// NVRTC versions of any environment seen, newest first: what binaries may be stored under.
    std::vector<std::pair<int, int>> compilers() const;
    std::vector<Negative> negatives(std::string_view op, std::string_view device_fp) const;
    /// GPUs that records of the op were measured on, in no order; an empty op: of any.
    std::vector<DeviceIdentity> devices(std::string_view op = {}) const;

    // -- one silicon under two fingerprints, as where two drivers tell its memory clock differently
    /// What was measured on either counts for both from now on, in this database and those that are read with it.
    /// Throws Error{usage} where their capabilities differ, Error{store} when it could not be kept, as in spool files.
    void put_alias(const DeviceIdentity& one, const DeviceIdentity& other);
    /// Whether there was one.
    bool remove_alias(std::string_view fp, std::string_view other_fp);
    /// Pairs of fingerprints, the smaller first.
    std::vector<std::pair<std::string, std::string>> aliases() const;

    // -- as a whole
    /// Newest first, then those that did not begin here; an empty op: of all.
    std::vector<StoredRun> runs(std::string_view op = {}) const;
    std::optional<StoredRun> run(RunId run) const;
    std::vector<StoredTrial> trials(RunId run) const;
    std::optional<StoredTrial> trial(RunId run, std::size_t ordinal) const;

    /// Rows a table, for `db stats`: {"record", 812}, ...
    std::map<std::string, std::int64_t> row_counts() const;
    /// Faults of the file and of each row's checksum, one sentence each; empty: sound.
    std::vector<std::string> check() const;

    // -- autotune::sharing works on many rows at once
    /// One transaction on tune.db, queued behind other writers; `body` may run twice. Throws Error{store} where the
    /// records are not in a file that may be written, unless the store is one in memory.
    void transact(const std::function<void(Database& tune)>& body);
    /// What `body` reads of tune.db.
    void inspect(const std::function<void(Database& tune)>& body) const;

    struct Impl;

private:
    friend class Upkeep;
    explicit Store(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace autotune
#endif
