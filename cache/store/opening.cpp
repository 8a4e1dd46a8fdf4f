#include "cache/store/opening.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sodium.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <vector>

#include "autotune/error.h"
#include "cache/store/database_file.h"
#include "cache/store/file.h"
#include "cache/store/json.h"
#include "cache/store/location.h"
#include "cache/store/migration.h"
#include "cache/store/schema.h"
#include "cache/store/writer_lock.h"

namespace autotune {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view set_meta = "INSERT INTO meta (key, value) VALUES (?, ?)";

/// Writes the schema and what identifies the file. `uuid` ties trials.db to its tune.db.
void fill_new(Database& database, const char* schema, const std::string& uuid) {
    database.execute(
        fmt::format("BEGIN; PRAGMA application_id = {}; PRAGMA user_version = {}", application_id, schema_version)
            .c_str());
    database.execute(schema);
    database.query(set_meta).bind("db_uuid", uuid).run();
    database.query(set_meta).bind("min_reader", std::to_string(min_reader)).run();
    database.query(set_meta).bind("created_by", "autotune " AUTOTUNE_VERSION).run();
    database.query(set_meta).bind("generation", "0").run();
    database.execute("COMMIT");
}

Database new_in_memory(const char* schema, const std::string& uuid) {
    Database database = Database::in_memory();
    fill_new(database, schema, uuid);
    return database;
}

bool create_private(const fs::path& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return file >= 0 && ::close(file) == 0;
}

/// In a folder such as /tmp another user could put a journal beside a database, which SQLite would roll into it: so it
/// has one, empty, before anything is read. False: it is another's.
bool has_own_journal(const fs::path& path) {
    const fs::path file_itself = behind_links(path);
    if (!others_may_add_files(file_itself)) return true;
    const int file =
        ::open((file_itself.string() + "-journal").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    const bool own = file >= 0 && !may_be_of_others(file);
    if (file >= 0) ::close(file);
    return own;
}

/// Makes the file under another name and links it into place, so that of several creators one wins and nobody ever sees
/// half a schema. Trials log ahead where that is safe, since a search commits each of them. A tune.db has a rollback
/// journal: whoever copies, embeds or reads it has all of it in one file, and nothing is written beside it to read it.
/// Returns 0, or the errno of what is in the way.
int create_file(const fs::path& path, bool trials, const std::string& uuid) {
    const fs::path making = fmt::format("{}.new-{}-{}", path.string(), ::getpid(), random_uuid().substr(0, 8));
    if (!create_private(making)) return errno;
    int trouble = EIO;
    try {
        {
            Database database = Database::open(making, Database::Access::write, std::chrono::milliseconds{0});
            if (trials && write_ahead_log_is_safe()) database.query("PRAGMA journal_mode = WAL").run();
            fill_new(database, trials ? trials_schema : tune_schema, uuid);
        }
        if (::link(making.c_str(), path.c_str()) == 0 || errno == EEXIST ||
            ::renameat2(AT_FDCWD, making.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0 || errno == EEXIST)
            trouble = 0;
        else
            trouble = errno;
    } catch (const DatabaseFailure& failure) {
        if (failure.full()) trouble = ENOSPC;
        if (!DatabaseFile{making}.may_be_locked()) trouble = ENOLCK;
    }
    remove_database(making);
    return trouble;
}

bool is_full(int trouble) noexcept { return trouble == ENOSPC || trouble == EDQUOT; }

/// What keeps something from being made in a folder.
std::string why_not_made(const fs::path& folder, int trouble) {
    if (is_full(trouble)) return fmt::format("the disk of '{}' is full", shown(folder));
    if (trouble == EACCES || trouble == EROFS || trouble == EPERM)
        return fmt::format("'{}' is not writable", shown(folder));
    return std::generic_category().message(trouble);
}

/// Of the folders on the way to a file, what keeps the first that is missing from being made.
std::string why_no_folder(fs::path folder, int trouble) {
    std::error_code error;
    while (folder.has_relative_path() && !fs::exists(fs::symlink_status(folder, error))) folder = folder.parent_path();
    if (folder.empty()) folder = ".";
    if (const std::string link = link_to_nothing(folder); !link.empty())
        return fmt::format("'{}' {}", shown(folder), link);
    if (!fs::is_directory(folder, error)) return fmt::format("'{}' is no folder", shown(folder));
    return why_not_made(folder, trouble);
}

/// The file is sound enough to be asked: its schema can be read and it knows who it is.
std::string read_uuid(Database& database) { return database.text_of("SELECT value FROM meta WHERE key = 'db_uuid'"); }

/// A reader cannot roll back what a killed writer left: a writer has to. It changes nothing that was committed.
void roll_back_leftover(const fs::path& path, const Store::Options& options) {
    if (const auto why = options.allow_shared_folder ? std::nullopt : untrusted(path))
        throw DatabaseFailure{SQLITE_CANTOPEN, why->why};
    Database database = Database::open(path, Database::Access::write, options.patience);
    read_uuid(database);
}

Database open_unchanging(const fs::path& path, const char* schema) {
    Database database = Database::open_immutable(path);
    require_our_schema(database, schema);
    read_uuid(database);
    return database;
}

/// On media that cannot be written to, SQLite opens no file in write-ahead-log mode unless its log lies beside it.
/// Where there is none the file is whole: it is read as it is now. Not as an immutable one, since others may write to
/// it.
Database read_without_log(const fs::path& path, const char* schema) {
    std::error_code error;
    const fs::path log = path.string() + "-wal";
    const auto changed = fs::last_write_time(path, error);
    const DatabaseFile file{path};
    std::vector<std::byte> bytes(file.size());
    if ((fs::file_size(log, error) > 0 && !error) || bytes.size() < 100 || !file.read(bytes) ||
        changed != fs::last_write_time(path, error))
        throw DatabaseFailure{
            SQLITE_CANTOPEN,
            fmt::format("its last writes are still in '{}', and its folder is not writable", log.filename().string())};
    bytes[18] = bytes[19] = std::byte{1};  // of the rollback kind
    Database whole = Database::of_bytes(bytes), database = Database::in_memory();
    database.copy_from(whole);
    require_our_schema(database, schema);
    read_uuid(database);
    return database;
}

/// A log ahead needs files beside the database also to read it, which the last one to close it takes away only if it
/// may write.
Database open_to_read(const fs::path& path, std::chrono::milliseconds patience) {
    if (!write_ahead_log_is_safe() || !probe(path).write_ahead_log)
        return Database::open(path, Database::Access::read, patience);
    Database database = Database::open(path, Database::Access::write, patience);
    database.execute("PRAGMA query_only = ON");
    return database;
}

Database open_file(const fs::path& path, const char* schema, Database::Access access, const Store::Options& options) {
    try {
        Database database = access == Database::Access::read ? open_to_read(path, options.patience)
                                                             : Database::open(path, access, options.patience);
        require_our_schema(database, schema);
        read_uuid(database);
        return database;
    } catch (const DatabaseFailure& failure) {
        const int code = failure.code() & 0xff;
        const bool unwritable = code == SQLITE_CANTOPEN || failure.code() == SQLITE_READONLY_DIRECTORY ||
                                failure.code() == SQLITE_READONLY_CANTINIT || failure.full();
        if (unwritable && access == Database::Access::read && probe(path).write_ahead_log)
            return read_without_log(path, schema);
        if (failure.code() != SQLITE_READONLY_ROLLBACK && failure.code() != SQLITE_READONLY_RECOVERY) throw;
        roll_back_leftover(path, options);
        Database database = Database::open(path, access, options.patience);
        require_our_schema(database, schema);
        return database;
    }
}

class Opening {
public:
    Opening(const Store::Options& options, std::span<const Migration> steps) : options_{options}, steps_{steps} {
        out_.own_place = options.path.empty() && !std::getenv("AUTOTUNE_DB");
        if (options.mode != Store::Mode::memory) named_ = options.path.empty() ? Store::default_path() : options.path;
        out_.path = behind_links(named_);
    }

    Opened run() {
        if (options_.mode == Store::Mode::memory) return in_memory("in memory");
        if (out_.path.empty()) return fall_back("there is no home folder for the database (HOME is not set)");
        if (const auto why = untrusted(named_); why && !options_.allow_shared_folder) {
            const std::string what = fmt::format("{}, and whoever can write there can run code here", why->why);
            if (out_.own_place) return fall_back(what);
            throw Error{Error::Kind::usage, fmt::format("the database is not used: {}", what),
                        fmt::format("{}, or set AUTOTUNE_ALLOW_SHARED=1 where all who can are trusted", why->remedy)};
        }
        const auto network = network_file_system(out_.path);
        if (network)
            network_ = *network;
        else if (options_.spool_only)
            network_ = "a file system of several hosts";
        try {
            return by_kind(probe(out_.path));
        } catch (const MigrationFailure& failure) {
            return not_migrated(failure);
        } catch (const DatabaseFailure& failure) {
            if (!failure.corrupt() && failure.code() != SQLITE_ERROR) return unusable(failure);
            return damaged(failure.what());
        }
    }

private:
    bool wants_write() const noexcept { return options_.mode == Store::Mode::write; }
    std::string name() const { return shown(out_.path); }
    void warn(const std::string& sentence) const {
        if (options_.warn) options_.warn(sentence);
    }

    Opened in_memory(std::string state) {
        const std::string uuid = random_uuid();
        out_.tune = new_in_memory(tune_schema, uuid);
        out_.trials = new_in_memory(trials_schema, uuid);
        out_.where = Opened::Where::memory;
        out_.state = std::move(state);
        return std::move(out_);
    }

    Opened fall_back(const std::string& why) {
        warn(fmt::format("{}, so what this run finds is kept in memory only", why));
        return in_memory("memory: " + why);
    }

    Opened unusable(const DatabaseFailure& failure) {
        if (const DatabaseFile file{out_.path}; file.error() == 0 && !file.may_be_locked()) {
            const std::string what = fmt::format("'{}' cannot be opened: its file system has no locks", name());
            if (out_.own_place) return fall_back(what);
            throw Error{Error::Kind::store, what, "name a database on a local disk with --db"};
        }
        if (failure.busy() && wants_write()) {  // found by a later `db compact`, rather than lost with this process
            const fs::path path = out_.path;
            warn(fmt::format("'{}' is locked by another process, so records go to spool files beside it", name()));
            Opened spool = in_memory(fmt::format("spool files: {} is locked", shown(path)));
            spool.path = path;
            spool.where = Opened::Where::spool;
            return spool;
        }
        if (failure.busy())
            throw Error{Error::Kind::store, fmt::format("'{}' is locked by another process", name()),
                        std::string{locked_help}};
        if (out_.own_place) return fall_back(fmt::format("'{}' cannot be opened ({})", name(), failure.cause()));
        throw Error{Error::Kind::store, fmt::format("'{}' cannot be opened: {}", name(), failure.cause())};
    }

    Opened by_kind(const FileProbe& found) {
        switch (found.kind) {
            case FileKind::absent:
                return absent();
            case FileKind::ours:
                return present(found);
            case FileKind::newer:
                return newer(found);
            case FileKind::truncated:
                return damaged("it is shorter than its header says");
            case FileKind::foreign:
                return foreign();
            case FileKind::unreadable:
                return unreadable(found.trouble);
        }
        return foreign();
    }

    Opened absent() {
        if (const std::string link = link_to_nothing(out_.path); !link.empty()) {
            const std::string what = fmt::format("'{}' {}", name(), link);
            if (out_.own_place) return fall_back(what);
            throw Error{Error::Kind::usage, what, "remove the link, or name another file with --db"};
        }
        if (!wants_write()) return in_memory(fmt::format("nothing is stored in {} yet", name()));
        const fs::path folder = out_.path.parent_path();
        if (!folder.empty() && !make_private_folder(folder)) {
            const int trouble = errno;
            return not_made(why_no_folder(folder, trouble), is_full(trouble));
        }
        if (!network_.empty()) return spooled(false);
        if (const int trouble = create_file(out_.path, false, random_uuid()))
            return not_made(why_not_made(folder.empty() ? "." : folder, trouble), is_full(trouble));
        return present(probe(out_.path));
    }

    Opened not_made(const std::string& why, bool full = false) {
        if (out_.own_place) return fall_back(fmt::format("the database '{}' cannot be made: {}", name(), why));
        throw Error{full ? Error::Kind::store : Error::Kind::usage,
                    fmt::format("the database '{}' cannot be made: {}", name(), why),
                    full ? "free some space, or name another place with --db" : "name another place with --db"};
    }

    Opened present(const FileProbe& found) {
        if (!network_.empty() && wants_write()) return spooled(true);
        const bool writable =
            ::access(out_.path.c_str(), W_OK) == 0 &&
            ::access(out_.path.parent_path().empty() ? "." : out_.path.parent_path().c_str(), W_OK) == 0;
        if (wants_write() && !writable) {
            copy_file();
            warn(fmt::format("'{}' is not writable, so what this run finds is kept in memory only", name()));
            out_.state = fmt::format("memory: {} is not writable", name());
            return std::move(out_);
        }
        if (options_.immutable && !wants_write()) {
            out_.tune = open_unchanging(out_.path, tune_schema);
            if (found.schema < schema_version) out_.tune = current_copy(out_.tune, false);
            out_.trials = new_in_memory(trials_schema, read_uuid(out_.tune));
            out_.where = Opened::Where::file;
            out_.state = fmt::format("{}, taken to stay as it is", name());
            return std::move(out_);
        }
        if (wants_write() && !options_.allow_shared_folder && !has_own_journal(out_.path))
            throw DatabaseFailure{SQLITE_CANTOPEN, fmt::format("'{}-journal' is another user's", name())};
        const auto access = wants_write() ? Database::Access::write : Database::Access::read;
        if (found.schema < schema_version && wants_write()) migrate_file(out_.path, false, options_.patience, steps_);
        out_.tune = open_file(out_.path, tune_schema, access, options_);
        if (wants_write()) choose_journal(out_.tune);
        if (schema_of(out_.tune) < schema_version) {  // a reader writes nothing, so it brings a copy up to date
            out_.on_disk = std::move(out_.tune);
            out_.tune = current_copy(*out_.on_disk, false);
        }
        open_trials(access);
        out_.where = Opened::Where::file;
        out_.may_write = wants_write();
        Database& file = out_.on_disk ? *out_.on_disk : out_.tune;
        out_.state = fmt::format("{} in {} mode", name(),
                                 file.text_of("PRAGMA journal_mode") == "wal" ? "write-ahead-log" : "rollback");
        return std::move(out_);
    }

    /// Trials are worth less than records: where their file is broken or another's, a search goes on without it.
    void open_trials(Database::Access access) {
        const fs::path path = trials_path(out_.path);
        const std::string uuid = read_uuid(out_.tune);
        std::string distrust;
        if (const auto found = options_.allow_shared_folder ? std::nullopt : untrusted(path)) distrust = found->why;
        // One may have come since.
        if (distrust.empty() && access == Database::Access::write && !options_.allow_shared_folder &&
            !has_own_journal(path))
            distrust = fmt::format("'{}-journal' is another user's", shown(path));
        if (!distrust.empty()) warn(fmt::format("{}, so trials are kept in memory only", distrust));
        for (int attempt = 0; attempt < 2 && distrust.empty(); ++attempt) {
            const FileProbe found = probe(path);
            const FileKind kind = found.kind;
            if (const std::string link = link_to_nothing(path); kind == FileKind::absent && !link.empty()) {
                warn(fmt::format("'{}' {}, so trials are kept in memory only", shown(path), link));
                break;
            }
            if (kind == FileKind::unreadable) {  // it may be sound, so it is not set aside
                warn(fmt::format("'{}' cannot be read: {}, so trials are kept in memory only", shown(path),
                                 found.trouble));
                break;
            }
            try {
                if (kind == FileKind::absent &&
                    (access == Database::Access::read || create_file(path, true, uuid) != 0))
                    break;
                const bool read = access == Database::Access::read;
                if (kind == FileKind::absent || kind == FileKind::ours || (kind == FileKind::newer && read)) {
                    Database trials = open_file(path, trials_schema, access, options_);
                    if (read_uuid(trials) == uuid && (kind != FileKind::newer || readable_here(trials))) {
                        if (kind == FileKind::ours && found.schema < schema_version) bring_trials(trials, path, read);
                        if (!read) choose_journal(trials);
                        out_.trials = std::move(trials);
                        return;
                    }
                }
            } catch (const MigrationFailure& failure) {
                warn(fmt::format("'{}' {}, so trials are kept in memory only", shown(path), failure.what()));
                break;
            } catch (const DatabaseFailure& failure) {
                if (!failure.corrupt()) throw;
            }
            // Ours, but damaged or of a tune.db that is gone.
            const bool ours = kind == FileKind::ours || kind == FileKind::truncated || out_.own_place;
            const fs::path to = access == Database::Access::read || !ours ? fs::path{} : set_aside(path);
            if (to.empty()) {
                warn(fmt::format("'{}' does not belong to '{}', so trials are kept in memory only", shown(path),
                                 name()));
                break;
            }
            if (kind == FileKind::ours || kind == FileKind::truncated) continue;  // that its tune.db went was said
            warn(fmt::format("'{}' does not belong to '{}', so it was set aside as '{}' and an empty one begun",
                             shown(path), name(), to.filename().string()));
        }
        out_.trials = new_in_memory(trials_schema, uuid);
    }

    void bring_trials(Database& trials, const fs::path& path, bool in_memory) {
        if (in_memory) {
            trials = current_copy(trials, true);
            return;
        }
        migrate_file(path, true, options_.patience, steps_);
        trials = open_file(path, trials_schema, Database::Access::write, options_);
    }

    /// The same rows in memory, with today's schema.
    Database current_copy(Database& of, bool trials) const {
        Database copy = Database::in_memory();
        copy.copy_from(of);
        migrate(copy, trials, steps_);
        return copy;
    }

    /// Everything the files hold, in memory.
    void copy_file() {
        Database tune = open_file(out_.path, tune_schema, Database::Access::read, options_);
        out_.tune = current_copy(tune, false);
        open_trials(Database::Access::read);
        out_.trials = current_copy(out_.trials, true);
        out_.on_disk.reset();
        out_.where = Opened::Where::memory;
    }

    /// The file is as it was. At our own place a search goes on with what it holds.
    Opened not_migrated(const MigrationFailure& failure) {
        const std::string what = fmt::format("'{}' {}", name(), failure.what());
        if (!out_.own_place)
            throw Error{Error::Kind::store, what + ", and the file is left as it is",
                        failure.full() ? "free some space, or name another place with --db"
                                       : "name another file with --db, or update autotune"};
        try {
            copy_file();
        } catch (const DatabaseFailure&) {
            return fall_back(what);
        }
        warn(what + ", so what this run finds is kept in memory only");
        out_.state = "memory: " + what;
        return std::move(out_);
    }

    Opened spooled(bool exists) {
        const fs::path path = out_.path;
        if (exists)
            copy_file();
        else
            out_ = in_memory({});
        out_.path = path;
        out_.where = Opened::Where::spool;
        out_.state = fmt::format("spool files: {} is on {}", name(), network_);
        warn(fmt::format("'{}' is on {}, so records go to spool files beside it", name(), network_));
        return std::move(out_);
    }

    bool readable_here(Database& database) const {
        const std::string min_reader = database.text_of("SELECT value FROM meta WHERE key = 'min_reader'");
        return std::atoi(min_reader.c_str()) <= schema_version;
    }

    /// Never set aside: a newer program may use it at this moment.
    Opened newer(const FileProbe& found) {
        const std::string what =
            fmt::format("'{}' has schema {}, this program knows {}", name(), found.schema, schema_version);
        if (!out_.own_place && wants_write())
            throw Error{Error::Kind::usage, what + ", and the file is left as it is",
                        "name another file with --db, or update autotune"};
        Database database = Database::open(out_.path, Database::Access::read, options_.patience);
        if (!readable_here(database)) {
            warn(what + ", so the file is ignored");
            return in_memory("memory: " + what);
        }
        if (!wants_write()) return present(found);
        copy_file();
        warn(what + ", so what this run finds is kept in memory only");
        out_.state = "memory: " + what;
        return std::move(out_);
    }

    Opened foreign() {
        if (!out_.own_place) {
            std::error_code error;
            const bool empty = fs::file_size(out_.path, error) == 0 && !error;
            throw Error{
                Error::Kind::usage,
                fmt::format("'{}' is {}, and is left as it is", name(), empty ? "empty" : "no autotune database"),
                "name another file with --db"};
        }
        return damaged("it is no autotune database");
    }

    /// Whatever it is, it may be sound, so it is not set aside.
    Opened unreadable(const std::string& why) {
        const std::string what = fmt::format("'{}' cannot be read: {}", name(), why);
        if (out_.own_place) return fall_back(what);
        throw Error{Error::Kind::usage, what, "name another file with --db"};
    }

    /// At our own place: set aside once, under the writers' lock, since others see the same damage at the same time.
    Opened damaged(const std::string& why) {
        if (!out_.own_place && is_of_trials())
            throw Error{Error::Kind::usage,
                        fmt::format("'{}' has the trials of a database, and is none itself", name()),
                        "name the database beside it with --db"};
        if (!out_.own_place)
            throw Error{Error::Kind::store, fmt::format("'{}' is damaged: {}", name(), why), std::string{damaged_help}};
        if (!wants_write()) return fall_back(fmt::format("'{}' is damaged ({})", name(), why));
        if (!quarantine(why)) return fall_back(fmt::format("'{}' is damaged ({})", name(), why));
        return absent();
    }

    bool is_of_trials() const {
        try {
            Database database = Database::open(out_.path, Database::Access::read, options_.patience);
            return database.integer_of("SELECT count(*) FROM trial").has_value() &&
                   database.integer_of("SELECT count(*) FROM sqlite_schema WHERE name = 'device'") == 0;
        } catch (const DatabaseFailure&) {
            return false;
        }
    }

    bool quarantine(const std::string& why) {
        WriterLock lock{out_.path};
        const WriterTurn turn{lock, options_.patience};
        if (!turn.held()) return false;
        const FileKind kind = probe(out_.path).kind;
        if (kind == FileKind::absent) return true;
        if (kind == FileKind::unreadable) return false;
        if (kind == FileKind::ours) {
            try {
                open_file(out_.path, tune_schema, Database::Access::read, options_)
                    .query("SELECT count(*) FROM record")
                    .run();
                return true;  // another process has replaced it by now
            } catch (const DatabaseFailure&) {
            }
        }
        const fs::path to = set_aside(out_.path);
        if (to.empty()) return false;
        warn(fmt::format("'{}' is damaged ({}), so it was set aside as '{}' and an empty one begun", name(), why,
                         to.filename().string()));
        return true;
    }

    const Store::Options& options_;
    std::span<const Migration> steps_;
    Opened out_;
    fs::path named_;  ///< may be a link to out_.path
    std::string network_;
};

}  // namespace

std::string random_uuid() {
    std::array<std::byte, 16> bytes;
    randombytes_buf(bytes.data(), bytes.size());
    return to_hex(bytes);
}

Opened open_databases(const Store::Options& options) { return open_databases(options, migrations()); }

Opened open_databases(const Store::Options& options, std::span<const Migration> steps) {
    if (sodium_init() < 0) throw Error{Error::Kind::internal, "libsodium does not start"};
    return Opening{options, steps}.run();
}

Opened open_bytes(std::span<const std::byte> bytes) {
    if (sodium_init() < 0) throw Error{Error::Kind::internal, "libsodium does not start"};
    const auto refused = [](std::string_view why) {
        return Error{Error::Kind::usage, fmt::format("the embedded database is not used: {}", why),
                     "make it with autotune db export"};
    };
    const FileProbe found = probe(bytes);
    if (found.kind == FileKind::newer)
        throw refused(fmt::format("it has schema {}, this program knows {}", found.schema, schema_version));
    if (found.kind == FileKind::truncated) throw refused("it is longer or shorter than its header says");
    if (found.kind != FileKind::ours) throw refused("it is no autotune database");
    if (found.write_ahead_log) throw refused("it is in write-ahead-log mode");
    try {
        Opened out{.state = "embedded in the application"};
        out.tune = Database::of_bytes(bytes);
        if (found.schema < schema_version) {
            Database copy = Database::in_memory();
            copy.copy_from(out.tune);
            migrate(copy, false);
            out.tune = std::move(copy);
        }
        require_our_schema(out.tune, tune_schema);
        out.trials = new_in_memory(trials_schema, read_uuid(out.tune));
        return out;
    } catch (const DatabaseFailure& failure) {
        throw refused(failure.what());
    }
}

void replace_damaged(Opened& opened, const Store::Options& options, bool trials) {
    const fs::path path = trials ? trials_path(opened.path) : opened.path;
    const std::string uuid =
        trials ? opened.tune.text_of("SELECT value FROM meta WHERE key = 'db_uuid'") : random_uuid();
    const fs::path to = set_aside(path);
    if (to.empty() || create_file(path, trials, uuid) != 0)
        throw Error{Error::Kind::store, fmt::format("'{}' is damaged and cannot be replaced", shown(path)),
                    "move it aside, or name another place with --db"};
    Database& fresh = trials ? opened.trials : opened.tune;
    fresh = Database::open(path, Database::Access::write, options.patience);
    choose_journal(fresh);
    if (options.warn)
        options.warn(fmt::format("'{}' is damaged, so it was set aside as '{}' and an empty one begun", shown(path),
                                 to.filename().string()));
    if (!trials) replace_damaged(opened, options, true);  // its rows speak of ids that are gone
}

void reopen_replaced(Opened& opened, const Store::Options& options) {
    const fs::path trials = trials_path(opened.path);
    if (opened.tune.moved()) opened.tune = open_file(opened.path, tune_schema, Database::Access::write, options);
    if (opened.trials.moved()) opened.trials = open_file(trials, trials_schema, Database::Access::write, options);
}

Opened open_for_folding(const fs::path& database, const fs::path& copy, const Store::Options& options) {
    if (!create_private(copy)) throw DatabaseFailure{SQLITE_CANTOPEN, "no file can be made beside it"};
    Opened out{.where = Opened::Where::file, .may_write = true, .path = copy};
    try {
        out.tune = Database::open(copy, Database::Access::write, std::chrono::milliseconds{0});
        if (probe(database).kind == FileKind::absent) {
            fill_new(out.tune, tune_schema, random_uuid());
        } else {
            Database source = open_file(database, tune_schema, Database::Access::read, options);
            out.tune.copy_from(source);
            migrate(out.tune, false);
        }
    } catch (const DatabaseFailure&) {
        remove_database(copy);
        throw;
    }
    return out;
}

bool put_in_place(const fs::path& copy, const fs::path& database) {
    if (!sync_file(copy) || ::rename(copy.c_str(), database.c_str()) != 0) return false;
    sync_folder_of(database);
    return true;
}

void remove_database(const fs::path& path) noexcept {
    ::unlink(path.c_str());
    for (const char* companion : {"-journal", "-wal", "-shm"}) ::unlink((path.string() + companion).c_str());
}

fs::path spool_folder(const fs::path& database) { return database.parent_path() / "spool"; }

}  // namespace autotune
