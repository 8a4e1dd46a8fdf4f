#ifndef AUTOTUNE_CACHE_STORE_STORE_IMPL_H
#define AUTOTUNE_CACHE_STORE_STORE_IMPL_H

#include <fmt/core.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autotune/error.h"
#include "cache/store/contest.h"
#include "cache/store/entities.h"
#include "cache/store/opening.h"
#include "cache/store/record_rows.h"
#include "cache/store/shared_rows.h"
#include "cache/store/spool.h"
#include "cache/store/store.h"
#include "cache/store/writer_lock.h"

namespace autotune {

/// A search that has begun and not ended, with the ids of its rows.
struct ActiveRun {
    RunStart start;
    RunId row = 0;  ///< of the run itself: the number given out, unless the file was replaced since
    std::int64_t device = 0, environment = 0;
    ProblemRef problem{};
    std::map<std::string, std::int64_t> sources{};  ///< template ids by variant
    std::map<std::string, std::size_t> ordinals{};  ///< of the configs tried, by variant and hash

    bool predicts() const noexcept { return start.device.emulated || start.environment.emulator != 0; }
};

/// What Store hides. store.cpp opens and writes, runs.cpp follows a search, queries.cpp reads.
struct Store::Impl {
    Options options;
    Opened opened;
    std::optional<Database>
        on_disk{};  ///< the file, where a reader works on a copy: with spool files in it, or of an older schema
    std::optional<WriterLock> tune_lock{}, trials_lock{};
    std::chrono::milliseconds patience{};
    pid_t process = ::getpid();
    std::map<RunId, ActiveRun> active{};
    std::vector<RecordKey> broken{};  ///< rows whose checksum failed: the next write removes them

    std::int64_t now() const;
    void warn(const std::string& sentence) const {
        if (options.warn) options.warn(sentence);
    }
    std::string name() const;
    Database& tune() noexcept { return opened.tune; }
    Database& trials() noexcept { return opened.trials; }

    // store.cpp
    /// Runs `body` in one transaction of tune.db or trials.db, queued behind other writers. It may run twice.
    void write(bool in_trials, const std::function<void()>& body);
    /// `action` is what could not be done with the file: "read" or "written".
    /// in_trials: trials.db is the file that failed.
    Error error_of(const DatabaseFailure& failure, std::string_view action, bool in_trials = false) const;
    Error locked_error(bool in_trials, const std::string& holder);
    /// What a question answers, with a failure of SQLite as an Error{store}.
    template <class Question>
    auto ask(const Question& question) const {
        try {
            return question();
        } catch (const DatabaseFailure& failure) {
            throw error_of(failure, "read");
        }
    }
    void recover(bool in_trials);
    /// import: the number of the one that brings them; 0: none.
    std::size_t put_rows(std::span<const Record> records, std::int64_t import = 0);
    std::size_t put(std::span<const Record> records);
    /// Removes the row that stands at the key; false: there is none.
    bool remove(const RecordKey& key);
    /// The same, unless that row is sound: where a key is damaged it names another row.
    bool remove_if_damaged(const RecordKey& key);
    void remove_broken();
    void count_generation() { tune().query("UPDATE meta SET value = value + 1 WHERE key = 'generation'").run(); }
    void absorb_spools();
    /// The spool files, one after another. Those that others may have put there, or that cannot be read, wait, which is
    /// said.
    void read_spools(const std::function<void(const std::filesystem::path& file, const SpoolContents&)>& sink) const;
    /// Where nothing goes into a file: what is in the way.
    std::string why_not_kept() const;
    /// Throws where what is written would be in this process alone though it is meant for others.
    void require_kept() const;

    // runs.cpp
    ActiveRun& run_at(RunId id);
    void register_run(ActiveRun& run);
    /// What the run has in common with others, as it is told now.
    SharedRow setting_of(const ActiveRun& run);
    std::vector<Record> derive(const ActiveRun& run, const RunEnd& end);
    std::vector<Finalist> finalists_of(const ActiveRun& run);
    std::vector<RecordKey> rows_of(const ActiveRun& run);
    void remove_negative(std::int64_t device, std::int64_t source, const ProblemRef& problem, std::string_view op,
                         const Config& config);
    void remove_negatives(const ActiveRun& run);
    std::size_t put_negatives(const ActiveRun& run);
    /// What was just put goes last: of a search all of its run; of an application, which has none, a config.
    void bound_negatives(std::int64_t device, std::string_view op, std::optional<std::int64_t> put_run,
                         std::int64_t put_config = 0);
    bool make_room_for_predictions(const ActiveRun& run, const Record& best);
    void store_end(const ActiveRun& run, const std::vector<Record>& records, RunSummary& summary);
    void spool(std::span<const Record> records);
    /// Puts what the file refused into a spool file, where it can be, and throws the error with what became of it.
    [[noreturn]] void keep_refused(const Error& error, std::span<const Record> records);
    std::vector<std::pair<Config, Outcome>> known(const RunStart& start, bool predicted);
};

}  // namespace autotune
#endif
