#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "autotune/error.h"
#include "cache/store/database_file.h"
#include "cache/store/file.h"
#include "cache/store/location.h"
#include "cache/store/migration.h"
#include "cache/store/old_schemas.h"
#include "cache/store/opening.h"
#include "cache/store/schema.h"
#include "cache/store/store_impl.h"
#include "cache/store/trials.h"
#include "cache/store/upkeep.h"
#include "tuner/model/printable.h"

namespace autotune {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t batch_size = 1000;

/// A view or trigger could make reading do anything, so there may be none.
Database open_broken(const fs::path& path) {
    Database database = Database::open_damaged(path);
    const auto others =
        database.integer_of("SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR rootpage < 1");
    if (others.value_or(0) != 0)
        throw Error{Error::Kind::usage, fmt::format("'{}' holds more than autotune's tables", shown(path)),
                    "nothing of it can be taken safely"};
    return database;
}

/// What can be read of the tables of an older schema, brought to today's in memory.
class Lifting {
public:
    explicit Lifting(Database& from) : from_{from} {}

    Database run(Salvaged& out) {
        const int schema = schema_of(from_);
        const char* const made = schema == 1 ? tune_schema_1 : tune_schema_2;
        copy_.execute(made);
        copy_.execute(fmt::format("PRAGMA user_version = {}", schema).c_str());
        for (const std::string_view table : tables_of(made)) copy_table(std::string{table}, out);
        const auto records = [this](const char* more) {
            return copy_
                .integer_of(fmt::format("SELECT (SELECT count(*) FROM record) + (SELECT count(*) FROM "
                                        "predicted){}",
                                        more))
                .value_or(0);
        };
        const char* const beside = " + (SELECT count(*) FROM record_beside) + (SELECT count(*) FROM predicted_beside)";
        const std::int64_t before = records(schema == 1 ? "" : beside);
        migrate(copy_, false);
        out.unreadable += static_cast<std::size_t>(std::max<std::int64_t>(before - records(beside), 0));
        return std::move(copy_);
    }

private:
    void copy_table(const std::string& table, Salvaged& out) {
        std::string keys;
        std::size_t columns = 0;
        {
            Query column = copy_.query("SELECT name, pk FROM pragma_table_info(?) ORDER BY pk");
            column.bind(table);
            for (; column.step(); ++columns)
                if (column.integer(1) > 0)
                    keys += fmt::format("{}{} DIRECTION", keys.empty() ? "" : ", ", column.text(0));
        }
        for (const std::string_view direction :
             {"ASC", "DESC"}) {  // a broken page in the middle is met from both sides
            std::string order = keys;
            for (std::size_t at = 0; (at = order.find("DIRECTION")) != std::string::npos;)
                order.replace(at, std::string_view{"DIRECTION"}.size(), direction);
            if (copy_rows(table, order, columns, out)) return;
        }
    }

    bool copy_rows(const std::string& table, const std::string& order, std::size_t columns, Salvaged& out) {
        try {
            Query row = from_.query(fmt::format("SELECT * FROM {} NOT INDEXED ORDER BY {}", table, order));
            while (row.step()) copy_row(table, row, columns, out);
            return true;
        } catch (const DatabaseFailure& failure) {
            if (!failure.corrupt() && !failure.refused()) throw;
            out.cut_off = true;
            return false;
        }
    }

    /// One that breaks its table's rules is none.
    void copy_row(const std::string& table, const Query& row, std::size_t columns, Salvaged& out) {
        std::string marks;
        for (std::size_t i = 0; i < columns; ++i) marks += i == 0 ? "?" : ",?";
        Query put = copy_.query(fmt::format("INSERT OR IGNORE INTO {} VALUES ({})", table, marks));
        for (int i = 0; i < static_cast<int>(columns); ++i) switch (row.type(i)) {
                case ColumnType::integer:
                    put.bind_at(i + 1, row.integer(i));
                    break;
                case ColumnType::real:
                    put.bind_at(i + 1, row.real(i));
                    break;
                case ColumnType::text:
                    put.bind_at(i + 1, row.text(i));
                    break;
                case ColumnType::blob:
                    put.bind_at(i + 1, row.blob(i));
                    break;
                case ColumnType::null:
                    put.bind_at(i + 1, nullptr);
                    break;
            }
        try {
            put.run();
        } catch (const DatabaseFailure&) {
            ++out.unreadable;
        }
    }

    Database& from_;
    Database copy_ = Database::in_memory();
};

/// Carries rows over, with ids of the new file for those of the broken one.
class Salvage {
public:
    Salvage(Database& from, Store::Impl& to, const Salvaged& begun)
        : from_{from}, to_{to}, entities_{from}, out_{begun} {}

    Salvaged run(Database* trials) {
        copy_imports();
        copy_runs();
        copy_records();
        copy_predictions();
        copy_negatives();
        copy_descriptions();
        if (trials) copy_trials(*trials);
        return out_;
    }

private:
    /// Reads until the end or until a broken page; false: that.
    template <class Read>
    bool read_on(const Read& read) {
        try {
            read();
            return true;
        } catch (const DatabaseFailure& failure) {
            if (!failure.corrupt() && !failure.refused()) throw;  // the new file's disk is full, say
            out_.cut_off = true;
            return false;
        }
    }

    std::vector<std::int64_t> ids_of(const char* table) {
        std::vector<std::int64_t> ids;
        for (const char* order : {"ASC", "DESC"}) {  // a broken page in the middle is met from both sides
            const bool whole = read_on([&] {
                Query row = from_.query(fmt::format("SELECT id FROM {} NOT INDEXED ORDER BY id {}", table, order));
                while (row.step()) ids.push_back(row.integer(0));
            });
            if (whole) break;
        }
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
        return ids;
    }

    /// With their numbers, which rows name.
    void copy_imports() {
        const std::vector<std::int64_t> ids = ids_of("import_log");
        to_.write(false, [&] {
            for (const std::int64_t id : ids) read_on([&] { copy_import(id); });
        });
    }

    void copy_import(std::int64_t id) {
        Query row = from_.query(
            "SELECT source_uuid, sha256, \"when\", policy, rows_in, accepted, rejected_json FROM import_log WHERE id = "
            "?");
        row.bind(id);
        if (!row.step()) return;
        to_.tune()
            .query(
                "INSERT OR REPLACE INTO import_log (id, source_uuid, sha256, \"when\", policy, rows_in, accepted, "
                "rejected_json) VALUES (?,?,?,?,?,?,?,?)")
            .bind(id, row.text(0), row.text(1), row.integer(2), row.text(3), row.integer(4), row.integer(5),
                  row.text(6))
            .run();
    }

    /// Where the line of an import is lost, one that says only its number lets its rows be taken out.
    void require_import(std::int64_t id) {
        if (id > 0)
            to_.tune()
                .query(
                    "INSERT INTO import_log (id, source_uuid, sha256, \"when\", policy, rows_in, accepted, "
                    "rejected_json) VALUES (?,'','',0,'import',0,0,'{}') ON CONFLICT DO NOTHING")
                .bind(id)
                .run();
    }

    /// What imports called GPUs.
    void copy_descriptions() {
        to_.write(false, [&] {
            read_on([&] {
                Query row = from_.query(
                    "SELECT device, import, name, vendor, core_khz, mig, ecc, pci_id, attrs_json FROM device_beside");
                while (row.step()) {
                    const auto* device = entities_.device(row.integer(0));
                    if (!device) continue;
                    require_import(row.integer(1));
                    to_.tune()
                        .query(
                            "INSERT OR REPLACE INTO device_beside (device, import, name, vendor, core_khz, mig, ecc, "
                            "pci_id, attrs_json) VALUES (?,?,?,?,?,?,?,?,?)")
                        .bind(intern(to_.tune(), device->value), row.integer(1), row.text(2), row.text(3),
                              row.integer(4), row.text(5), row.integer(6), row.text(7), row.text(8))
                        .run();
                }
            });
        });
    }

    std::set<RunUuid> uuids() {
        std::set<RunUuid> found;
        for (const char* order : {"ASC", "DESC"}) {
            const bool whole = read_on([&] {
                Query row = from_.query(fmt::format("SELECT uuid FROM run NOT INDEXED ORDER BY uuid {}", order));
                while (row.step()) found.insert(uuid_of(row.blob(0)).value_or(RunUuid{}));
            });
            if (whole) break;
        }
        return found;
    }

    void copy_runs() {
        const std::set<RunUuid> found = uuids();
        to_.write(false, [&] {
            for (const RunUuid& uuid : found) read_on([&] { copy_run(uuid); });
        });
        out_.runs = runs_.size();
        out_.unreadable += found.size() - runs_.size();
    }

    /// With its number, which is that of its trials.
    void copy_run(const RunUuid& uuid) {
        const auto* run = entities_.run(uuid);
        const auto* device = run ? entities_.device(run->device) : nullptr;
        const auto* environment = run ? entities_.environment(run->environment) : nullptr;
        std::optional<ProblemIdentity> problem;
        if (run) problem = entities_.problem(run->problem);
        if (!device || !environment || !problem) return;
        Database& db = to_.tune();
        const Setting setting{.device = intern(db, device->value),
                              .environment = intern(db, environment->value),
                              .predicted = run->predicted,
                              .run = run->info};
        const bool there =
            db.integer_of("SELECT 1 FROM run WHERE uuid = ?", std::span<const std::byte>{uuid}).has_value();
        if (!there)
            insert_run(db, run->info, intern(db, *problem),
                       intern_setting(db, setting, device->hash, environment->hash), run->number, run->import);
        if (run->import == 0) claim(db, setting.device);
        runs_.emplace(uuid, *run);
        require_import(run->import);
    }

    void put(std::int64_t import, std::vector<Record>& records) {
        if (records.empty()) return;
        to_.write(false, [&] {
            require_import(import);
            to_.put_rows(records, import);
        });
        records.clear();
    }
    void put_rest() {
        for (auto& [import, records] : batches_) put(import, records);
    }

    void take(const RecordView& view, std::size_t& counter) {
        const std::int64_t import = view.import;
        std::vector<Record>& batch = batches_[import];
        try {
            batch.push_back(to_record(view));
            ++counter;
        } catch (const std::exception&) {
            ++out_.unreadable;  // its problem's text is damaged
        }
        if (batch.size() >= batch_size) put(import, batch);
    }

    void copy_records() {
        copy_records(Seat::standing, out_.records);
        copy_records(Seat::beside, out_.waiting);
    }

    void copy_records(Seat seat, std::size_t& copied) {
        const std::vector<std::int64_t> devices = ids_of("device"), sources = ids_of("template");
        for (const std::int64_t device : devices)
            for (const std::int64_t source : sources) copy_part({.device = device, .source = source}, seat, copied);
        put_rest();
    }

    /// Behind a broken page rows are met from the other side, and looked for by the problems of runs.
    void copy_part(const RecordKey& part, Seat seat, std::size_t& copied) {
        std::set<std::pair<RecordKey, std::int64_t>> met;
        const auto sink = [&](const RecordView& view) {
            if (met.emplace(view.id, view.import).second) take(view, copied);
        };
        std::set<RecordKey> broken;
        const auto unreadable = [&](const RecordKey& key) { out_.unreadable += broken.insert(key).second ? 1 : 0; };
        const auto scan = [&](bool backwards) {
            return read_on([&] { scan_part(from_, part, backwards, sink, unreadable, seat); });
        };
        if (scan(false)) return;
        scan(true);
        std::set<ProblemRef> problems;
        for (const auto& [uuid, run] : runs_) problems.insert(run.problem);
        for (const ProblemRef& problem : problems) {
            RecordKey of = part;
            of.problem = problem;
            read_on([&] { scan_problem(from_, of, sink, unreadable, seat); });
        }
    }

    void copy_predictions() {
        copy_predictions(Seat::standing, out_.predictions);
        copy_predictions(Seat::beside, out_.waiting);
    }

    void copy_predictions(Seat seat, std::size_t& copied) {
        read_on([&] {
            scan_records(
                from_, {.predicted = true}, {}, [&](const RecordView& view) { take(view, copied); },
                [](const RecordKey&) {}, seat);
        });
        put_rest();
    }

    void copy_negatives() {
        to_.write(false, [&] {
            out_.negatives = 0;
            std::size_t met = 0;
            read_on([&] {
                Query row =
                    from_.query("SELECT device, template, config, form, env, outcome, run, numbers FROM negative");
                for (; row.step(); ++met) out_.negatives += copy_negative(row) ? 1 : 0;
            });
            out_.unreadable += met - out_.negatives;
        });
    }

    bool copy_negative(const Query& row) {
        const auto* device = entities_.device(row.integer(0));
        const auto* source = entities_.source(row.integer(1));
        const auto* config = entities_.config(row.integer(2));
        const auto* environment = entities_.environment(row.integer(4));
        std::optional<ProblemIdentity> problem;
        const ProblemRef told{.form = row.integer(3), .numbers = text_of_blob(row.blob(7))};
        const bool of_all_problems = told.form == 0;
        if (!of_all_problems) read_on([&] { problem = entities_.problem(told); });
        if (!device || !source || !config || !environment || !ending_named(row.text(5))) return false;
        if (!of_all_problems && !problem) return false;
        Database& db = to_.tune();
        const ProblemRef of = problem ? intern(db, *problem) : ProblemRef{};
        const bool of_a_run = !row.null(6) && db.integer_of("SELECT 1 FROM run WHERE number = ?", row.integer(6));
        db.query(
              "INSERT OR REPLACE INTO negative (device, template, config, form, numbers, env, outcome, run) VALUES "
              "(?,?,?,?,?,?,?,?)")
            .bind(intern(db, device->value), intern(db, source->value), intern(db, source->value.op, config->value),
                  of.form, of.blob(), intern(db, environment->value), row.text(5),
                  of_a_run ? std::optional{row.integer(6)} : std::nullopt)
            .run();
        return true;
    }

    void copy_trials(Database& trials) {
        to_.write(false, [&] {
            for (const std::int64_t id : ids_of("template"))
                if (const auto* source = entities_.source(id)) sources_[id] = intern(to_.tune(), source->value);
        });
        to_.write(true, [&] {
            out_.trials = 0;
            for (const auto& [uuid, run] : runs_)
                if (run.number)
                    read_on([&, number = *run.number] {
                        scan_trials(trials, number, [&](const TrialRow& row) {
                            const auto source = sources_.find(row.source);
                            if (source == sources_.end()) return;
                            put_trial(to_.trials(), number, source->second, entities_.source(row.source)->value.op,
                                      row.trial);
                            ++out_.trials;
                        });
                    });
        });
    }

    Database& from_;
    Store::Impl& to_;
    Entities entities_;
    Salvaged out_;
    std::map<std::int64_t, std::vector<Record>> batches_;  ///< by who brought them
    std::map<RunUuid, Entities::RunRow> runs_;             ///< those that were copied
    std::map<std::int64_t, std::int64_t> sources_;         ///< ids of the new file by those of the broken one
};

/// A database and its trials under their own names in a folder beside their place: they come there whole or not at all.
class FilesInMaking {
public:
    explicit FilesInMaking(const fs::path& to)
        : to_{to}, folder_{fmt::format("{}.new-{}-{}", to.string(), ::getpid(), random_uuid().substr(0, 8))} {}
    FilesInMaking(const FilesInMaking&) = delete;
    FilesInMaking& operator=(const FilesInMaking&) = delete;
    ~FilesInMaking() {
        std::error_code error;
        fs::remove_all(folder_, error);
    }

    fs::path database() const { return folder_ / to_.filename(); }

    /// The trials first: who sees the database finds them beside it. Their bytes are on the disk before they have their
    /// names, and the names when this returns. Who dies between the two leaves each whole: left_between().
    void put_in_place() const {
        for (const fs::path& file : {trials_path(database()), database()})
            if (!sync_file(file)) throw not_made(to_, errno);
        move(trials_path(database()), trials_path(to_));
        sync_folder_of(to_);
        try {
            move(database(), to_);
        } catch (const Error&) {
            ::unlink(trials_path(to_).c_str());
            throw;
        }
        sync_folder_of(to_);
    }

    /// The database that belongs to the trials at that place, where a salvage ended before it was moved there. In a
    /// folder such as /tmp another user could have put one there to be taken for it.
    static std::optional<fs::path> left_between(const fs::path& to) {
        const auto own = [](const fs::path& file) { return shared_folders_are_allowed() || !untrusted(file); };
        const std::string uuid = own(trials_path(to)) ? uuid_at(trials_path(to)) : std::string{};
        const std::string begin = to.filename().string() + ".new-";
        std::error_code error;
        const fs::path place = to.has_parent_path() ? to.parent_path() : ".";
        for (fs::directory_iterator each{place, error}; each != fs::directory_iterator{}; each.increment(error)) {
            const fs::path database = each->path() / to.filename();
            if (!uuid.empty() && each->path().filename().string().starts_with(begin) && own(database) &&
                uuid_at(database) == uuid)
                return database;
        }
        return std::nullopt;
    }

    /// A failure in the folder as one of the place.
    Error told_of_target(const Error& failure) const {
        std::string message = failure.what();
        const auto tell = [&](const std::string& folder, const std::string& place) {
            for (std::size_t at = 0; (at = message.find(folder, at)) != std::string::npos; at += place.size())
                message.replace(at, folder.size(), place);
        };
        const fs::path place = to_.parent_path();
        tell(shown(folder_ / to_.filename()), shown(to_));
        tell(shown(folder_), place.empty() ? "." : shown(place));
        std::string help = failure.help();
        constexpr std::string_view flag = " with --db";  // which a salvage does not take
        if (const std::size_t at = help.find(flag); at != std::string::npos) help.erase(at, flag.size());
        // SQLite calls it no full disk where the shared memory of a write-ahead log does not fit.
        if (help.empty()) help = "free some space, or name another place";
        return Error{failure.kind(), message, help, failure.where()};
    }

private:
    static void move(const fs::path& from, const fs::path& to) {
        if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
        // A file system, a kernel or a sandbox that knows no such renaming.
        int why = errno;
        std::error_code error;
        if (why == EINVAL || why == ENOSYS) {
            why = EEXIST;
            if (!fs::exists(to, error)) {
                if (::rename(from.c_str(), to.c_str()) == 0) return;
                why = errno;
            }
        }
        throw not_made(to, why);
    }

    static Error not_made(const fs::path& to, int why) {
        return Error{Error::Kind::store, fmt::format("'{}' cannot be made: {}", shown(to), std::strerror(why)),
                     why == ENOSPC || why == EDQUOT || why == EIO ? "free some space, or name another place"
                                                                  : "name a new file"};
    }

    /// Of a database that may be anything; empty: it is none.
    static std::string uuid_at(const fs::path& database) {
        if (probe(database).kind != FileKind::ours) return {};
        try {
            return Database::open(database, Database::Access::read, std::chrono::milliseconds{0})
                .text_of("SELECT value FROM meta WHERE key = 'db_uuid'");
        } catch (const DatabaseFailure&) {
            return {};
        }
    }

    const fs::path to_, folder_;
};

/// All that was committed comes into the file itself: what a write-ahead log still holds when a database is closed is
/// lost where there is no room for it, and nobody is told.
void write_out(Database& database) {
    Query checkpoint = database.query("PRAGMA wal_checkpoint(TRUNCATE)");
    if (checkpoint.step() && checkpoint.integer(0) != 0)
        throw DatabaseFailure{SQLITE_BUSY, "its write-ahead log could not be written out"};
}

Error trials_there(const fs::path& to) {
    const std::string what = fmt::format("'{}' is there already", shown(trials_path(to)));
    const auto database = FilesInMaking::left_between(to);
    if (!database) return Error{Error::Kind::usage, what, "name a new file"};
    return Error{Error::Kind::usage,
                 fmt::format("{}: a salvage ended when its trials were there and its records still in '{}', both whole",
                             what, shown(*database)),
                 fmt::format("mv {} {} finishes it; or remove both, or name a new file", shell_word(database->string()),
                             shell_word(to.string()))};
}

std::optional<Database> trials_beside(const fs::path& from) {
    try {
        Database trials = open_broken(trials_path(from));
        return trials;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

}  // namespace

Salvaged salvage(const fs::path& from, const fs::path& to) {
    std::error_code error;
    const FileProbe found = probe(from);
    const FileKind kind = found.kind;
    if (kind == FileKind::absent)
        throw Error{Error::Kind::usage, fmt::format("there is no '{}'", shown(from)), "name a broken database"};
    if (kind == FileKind::unreadable)
        throw Error{Error::Kind::usage, fmt::format("'{}' cannot be read: {}", shown(from), found.trouble),
                    "name a broken database"};
    if (fs::exists(to, error))
        throw Error{Error::Kind::usage, fmt::format("'{}' is there already", shown(to)), "name a new file"};
    if (kind == FileKind::foreign || kind == FileKind::newer)
        throw Error{Error::Kind::usage,
                    fmt::format("'{}' is {}", shown(from),
                                kind == FileKind::newer ? "of a newer autotune" : "no autotune database"),
                    "name a broken database of this version"};
    if (fs::exists(trials_path(to), error)) throw trials_there(to);
    if (!to.has_filename())
        throw Error{Error::Kind::usage, fmt::format("'{}' names a folder", shown(to)), "name a new file"};
    if (const auto why = shared_folders_are_allowed() ? std::nullopt : untrusted(to))
        throw Error{
            Error::Kind::usage,
            fmt::format("no database is made there: {}, and whoever can write there can run code here", why->why),
            fmt::format("{}, or set AUTOTUNE_ALLOW_SHARED=1 where all who can are trusted", why->remedy)};
    try {
        Database broken = open_broken(from);
        std::optional<Database> trials = trials_beside(from);
        sweep_unfinished(to.has_parent_path() ? to.parent_path() : ".", to.filename().string());
        const FilesInMaking making{to};
        Salvaged salvaged;
        try {
            Store store = Store::open({.path = making.database()});
            if (store.path().empty() || store.state().starts_with("spool"))
                throw Error{Error::Kind::store, fmt::format("'{}' cannot be written: {}", shown(to), store.state()),
                            "name a file on a local disk"};
            salvaged = Upkeep::copy_readable(broken, trials ? &*trials : nullptr, store);
        } catch (const Error& failure) {
            throw making.told_of_target(failure);
        }
        making.put_in_place();
        return salvaged;
    } catch (const DatabaseFailure& failure) {
        const bool locks = DatabaseFile{from}.may_be_locked();
        throw Error{Error::Kind::store,
                    fmt::format("nothing of '{}' can be read: {}", shown(from),
                                locks ? failure.what() : "its file system has no locks"),
                    !locks           ? "copy it to a local disk, and name the copy"
                    : failure.busy() ? std::string{locked_help}
                                     : std::string{}};
    }
}

Salvaged Upkeep::copy_readable(Database& from, Database* trials, Store& to) {
    Salvaged begun;
    const int schema = schema_of(from);
    std::optional<Database> lifted;
    if (schema > 0 && schema < schema_version) lifted.emplace(Lifting{from}.run(begun));
    const Salvaged salvaged = Salvage{lifted ? *lifted : from, *to.impl_, begun}.run(trials);
    for (const bool in_trials : {false, true}) {
        try {
            write_out(in_trials ? to.impl_->trials() : to.impl_->tune());
        } catch (const DatabaseFailure& failure) {
            throw to.impl_->error_of(failure, "written", in_trials);
        }
    }
    return salvaged;
}

}  // namespace autotune
