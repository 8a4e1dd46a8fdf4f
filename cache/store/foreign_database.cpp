#include "cache/store/foreign_database.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "autotune/error.h"
#include "cache/store/database_file.h"
#include "cache/store/location.h"
#include "cache/store/schema.h"
#include "tuner/model/hashing.h"
#include "tuner/model/printable.h"

namespace autotune {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view imported_help =
    "name a file that autotune db export or autotune db bundle has made, or a tune.db";

Error refused_file(std::string_view name, const std::string& why,
                   const std::string& help = std::string{imported_help}) {
    return Error{Error::Kind::usage, fmt::format("'{}' is not taken in: {}", name, why), help};
}

constexpr std::size_t schema_at = 60;  // user_version, in the header of every database

int big_endian_at(const std::vector<std::byte>& bytes, std::size_t at) {
    unsigned number = 0;
    for (std::size_t i = 0; i < 4; ++i) number = number << 8 | std::to_integer<unsigned>(bytes[at + i]);
    return static_cast<int>(number);
}

/// What the header says, before SQLite sees a byte.
void require_our_header(const std::vector<std::byte>& bytes, std::string_view name) {
    constexpr std::size_t header = 100;
    constexpr std::string_view sqlite_magic{"SQLite format 3\0", 16};
    if (bytes.size() < header || std::memcmp(bytes.data(), sqlite_magic.data(), sqlite_magic.size()) != 0 ||
        big_endian_at(bytes, 68) != application_id)
        throw refused_file(name, "it is no autotune database");
    const int schema = big_endian_at(bytes, schema_at);
    if (schema < 1 || schema > schema_version)
        throw refused_file(name, fmt::format("it has schema {}, this program reads 1 to {}", schema, schema_version),
                           schema > schema_version ? "update autotune, or ask for an export as JSON lines"
                                                   : "ask for an export by a program of today");
}

/// Reading, and the functions that our own questions need.
int allow_reading(void*, int action, const char* first, const char* second, const char*, const char*) {
    const auto is = [](const char* text, std::string_view word) { return text && text == word; };
    switch (action) {
        case SQLITE_SELECT:
        case SQLITE_READ:
            return SQLITE_OK;
        case SQLITE_FUNCTION:
            return is(second, "count") ? SQLITE_OK : SQLITE_DENY;
        case SQLITE_PRAGMA:
            return is(first, "quick_check") ? SQLITE_OK : SQLITE_DENY;
        default:
            return SQLITE_DENY;
    }
}

}  // namespace

std::vector<std::byte> read_foreign_file(const fs::path& path, std::size_t most) {
    const std::string name = shown(path);
    const DatabaseFile file{path, DatabaseFile::Links::refuse};
    if (file.error() == ELOOP)
        throw refused_file(name, "it is a link, and what it points to may change", "name the file itself");
    if (file.error() == EINVAL) throw refused_file(name, "it is no file");
    if (file.error() != 0)
        throw refused_file(name, fmt::format("it cannot be opened: {}", std::strerror(file.error())));
    const std::uint64_t size = file.size();
    if (size == 0) throw refused_file(name, "it is empty");
    if (size > most) throw refused_file(name, fmt::format("it has {} bytes, and {} are allowed", size, most));
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    if (!file.read(bytes)) throw refused_file(name, "it cannot be read, or has shrunk while it was");
    return bytes;
}

struct ForeignDatabase::Deadline {
    std::chrono::seconds time;
    std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now() + time;
    std::atomic<bool> stopped = false;  ///< the file is damaged, or nobody wants it any more
    explicit Deadline(std::chrono::seconds most) : time{most} {}
    static int passed(void* self) noexcept {
        const auto& deadline = *static_cast<Deadline*>(self);
        return deadline.stopped || std::chrono::steady_clock::now() > deadline.at ? 1 : 0;
    }
};

ForeignDatabase::Stop::~Stop() {
    if (deadline) deadline->stopped = true;
}

/// Two connections may read the same bytes, since neither writes.
ForeignDatabase::ForeignDatabase(std::vector<std::byte> bytes, std::string name, const Limits& limits)
    : bytes_{std::move(bytes)},
      deadline_{std::make_shared<Deadline>(limits.time)},
      name_{std::move(name)},
      database_{Database::in_memory()},
      stop_{deadline_} {}

void ForeignDatabase::require_settled(const fs::path& path) {
    for (const char* companion : {"-wal", "-journal"}) {
        std::error_code error;
        const fs::path beside = path.string() + companion;
        if (fs::file_size(beside, error) > 0 && !error)
            throw refused_file(
                shown(path), fmt::format("its last writes are still in '{}'", beside.filename().string()),
                fmt::format("end the programs that use it, then: autotune query --db {}", shell_word(path.string())));
    }
}

ForeignDatabase ForeignDatabase::of(std::vector<std::byte> bytes, std::string name, const Limits& limits) {
    require_our_header(bytes, name);
    const int schema = big_endian_at(bytes, schema_at);
    std::string sha256 = sha256_hex(bytes);
    bytes[18] = bytes[19] = std::byte{1};  // no write-ahead log: it would want files beside it
    ForeignDatabase foreign{std::move(bytes), std::move(name), limits};
    foreign.sha256_ = std::move(sha256);
    foreign.schema_ = schema;
    foreign.ask([&] {
        foreign.database_ = guarded(foreign.bytes_, *foreign.deadline_);
        foreign.require_our_schema(schema);
        foreign.uuid_ = foreign.database_.text_of("SELECT value FROM meta WHERE key = 'db_uuid'");
    });
    constexpr std::size_t uuid_digits = 32;
    const bool word = foreign.uuid_.size() <= uuid_digits && std::ranges::all_of(foreign.uuid_, [](char c) {
                          return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                      });
    if (!word) throw refused_file(foreign.name_, "its db_uuid is none");
    return foreign;
}

void ForeignDatabase::begin_checks() {
    deadline_->at = std::chrono::steady_clock::now() + deadline_->time;
    const std::span<const std::byte> whole{bytes_};
    checks_ = std::async(std::launch::async | std::launch::deferred, [whole, deadline = deadline_] {
                  return checked(whole, deadline);
              }).share();
}

Database ForeignDatabase::guarded(std::span<const std::byte> bytes, Deadline& deadline) {
    Database database = Database::of_bytes(bytes);
    sqlite3* db = database.handle();
    for (const auto& [option, on] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                     {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                     {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                     {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                     {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
                                     {SQLITE_DBCONFIG_DQS_DDL, 0},
                                     {SQLITE_DBCONFIG_DQS_DML, 0}})
        sqlite3_db_config(db, option, on, nullptr);
    for (const auto& [limit, most] : {std::pair{SQLITE_LIMIT_LENGTH, 1 << 20},
                                      {SQLITE_LIMIT_SQL_LENGTH, 1 << 14},
                                      {SQLITE_LIMIT_COLUMN, 32},
                                      {SQLITE_LIMIT_EXPR_DEPTH, 20},
                                      {SQLITE_LIMIT_COMPOUND_SELECT, 2},
                                      {SQLITE_LIMIT_VDBE_OP, 25'000},
                                      {SQLITE_LIMIT_FUNCTION_ARG, 8},
                                      {SQLITE_LIMIT_ATTACHED, 0},
                                      {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64},
                                      {SQLITE_LIMIT_VARIABLE_NUMBER, 16},
                                      {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                                      {SQLITE_LIMIT_WORKER_THREADS, 0}})
        sqlite3_limit(db, limit, most);
    database.execute("PRAGMA query_only = ON");
    constexpr int steps_between_looks = 10'000;
    sqlite3_progress_handler(db, steps_between_looks, Deadline::passed, &deadline);
    sqlite3_set_authorizer(db, allow_reading, nullptr);
    return database;
}

ForeignDatabase::Checks ForeignDatabase::checked(std::span<const std::byte> bytes,
                                                 const std::shared_ptr<Deadline>& deadline) {
    try {
        const std::string found = guarded(bytes, *deadline).text_of("PRAGMA quick_check(1)");
        if (found == "ok") return {};
        deadline->stopped = true;
        return {.damage = found};
    } catch (const DatabaseFailure& failure) {
        deadline->stopped = true;
        return {.damage = failure.what(), .timed_out = (failure.code() & 0xff) == SQLITE_INTERRUPT};
    }
}

void ForeignDatabase::require_our_schema(int version) {
    const SchemaRows found = schema_rows(database_);
    const SchemaRows& ours = tune_schema_rows(version);
    for (const auto& row : found)
        if (!ours.contains(row))
            throw refused_file(name_, fmt::format("it holds the {} '{}', which no database of autotune has",
                                                  std::get<0>(row), std::get<1>(row).substr(0, 64)));
    for (const auto& row : ours)
        if (!found.contains(row))
            throw refused_file(name_, fmt::format("it lacks the {} '{}'", std::get<0>(row), std::get<1>(row)));
}

void ForeignDatabase::require_soundness() const {
    const Checks& found = checks_.get();
    if (found.timed_out) throw refused_file(name_, "reading it takes longer than its size can explain");
    if (!found.damage.empty()) throw refused_file(name_, fmt::format("it is damaged: {}", found.damage));
}

void ForeignDatabase::throw_unreadable(const DatabaseFailure& failure) const {
    if (checks_.valid()) require_soundness();  // which can say more, and may have ended the reading
    if ((failure.code() & 0xff) == SQLITE_INTERRUPT)
        throw refused_file(name_, "reading it takes longer than its size can explain");
    throw refused_file(name_, fmt::format("it is damaged: {}", failure.what()));
}

}  // namespace autotune
