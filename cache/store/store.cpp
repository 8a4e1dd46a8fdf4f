#include "cache/store/store.h"

#include <sqlite3.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "cache/store/interning.h"
#include "cache/store/location.h"
#include "cache/store/migration.h"
#include "cache/store/spool.h"
#include "cache/store/store_impl.h"

namespace autotune {

namespace fs = std::filesystem;

Store::Store(std::unique_ptr<Impl> impl) noexcept : impl_{std::move(impl)} {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::open(const Options& options) {
    Options all = options;
    all.allow_shared_folder = options.allow_shared_folder || shared_folders_are_allowed();
    auto impl =
        std::make_unique<Impl>(Impl{.options = all, .opened = open_databases(all), .patience = options.patience});
    impl->on_disk = std::exchange(impl->opened.on_disk, std::nullopt);
    if (impl->opened.may_write) {
        impl->tune_lock.emplace(impl->opened.path);
        impl->trials_lock.emplace(trials_path(impl->opened.path));
    } else if (options.mode != Mode::memory) {
        impl->absorb_spools();
    }
    return Store{std::move(impl)};
}

Store Store::open_bytes(std::span<const std::byte> bytes) {
    const Options options{.mode = Mode::read};
    return Store{std::make_unique<Impl>(
        Impl{.options = options, .opened = autotune::open_bytes(bytes), .patience = options.patience})};
}

const fs::path& Store::path() const noexcept {
    static const fs::path none;
    return impl_->opened.where == Opened::Where::memory ? none : impl_->opened.path;
}

fs::path Store::binaries_folder() const { return path().empty() ? fs::path{} : path().parent_path() / "binaries"; }
std::string Store::uuid() const {
    std::string uuid;
    inspect([&](Database& tune) { uuid = tune.text_of("SELECT value FROM meta WHERE key = 'db_uuid'"); });
    return uuid;
}
std::string Store::state() const { return impl_->opened.state; }
std::string Store::why_not_kept() const { return impl_->why_not_kept(); }

std::int64_t Store::generation() const {
    return impl_->ask([&]() -> std::int64_t {
        Database& file = impl_->on_disk ? *impl_->on_disk : impl_->opened.tune;
        if (file.moved()) return -1;
        const auto written = file.integer_of("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'generation'");
        // A reader has what lies in spool files as well.
        const bool reads_spools = impl_->options.mode == Mode::read && !impl_->opened.path.empty();
        return written.value_or(0) + (reads_spools ? spool_mark(spool_folder(impl_->opened.path)) : 0);
    });
}

/// What lies in spool files belongs to what a reader sees, in memory only: the file is the writers' business.
void Store::Impl::absorb_spools() {
    if (opened.path.empty()) return;
    // Before the copy: a file that somebody folds meanwhile is missing here only if the copy has what it held.
    std::vector<Record> records;
    read_spools([&](const fs::path&, const SpoolContents& contents) {
        records.insert(records.end(), contents.records.begin(), contents.records.end());
    });
    if (records.empty()) return;
    if (opened.where == Opened::Where::file && !on_disk) {
        on_disk = std::exchange(opened.tune, Database::in_memory());
        opened.tune.copy_from(*on_disk);
    }
    Transaction transaction{opened.tune};
    put_rows(records);
    transaction.commit();
}

void Store::Impl::read_spools(const std::function<void(const fs::path& file, const SpoolContents&)>& sink) const {
    const fs::path folder = spool_folder(opened.path);
    const bool any = options.allow_shared_folder;
    const std::vector<fs::path> files = spool_files(folder);
    if (const auto why = any || files.empty() ? std::nullopt : untrusted(folder / "any")) {
        warn(fmt::format("{}, so what lies in it is not taken in", why->why));
        return;
    }
    for (const fs::path& file : files) {
        const auto why = any ? std::nullopt : untrusted(file);
        if (const auto contents = why ? std::nullopt : read_spool(file, any ? Writers::any : Writers::trusted))
            sink(file, *contents);
        else if (fs::exists(file))  // else another process has folded it
            warn(fmt::format("{}, so it waits on", why ? why->why : fmt::format("'{}' cannot be read", shown(file))));
    }
}

std::int64_t Store::Impl::now() const { return options.now ? options.now() : std::time(nullptr); }

std::string Store::Impl::name() const {
    return opened.path.empty() ? "the database in memory" : fmt::format("'{}'", shown(opened.path));
}

Error Store::Impl::locked_error(bool in_trials, const std::string& holder) {
    patience = std::min(patience, std::chrono::milliseconds{200});  // one long wait a run is enough
    const fs::path file = in_trials ? trials_path(opened.path) : opened.path;
    return Error{
        Error::Kind::store,
        fmt::format("'{}' was locked for {:.0f} s{}", shown(file),
                    static_cast<double>(options.patience.count()) / 1000.0, holder.empty() ? "" : " by " + holder),
        std::string{locked_help}};
}

Error Store::Impl::error_of(const DatabaseFailure& failure, std::string_view action, bool in_trials) const {
    const std::string name =
        in_trials && !opened.path.empty() ? fmt::format("'{}'", shown(trials_path(opened.path))) : this->name();
    if (failure.full())
        return Error{Error::Kind::store, fmt::format("{} could not grow: the disk is full", name),
                     "free some space, or name another place with --db"};
    if (failure.busy())
        return Error{Error::Kind::store, fmt::format("{} is locked by another process", name),
                     std::string{locked_help}};
    if (failure.corrupt())
        return Error{Error::Kind::store, fmt::format("{} is damaged: {}", name, failure.what()),
                     std::string{damaged_help}};
    return Error{Error::Kind::store, fmt::format("{} could not be {}: {}", name, action, failure.what())};
}

void Store::Impl::write(bool in_trials, const std::function<void()>& body) {
    if (process != ::getpid()) throw Error{Error::Kind::internal, "a forked child used its parent's database"};
    if (options.mode == Mode::read) throw Error{Error::Kind::internal, "a store opened for reading was written to"};
    std::optional<WriterLock>& lock = in_trials ? trials_lock : tune_lock;
    for (bool recovered = false;; recovered = true) {
        try {
            std::optional<WriterTurn> turn;
            if (lock && !turn.emplace(*lock, patience).held()) throw locked_error(in_trials, lock->holder());
            Database& file = in_trials ? trials() : tune();
            file.patience(patience);
            // A rollback journal tells this by itself, and a log ahead would take rows that nobody finds.
            if (lock && file.moved()) throw DatabaseFailure{SQLITE_READONLY_DBMOVED, "another file is in its place"};
            Transaction transaction{file};
            body();
            transaction.commit();
            patience = options.patience;
            file.patience(patience);
            return;
        } catch (const DatabaseFailure& failure) {
            // It is our turn among the writers of this program, so it is another that holds the file.
            if (failure.busy()) throw locked_error(in_trials, "a process that is not autotune");
            const bool mendable = (failure.corrupt() || failure.moved()) && opened.own_place && opened.may_write;
            if (!mendable || recovered) throw error_of(failure, "written", in_trials);
        }
        recover(in_trials);
    }
}

/// Damage that shows only now: an empty file takes over, with the runs that are under way.
void Store::Impl::recover(bool in_trials) {
    const WriterTurn turn{*tune_lock, patience};
    if (!turn.held()) throw locked_error(in_trials, tune_lock->holder());
    const bool new_rows = !in_trials || tune().moved();
    try {
        // Another process may have seen the same damage first: what it put there is sound, and is not set aside again.
        if ((in_trials ? trials() : tune()).moved())
            reopen_replaced(opened, options);
        else
            replace_damaged(opened, options, in_trials);
        if (!new_rows) return;
        Transaction transaction{tune()};
        for (auto& [id, run] : active) register_run(run);
        transaction.commit();
    } catch (const DatabaseFailure& failure) {
        throw error_of(failure, "written", in_trials);
    }
}

bool Store::Impl::remove(const RecordKey& key) { return Contest{tune()}.remove(key); }

bool Store::Impl::remove_if_damaged(const RecordKey& key) { return !record_at(tune(), key) && remove(key); }

void Store::Impl::remove_broken() {
    for (const RecordKey& key : broken) remove_if_damaged(key);
    broken.clear();
}

namespace {

RecordRow row_of(const Record& r, const RecordKey& key, std::int64_t config, const Interning::Run& run,
                 std::uint32_t crc) {
    return {.key = key,
            .config = config,
            .run = run.uuid,
            .setting = run.setting,
            .time_ns = nanoseconds(r.time_us),
            .low_ns = nanoseconds(r.low_us),
            .high_ns = nanoseconds(r.high_us),
            .samples = r.samples,
            .default_ns = r.default_us ? nanoseconds(*r.default_us) : -1,
            .evaluated = static_cast<std::int64_t>(r.evaluated),
            .space_size = static_cast<std::int64_t>(r.space_size),
            .verified = static_cast<std::int64_t>(r.verified),
            .tuned_at = r.tuned_at,
            .max_error = r.max_error,
            .crc = crc};
}

template <class Row>
bool is_here(Contest& contest, const Row& row, Put became) {
    return became == Put::added || became == Put::better || (became == Put::not_better && contest.stands(row));
}

}  // namespace

/// Each row is the maximum of what competes for its key, so any order and any repetition end in the same rows.
std::size_t Store::Impl::put_rows(std::span<const Record> records, std::int64_t import) {
    constexpr std::size_t runs_at_once = 1 << 14;  // of so many, several share a page of their tree
    Database& db = tune();
    Interning interned{db, import};
    Contest contest{db};
    std::size_t standing = 0;
    std::vector<RecordRow> rows;
    std::vector<PredictionRow> predictions;
    std::vector<NewRun> runs;
    for (; !records.empty(); records = records.subspan(std::min(records.size(), runs_at_once))) {
        const std::span<const Record> some = records.first(std::min(records.size(), runs_at_once));
        const auto predicted = static_cast<std::size_t>(std::ranges::count_if(some, &Record::predicted));
        rows.clear();
        predictions.clear();
        runs.clear();
        rows.reserve(some.size() - predicted);  // runs point to problems in these
        predictions.reserve(predicted);
        for (const Record& record : some) {
            // A record lies in a score of places in memory, so all that it says is taken in one go.
            Interning::Problem problem = interned.problem(record.problem);
            const Interning::Run run = interned.run(record);
            const SharedRow source = interned.source(record.source),
                            config = interned.config(record.source.op, record.config);
            const ProblemRef* of = nullptr;
            if (record.predicted) {
                predictions.push_back({.key = {.model = model_of(record.device),
                                               .source = source.id,
                                               .problem = std::move(problem.ref),
                                               .model_version = record.model_version,
                                               .rank = record.rank},
                                       .config = config.id,
                                       .time_ns = nanoseconds(record.time_us),
                                       .checked = record.verified != Verified::elsewhere,
                                       .run = run.uuid});
                of = &predictions.back().key.problem;
            } else {
                const SharedRow device = interned.device(record.device);
                const CrcParts parts{.device = device.crc,
                                     .source = source.crc,
                                     .problem = problem.crc,
                                     .config = config.crc,
                                     .run = run.crc};
                const RecordKey key{.device = device.id,
                                    .source = source.id,
                                    .problem = std::move(problem.ref),
                                    .nvrtc_major = record.environment.nvrtc_major,
                                    .nvrtc_minor = record.environment.nvrtc_minor,
                                    .rank = record.rank};
                rows.push_back(row_of(record, key, config.id, run, crc_of(record, parts)));
                of = &rows.back().key.problem;
            }
            if (runs.empty() || runs.back().uuid != run.uuid)
                runs.push_back({.info = &record.run, .problem = of, .uuid = run.uuid, .setting = run.setting});
        }
        interned.put(runs);
        const std::vector<Put> became = contest.put(rows, import);
        for (std::size_t i = 0; i < rows.size(); ++i) standing += is_here(contest, rows[i], became[i]) ? 1 : 0;
        for (const PredictionRow& row : predictions)
            standing += is_here(contest, row, contest.put(row, import)) ? 1 : 0;
    }
    return standing;
}

std::size_t Store::Impl::put(std::span<const Record> records) {
    std::size_t standing = 0;
    write(false, [&] {
        remove_broken();
        standing = put_rows(records);
        if (standing > 0) count_generation();
    });
    return standing;
}

std::size_t Store::put(std::span<const Record> records) {
    std::size_t standing = 0;
    try {
        standing = impl_->put(records);
    } catch (const Error& error) {
        impl_->keep_refused(error, records);
    }
    if (impl_->opened.where == Opened::Where::spool) impl_->spool(records);
    return standing;
}

std::string Store::Impl::why_not_kept() const {
    constexpr std::string_view in_memory = "memory: ";
    return opened.state.substr(opened.state.starts_with(in_memory) ? in_memory.size() : 0);
}

void Store::Impl::require_kept() const {
    if (opened.may_write || options.mode == Mode::memory) return;
    if (opened.where == Opened::Where::spool)
        throw Error{Error::Kind::store, fmt::format("{} cannot be written: {}", name(), opened.state),
                    "name a database on a local disk with --db"};
    throw Error{Error::Kind::store, fmt::format("nothing can be changed: {}", why_not_kept()),
                "name a database that you may write to with --db"};
}

void Store::transact(const std::function<void(Database& tune)>& body) {
    impl_->require_kept();
    impl_->write(false, [&] {
        impl_->remove_broken();
        body(impl_->tune());
        impl_->count_generation();
    });
}

void Store::inspect(const std::function<void(Database& tune)>& body) const {
    impl_->ask([&] { body(impl_->tune()); });
}

namespace {

/// The problem that a negative is of, where anything is stored of it.
std::optional<ProblemRef> known_problem(Database& db, const Negative& negative) {
    auto problem = find_problem(db, negative.source.op, negative.problem_key);
    const bool known =
        problem &&
        db.integer_of(
              "SELECT 1 WHERE EXISTS (SELECT 1 FROM run WHERE form = ?1 AND numbers = ?2 AND number IS NOT NULL) OR "
              "EXISTS (SELECT 1 FROM device d, template t WHERE t.op = ?3 AND EXISTS (SELECT 1 FROM record WHERE "
              "device "
              "= d.id AND template = t.id AND form = ?1 AND numbers = ?2)) OR EXISTS (SELECT 1 FROM predicted WHERE "
              "form "
              "= ?1 AND numbers = ?2)",
              problem->form, problem->blob(), negative.source.op)
            .has_value();
    return known ? problem : std::nullopt;
}

}  // namespace

void Store::put_negative(const Negative& negative, const Environment& environment) {
    if (impl_->opened.where == Opened::Where::spool) impl_->require_kept();  // spool files hold records only
    impl_->write(false, [&] {
        Database& db = impl_->tune();
        const auto device = db.integer_of("SELECT id FROM device WHERE fp = ?", negative.device_fp);
        const auto problem = negative.problem_key.empty() ? std::optional{ProblemRef{}}  // all of them
                                                          : known_problem(db, negative);
        if (!device || !problem) return;  // nothing is stored for it, so nothing can be dispatched wrongly
        const std::int64_t source = intern(db, negative.source);
        const std::int64_t config = intern(db, negative.source.op, negative.config);
        db.query(
              "INSERT OR REPLACE INTO negative (device, template, config, form, numbers, env, outcome, run) VALUES "
              "(?,?,?,?,?,?,?,NULL)")
            .bind(*device, source, config, problem->form, problem->blob(), intern(db, environment),
                  info(negative.ending).name)
            .run();
        impl_->bound_negatives(*device, negative.source.op, std::nullopt, config);
        impl_->count_generation();
    });
}

void Store::strike_negative(const Negative& negative) {
    const std::vector<Negative> known = negatives(negative.source.op, negative.device_fp);
    const bool refused = std::ranges::any_of(known, [&](const Negative& one) {
        return one.config == negative.config && one.problem_key == negative.problem_key &&
               one.source.hash() == negative.source.hash();
    });
    if (!refused) return;  // as nearly always: then nothing is written
    if (impl_->opened.where == Opened::Where::spool) impl_->require_kept();
    impl_->write(false, [&] {
        Database& db = impl_->tune();
        const auto device = db.integer_of("SELECT id FROM device WHERE fp = ?", negative.device_fp);
        const auto problem = find_problem(db, negative.source.op, negative.problem_key);
        if (!device || !problem) return;
        impl_->remove_negative(*device, intern(db, negative.source), *problem, negative.source.op, negative.config);
        impl_->count_generation();
    });
}

std::size_t Store::fold_spools() {
    std::size_t count = 0;
    if (!impl_->opened.may_write) return count;
    impl_->read_spools([&](const fs::path& file, const SpoolContents& contents) {
        impl_->put(contents.records);  // refused, they are in a spool file already
        count += contents.records.size();
        std::error_code error;
        if (contents.refused == 0)
            fs::remove(file, error);
        else if (const fs::path to = set_spool_aside(file); !to.empty())
            impl_->warn(fmt::format("{} of '{}' cannot be read by this program: kept in '{}'",
                                    contents.refused == 1 ? "1 line" : fmt::format("{} lines", contents.refused),
                                    shown(file), to.filename().string()));
    });
    const fs::path& path = impl_->opened.path;
    for (const fs::path& file : {path, trials_path(path)}) remove_copies(file);
    sweep_unfinished(spool_folder(path));
    sweep_unfinished(path.has_parent_path() ? path.parent_path() : ".", path.filename().string());
    return count;
}

}  // namespace autotune
