#ifndef AUTOTUNE_CACHE_STORE_DATABASE_H
#define AUTOTUNE_CACHE_STORE_DATABASE_H

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_value;

namespace autotune {

/// A call of SQLite that failed, with its extended result code.
class DatabaseFailure : public std::runtime_error {
public:
    DatabaseFailure(int code, const std::string& message) : std::runtime_error{message}, code_{code} {}
    int code() const noexcept { return code_; }
    bool busy() const noexcept;     ///< another process holds the file
    bool corrupt() const noexcept;  ///< the file is damaged or no database
    bool moved() const noexcept;    ///< another file stands in its place, or none
    bool full() const noexcept;     ///< the disk, or what this user may have of it
    /// For messages: SQLite calls a full disk by other names too.
    const char* cause() const noexcept { return full() ? "the disk is full" : what(); }
    bool refused() const noexcept;  ///< the statement makes no sense there: a table is missing

private:
    int code_;
};

/// What a row holds in a column, whatever the table declares.
enum class ColumnType { integer = 1, real, text, blob, null };

/// A column of a row, until the next step: found once for all that is asked of it. Connections here belong to one
/// thread each, so nothing needs a lock.
class ColumnValue {
public:
    explicit ColumnValue(sqlite3_value* value) noexcept : value_{value} {}
    ColumnType type() const noexcept;
    bool null() const noexcept { return type() == ColumnType::null; }
    std::int64_t integer() const noexcept;
    double real() const noexcept;
    std::span<const std::byte> blob() const noexcept;

private:
    sqlite3_value* value_;
};

/// One use of a prepared statement: bind, then step through the rows; it is reset when the use ends.
class Query {
public:
    Query(sqlite3* connection, sqlite3_stmt* statement) noexcept : connection_{connection}, statement_{statement} {}
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;
    ~Query();

    /// Binds all parameters in order.
    template <class... Values>
    Query& bind(const Values&... values) {
        int index = 0;
        (bind_one(++index, values), ...);
        return *this;
    }
    /// Binds one parameter, the first being 1, where their number is not known before.
    template <class T>
    void bind_at(int index, const T& value) {
        bind_one(index, value);
    }
    /// A pointer for a function or table of ours, which takes it by the name of its type only. It outlives the use.
    void bind_pointer(int index, void* pointer, const char* type);
    /// True while there is a row.
    bool step();
    /// Runs a statement that gives no rows.
    void run() {
        while (step()) {
        }
    }

    std::int64_t integer(int column) const noexcept;
    double real(int column) const noexcept;
    std::string_view text(int column) const noexcept;  ///< until the next step
    std::span<const std::byte> blob(int column) const noexcept;
    bool null(int column) const noexcept;
    ColumnType type(int column) const noexcept;
    ColumnValue column(int column) const noexcept;

private:
    template <class T>
    void bind_one(int index, const T& value) {
        if constexpr (std::is_same_v<T, std::nullptr_t>)
            bind_null(index);
        else if constexpr (std::is_floating_point_v<T>)
            bind_real(index, value);
        else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
            bind_integer(index, static_cast<std::int64_t>(value));
        else if constexpr (std::is_convertible_v<const T&, std::string_view>)
            bind_text(index, value);
        else if constexpr (std::is_convertible_v<const T&, std::span<const std::byte>>)
            bind_blob(index, value);
        else if (value)
            bind_one(index, *value);  // an optional
        else
            bind_null(index);
    }
    void bind_null(int index);
    void bind_integer(int index, std::int64_t value);
    void bind_real(int index, double value);
    void bind_text(int index, std::string_view value);
    void bind_blob(int index, std::span<const std::byte> value);

    sqlite3* connection_;
    sqlite3_stmt* statement_;
};

/// A connection. Statements are prepared once and kept.
class Database {
public:
    enum class Access { read, write };
    static Database open(const std::filesystem::path& path, Access access, std::chrono::milliseconds patience);
    /// A file that nobody changes while it is open: no lock is taken, no change seen.
    static Database open_immutable(const std::filesystem::path& path);
    /// For reading what is left of a broken or cut off file; nobody else writes it.
    static Database open_damaged(const std::filesystem::path& path);
    static Database in_memory();
    /// A database whose bytes stay where they are and are not written to; they outlive the connection.
    static Database of_bytes(std::span<const std::byte> bytes);
    Database(Database&&) noexcept;
    Database& operator=(Database&&) noexcept;
    ~Database();

    void execute(const char* sql);  ///< any number of statements without parameters
    Query query(std::string_view sql);
    /// First column of the first row.
    template <class... Values>
    std::optional<std::int64_t> integer_of(std::string_view sql, const Values&... values) {
        Query row = query(sql);
        row.bind(values...);
        if (!row.step()) return std::nullopt;
        return row.integer(0);
    }
    std::string text_of(std::string_view sql);
    std::int64_t last_id() const noexcept;
    std::int64_t changes() const noexcept;  ///< rows changed by the last statement
    void patience(std::chrono::milliseconds patience);
    /// Whether the file was renamed or removed since it was opened: what is read and written here is seen by nobody.
    bool moved() const noexcept;
    /// Fills this database with all of another; both stay usable.
    void copy_from(Database& other);
    sqlite3* handle() const noexcept { return connection_; }

private:
    explicit Database(sqlite3* connection) noexcept : connection_{connection} {}
    sqlite3* connection_ = nullptr;
    std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
    /// By where the text lies, since most are literals: finding a long text among others takes as long as SQLite does
    /// to answer. What lies there now is compared.
    struct Recent {
        const std::string* sql = nullptr;
        sqlite3_stmt* statement = nullptr;
    };
    std::array<Recent, 64> recent_{};
};

/// BEGIN IMMEDIATE: a transaction that begins by reading and then writes fails at once when another writer came
/// between, whatever the busy timeout. Rolled back unless committed.
class Transaction {
public:
    explicit Transaction(Database& database);
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction();
    void commit();

private:
    Database& database_;
    bool open_ = true;
};

/// True where write-ahead logging is free of the race that 3.51.3 mended.
bool write_ahead_log_is_safe() noexcept;
/// The same of a version of SQLite as its library tells it: 3051003.
bool write_ahead_log_is_safe(int version) noexcept;
/// For a writer, once a connection. Takes a file that a newer library left in write-ahead-log mode out of it, where
/// this one is not to write in it; a rollback journal is emptied after a commit and not removed, so that its name, once
/// on the disk, stays there (writers_vfs.h). Throws DatabaseFailure{busy} while others have the file open.
void choose_journal(Database& database);

}  // namespace autotune
#endif
