#include "cache/store/database.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <utility>

#include "cache/store/writers_vfs.h"

namespace autotune {

namespace {

/// Whoever made the file may mean harm, or have been cut off.
constexpr const char* carefully = "PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON";

[[noreturn]] void fail(sqlite3* connection, int code) {
    const int extended = connection ? sqlite3_extended_errcode(connection) : code;
    throw DatabaseFailure{extended ? extended : code, connection ? sqlite3_errmsg(connection) : sqlite3_errstr(code)};
}

void require(sqlite3* connection, int code) {
    if (code != SQLITE_OK) fail(connection, code);
}

/// Nothing that lies in a schema runs: our own has no trigger and no view.
sqlite3* guarded(sqlite3* connection, bool defensive = true) noexcept {
    for (const auto& [option, on] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, defensive ? 1 : 0},
                                     {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                     {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                     {SQLITE_DBCONFIG_ENABLE_VIEW, 0}})
        if (connection) sqlite3_db_config(connection, option, on, nullptr);
    return connection;
}

}  // namespace

bool DatabaseFailure::busy() const noexcept { return (code_ & 0xff) == SQLITE_BUSY || (code_ & 0xff) == SQLITE_LOCKED; }
bool DatabaseFailure::corrupt() const noexcept {
    return (code_ & 0xff) == SQLITE_CORRUPT || (code_ & 0xff) == SQLITE_NOTADB;
}

/// No room for the index of a write-ahead log is told as a fault of the disk.
bool DatabaseFailure::full() const noexcept { return (code_ & 0xff) == SQLITE_FULL || code_ == SQLITE_IOERR_SHMSIZE; }
bool DatabaseFailure::refused() const noexcept { return (code_ & 0xff) == SQLITE_ERROR; }
bool DatabaseFailure::moved() const noexcept { return code_ == SQLITE_READONLY_DBMOVED; }

ColumnType ColumnValue::type() const noexcept { return static_cast<ColumnType>(sqlite3_value_type(value_)); }
std::int64_t ColumnValue::integer() const noexcept { return sqlite3_value_int64(value_); }
double ColumnValue::real() const noexcept { return sqlite3_value_double(value_); }
std::span<const std::byte> ColumnValue::blob() const noexcept {
    const auto* bytes = static_cast<const std::byte*>(sqlite3_value_blob(value_));
    return {bytes, bytes ? static_cast<std::size_t>(sqlite3_value_bytes(value_)) : 0};
}

Query::~Query() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
}

bool Query::step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    fail(connection_, code);
}

std::int64_t Query::integer(int column) const noexcept { return sqlite3_column_int64(statement_, column); }
double Query::real(int column) const noexcept { return sqlite3_column_double(statement_, column); }
bool Query::null(int column) const noexcept { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

ColumnType Query::type(int column) const noexcept {
    return static_cast<ColumnType>(sqlite3_column_type(statement_, column));
}

ColumnValue Query::column(int column) const noexcept { return ColumnValue{sqlite3_column_value(statement_, column)}; }

std::string_view Query::text(int column) const noexcept {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return text ? std::string_view{text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))}
                : std::string_view{};
}

std::span<const std::byte> Query::blob(int column) const noexcept {
    const auto* bytes = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
    return {bytes, bytes ? static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)) : 0};
}

void Query::bind_null(int index) { require(connection_, sqlite3_bind_null(statement_, index)); }
void Query::bind_integer(int index, std::int64_t value) {
    require(connection_, sqlite3_bind_int64(statement_, index, value));
}
void Query::bind_real(int index, double value) { require(connection_, sqlite3_bind_double(statement_, index, value)); }

void Query::bind_text(int index, std::string_view value) {
    // A null pointer would bind NULL, which an empty text is not.
    require(connection_, sqlite3_bind_text64(statement_, index, value.data() ? value.data() : "", value.size(),
                                             SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Query::bind_blob(int index, std::span<const std::byte> value) {
    require(connection_,
            sqlite3_bind_blob64(statement_, index, value.empty() ? static_cast<const void*>("") : value.data(),
                                value.size(), SQLITE_TRANSIENT));
}

void Query::bind_pointer(int index, void* pointer, const char* type) {
    require(connection_, sqlite3_bind_pointer(statement_, index, pointer, type, nullptr));
}

namespace {

/// SQLite has meanings of its own for some names, such as ":memory:" and "file:x", and for none that begins with a
/// folder.
std::filesystem::path name_of_a_file(const std::filesystem::path& path) {
    return path.is_absolute() ? path : "." / path;
}

}  // namespace

Database Database::open(const std::filesystem::path& path, Access access, std::chrono::milliseconds patience) {
    const int flags = (access == Access::write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX;
    sqlite3* connection = nullptr;
    const int code = sqlite3_open_v2(name_of_a_file(path).c_str(), &connection, flags,
                                     access == Access::write ? writers_vfs() : nullptr);
    Database database{guarded(connection)};
    if (code != SQLITE_OK) fail(connection, code);
    sqlite3_extended_result_codes(connection, 1);
    database.patience(patience);
    database.execute("PRAGMA synchronous = NORMAL");
    // As much as a transaction of many rows may change before its pages go to the file, each time after two syncs.
    if (access == Access::write) database.execute("PRAGMA cache_size = -65536");
    database.execute(carefully);
    return database;
}

/// "file:" and the path, with what a URI would read as its own turned into %XX.
Database Database::open_immutable(const std::filesystem::path& path) {
    std::string uri = "file:";
    for (const char c : std::filesystem::absolute(path).string())
        uri +=
            c == '%' || c == '?' || c == '#' ? fmt::format("%{:02x}", static_cast<unsigned char>(c)) : std::string{c};
    uri += "?immutable=1";
    sqlite3* connection = nullptr;
    const int code = sqlite3_open_v2(uri.c_str(), &connection,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, nullptr);
    Database database{guarded(connection)};
    if (code != SQLITE_OK) fail(connection, code);
    sqlite3_extended_result_codes(connection, 1);
    database.execute(carefully);
    return database;
}

Database Database::open_damaged(const std::filesystem::path& path) {
    sqlite3* connection = nullptr;
    const int code =
        sqlite3_open_v2(name_of_a_file(path).c_str(), &connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
    Database database{guarded(connection, false)};  // a defensive one has no writable_schema
    if (code != SQLITE_OK) fail(connection, code);
    sqlite3_extended_result_codes(connection, 1);
    database.patience(std::chrono::seconds{10});
    // First, since the others look at the schema: with it, a file shorter than its header says is read nevertheless.
    database.execute("PRAGMA writable_schema = ON");
    database.execute("PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON");
    return database;
}

Database Database::in_memory() {
    sqlite3* connection = nullptr;
    const int code = sqlite3_open_v2(":memory:", &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    Database database{guarded(connection)};
    if (code != SQLITE_OK) fail(connection, code);
    sqlite3_extended_result_codes(connection, 1);
    return database;
}

Database Database::of_bytes(std::span<const std::byte> bytes) {
    Database database = in_memory();
    const auto size = static_cast<sqlite3_int64>(bytes.size());
    // SQLite takes it as its own to write to; READONLY says that it may not.
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
    require(database.connection_,
            sqlite3_deserialize(database.connection_, "main", data, size, size, SQLITE_DESERIALIZE_READONLY));
    database.execute(carefully);
    return database;
}

Database::Database(Database&& other) noexcept
    : connection_{std::exchange(other.connection_, nullptr)},
      statements_{std::exchange(other.statements_, {})},
      recent_{std::exchange(other.recent_, {})} {}

Database& Database::operator=(Database&& other) noexcept {
    std::swap(connection_, other.connection_);
    std::swap(statements_, other.statements_);
    std::swap(recent_, other.recent_);
    return *this;
}

Database::~Database() {
    for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
    const char* const file = connection_ ? sqlite3_db_filename(connection_, "main") : nullptr;
    const std::string journal = file && *file ? std::string{file} + "-journal" : std::string{};
    sqlite3_close(connection_);
    if (!journal.empty()) forget_journal(journal.c_str());
}

void Database::execute(const char* sql) {
    require(connection_, sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr));
}

Query Database::query(std::string_view sql) {
    Recent& recent = recent_[(reinterpret_cast<std::uintptr_t>(sql.data()) >> 3) % recent_.size()];
    if (recent.sql && *recent.sql == sql) return Query{connection_, recent.statement};
    auto found = statements_.find(sql);
    if (found == statements_.end()) {
        sqlite3_stmt* statement = nullptr;
        require(connection_, sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()),
                                                SQLITE_PREPARE_PERSISTENT, &statement, nullptr));
        found = statements_.emplace(std::string{sql}, statement).first;
    }
    recent = {&found->first, found->second};
    return Query{connection_, found->second};
}

std::string Database::text_of(std::string_view sql) {
    Query row = query(sql);
    return row.step() ? std::string{row.text(0)} : std::string{};
}

std::int64_t Database::last_id() const noexcept { return sqlite3_last_insert_rowid(connection_); }
std::int64_t Database::changes() const noexcept { return sqlite3_changes64(connection_); }

void Database::patience(std::chrono::milliseconds patience) {
    sqlite3_busy_timeout(connection_, static_cast<int>(patience.count()));
}

bool Database::moved() const noexcept {
    int moved = 0;
    return sqlite3_file_control(connection_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

void Database::copy_from(Database& other) {
    sqlite3_backup* backup = sqlite3_backup_init(connection_, "main", other.connection_, "main");
    if (!backup) fail(connection_, SQLITE_ERROR);
    const int code = sqlite3_backup_step(backup, -1);
    const int finished = sqlite3_backup_finish(backup);
    if (code != SQLITE_DONE)
        throw DatabaseFailure{finished ? finished : code, sqlite3_errstr(finished ? finished : code)};
}

Transaction::Transaction(Database& database) : database_{database} { database_.execute("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
    if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
    database_.execute("COMMIT");
    open_ = false;
}

bool write_ahead_log_is_safe() noexcept { return write_ahead_log_is_safe(sqlite3_libversion_number()); }
bool write_ahead_log_is_safe(int version) noexcept { return version >= 3051003 && version != 3052000; }

void choose_journal(Database& database) {
    std::string mode = database.text_of("PRAGMA journal_mode");
    if (mode == "wal" && !write_ahead_log_is_safe()) mode = database.text_of("PRAGMA journal_mode = DELETE");
    if (mode == "delete") database.query("PRAGMA journal_mode = TRUNCATE").run();
}

}  // namespace autotune
