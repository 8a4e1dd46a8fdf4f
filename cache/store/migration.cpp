#include "cache/store/migration.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "cache/store/location.h"
#include "cache/store/released_steps.h"
#include "cache/store/writer_lock.h"

namespace autotune {

namespace fs = std::filesystem;

namespace {

void take_steps(Database& database, bool trials, std::span<const Migration> steps, int to) {
    const int from = schema_of(database);
    int min_reader = 0;
    for (int at = from; at < to; ++at) {
        const auto step = std::ranges::find(steps, at, &Migration::from);
        if (step == steps.end()) throw DatabaseFailure{SQLITE_ERROR, "this program knows no way there"};
        if (const auto change = trials ? step->trials : step->tune) change(database);
        min_reader = std::max(min_reader, step->min_reader);
    }
    database.query("UPDATE meta SET value = ? WHERE key = 'min_reader' AND CAST(value AS INTEGER) < ?")
        .bind(std::to_string(min_reader), min_reader)
        .run();
    database.query("UPDATE meta SET value = value + 1 WHERE key = 'generation'").run();
    database.execute(fmt::format("PRAGMA user_version = {}", to).c_str());
    require_our_schema(database, trials ? trials_schema : tune_schema);
}

MigrationFailure failed_on_the_way(const DatabaseFailure& failure, int from, int to) {
    return MigrationFailure{failure.code(),
                            fmt::format("has schema {} and cannot be brought to {}: {}", from, to, failure.cause())};
}

fs::path copy_of(const fs::path& path, int schema) { return fmt::format("{}.schema-{}", path.string(), schema); }

/// A copy that has its name is whole. The file does not change meanwhile: its writers wait.
void keep_copy(const fs::path& path, const fs::path& copy) {
    const fs::path making = copy.string() + ".new";
    ::unlink(making.c_str());  // of a process that was killed
    const int file = ::open(making.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) throw DatabaseFailure{errno == ENOSPC ? SQLITE_FULL : SQLITE_CANTOPEN, "no copy can be made first"};
    ::close(file);
    try {
        Database from = Database::open(path, Database::Access::read, std::chrono::milliseconds{0});
        Database::open(making, Database::Access::write, std::chrono::milliseconds{0}).copy_from(from);
        if (::rename(making.c_str(), copy.c_str()) != 0)
            throw DatabaseFailure{SQLITE_CANTOPEN, "no copy can be made first"};
    } catch (const DatabaseFailure&) {
        ::unlink(making.c_str());
        ::unlink((making.string() + "-journal").c_str());
        throw;
    }
}

constexpr Migration released_steps[] = {
    {.from = 1, .min_reader = 1, .tune = tell_who_brought_rows},
    {.from = 2, .min_reader = 3, .tune = say_nothing_twice, .trials = leave_problems_to_runs}};

}  // namespace

std::span<const Migration> migrations() noexcept { return released_steps; }

int schema_of(Database& database) { return static_cast<int>(database.integer_of("PRAGMA user_version").value_or(0)); }

void migrate(Database& database, bool trials, std::span<const Migration> steps, int to) {
    const int from = schema_of(database);
    if (from >= to) return;
    try {
        Transaction transaction{database};
        take_steps(database, trials, steps, to);
        transaction.commit();
    } catch (const DatabaseFailure& failure) {
        throw failed_on_the_way(failure, from, to);
    }
}

void migrate_file(const fs::path& path, bool trials, std::chrono::milliseconds patience,
                  std::span<const Migration> steps, int to) {
    WriterLock lock{path};
    const WriterTurn turn{lock, patience};
    if (!turn.held()) throw DatabaseFailure{SQLITE_BUSY, "another process writes to it"};
    Database database = Database::open(path, Database::Access::write, patience);
    choose_journal(database);
    const int from = schema_of(database);
    if (from >= to) return;  // another process has done it
    if (const std::string found = database.text_of("PRAGMA quick_check(1)"); found != "ok")
        throw DatabaseFailure{SQLITE_CORRUPT, found};  // before a sound copy gives way to one of this
    const fs::path copy = copy_of(path, from);
    try {
        Transaction transaction{database};
        keep_copy(path, copy);
        take_steps(database, trials, steps, to);
        transaction.commit();
    } catch (const DatabaseFailure& failure) {
        if (failure.busy() || failure.corrupt()) throw;
        if (failure.full()) ::unlink(copy.c_str());  // it takes the space that others want
        throw failed_on_the_way(failure, from, to);
    }
    ::unlink(copy.c_str());
}

void remove_copies(const fs::path& path) {
    const FileProbe found = probe(path);
    if (found.kind != FileKind::ours || found.schema != schema_version) return;
    for (int schema = 0; schema < schema_version; ++schema) {
        const fs::path copy = copy_of(path, schema);
        for (const char* part : {"", ".new", ".new-journal"}) ::unlink((copy.string() + part).c_str());
    }
}

}  // namespace autotune
