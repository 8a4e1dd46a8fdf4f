#include "cache/store/row_feed.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <new>
#include <string>

namespace autotune {

namespace {

constexpr const char* feed_name = "autotune_feed";
constexpr const char* feed_met_name = "autotune_feed_met";
constexpr const char* feed_pointer = "autotune::Feeding";  ///< the type of the pointer that a statement is given

/// The rows of one statement.
struct Feeding {
    const FedRows& rows;
    std::size_t count = 0, at = 0;   ///< the row that SQLite has
    std::vector<std::size_t> met{};  ///< rows whose place was taken
};

struct FeedCursor : sqlite3_vtab_cursor {
    Feeding* feeding = nullptr;
};

int feed_connect(sqlite3* db, void*, int, const char* const*, sqlite3_vtab** table, char**) noexcept {
    try {
        std::string sql = "CREATE TABLE feed(";
        for (int i = 0; i < FedRows::most_columns; ++i) sql += fmt::format("c{}, ", i);
        const int code = sqlite3_declare_vtab(db, (sql + "feeding HIDDEN)").c_str());
        if (code != SQLITE_OK) return code;
    } catch (...) {
        return SQLITE_NOMEM;
    }
    sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
    *table = new (std::nothrow) sqlite3_vtab{};
    return *table ? SQLITE_OK : SQLITE_NOMEM;
}

int feed_disconnect(sqlite3_vtab* table) noexcept {
    delete table;
    return SQLITE_OK;
}

int feed_plan(sqlite3_vtab*, sqlite3_index_info* plan) noexcept {
    for (int i = 0; i < plan->nConstraint; ++i) {
        const auto& constraint = plan->aConstraint[i];
        if (constraint.iColumn != FedRows::most_columns || constraint.op != SQLITE_INDEX_CONSTRAINT_EQ ||
            !constraint.usable)
            continue;
        plan->aConstraintUsage[i].argvIndex = 1;
        plan->aConstraintUsage[i].omit = 1;
        plan->estimatedCost = 1;
        return SQLITE_OK;
    }
    return SQLITE_CONSTRAINT;
}

int feed_open(sqlite3_vtab*, sqlite3_vtab_cursor** cursor) noexcept {
    *cursor = new (std::nothrow) FeedCursor{};
    return *cursor ? SQLITE_OK : SQLITE_NOMEM;
}

int feed_close(sqlite3_vtab_cursor* cursor) noexcept {
    delete static_cast<FeedCursor*>(cursor);
    return SQLITE_OK;
}

Feeding& feeding_of(sqlite3_vtab_cursor* cursor) noexcept { return *static_cast<FeedCursor*>(cursor)->feeding; }

int feed_first(sqlite3_vtab_cursor* cursor, int, const char*, int count, sqlite3_value** values) noexcept {
    auto* feeding = count == 1 ? static_cast<Feeding*>(sqlite3_value_pointer(values[0], feed_pointer)) : nullptr;
    if (!feeding) return SQLITE_MISUSE;
    feeding->at = 0;
    static_cast<FeedCursor*>(cursor)->feeding = feeding;
    return SQLITE_OK;
}

int feed_next(sqlite3_vtab_cursor* cursor) noexcept {
    ++feeding_of(cursor).at;
    return SQLITE_OK;
}

int feed_end(sqlite3_vtab_cursor* cursor) noexcept {
    const Feeding& feeding = feeding_of(cursor);
    return feeding.at >= feeding.count ? 1 : 0;
}

int feed_column(sqlite3_vtab_cursor* cursor, sqlite3_context* out, int column) noexcept {
    const Feeding& feeding = feeding_of(cursor);
    if (column < FedRows::most_columns) feeding.rows.give(out, feeding.at, column);
    return SQLITE_OK;
}

int feed_rowid(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) noexcept {
    *id = static_cast<sqlite3_int64>(feeding_of(cursor).at);
    return SQLITE_OK;
}

/// Notes that the row's place is taken; false, so nothing is done there.
void feed_met(sqlite3_context* out, int, sqlite3_value** values) noexcept {
    auto* feeding = static_cast<Feeding*>(sqlite3_value_pointer(values[0], feed_pointer));
    if (!feeding) return sqlite3_result_error_code(out, SQLITE_MISUSE);
    // The row that SQLite has a conflict with is the one that it took last: should that ever change, it shows here.
    const bool same = feeding->at < feeding->count && feeding->rows.mark(feeding->at) == sqlite3_value_int64(values[1]);
    if (!same) return sqlite3_result_error_code(out, SQLITE_INTERNAL);
    try {
        feeding->met.push_back(feeding->at);
    } catch (...) {
        return sqlite3_result_error_nomem(out);
    }
    sqlite3_result_int(out, 0);
}

const sqlite3_module& feed_module() noexcept {
    static const sqlite3_module module = [] {
        sqlite3_module made{};
        made.xConnect = feed_connect;
        made.xBestIndex = feed_plan;
        made.xDisconnect = feed_disconnect;
        made.xOpen = feed_open;
        made.xClose = feed_close;
        made.xFilter = feed_first;
        made.xNext = feed_next;
        made.xEof = feed_end;
        made.xColumn = feed_column;
        made.xRowid = feed_rowid;
        return made;
    }();
    return module;
}

void register_feed(Database& database) {
    sqlite3* db = database.handle();
    if (database.integer_of("SELECT 1 FROM pragma_module_list WHERE name = ?", feed_name)) return;
    int code = sqlite3_create_function_v2(db, feed_met_name, 2, SQLITE_UTF8 | SQLITE_DIRECTONLY, nullptr, feed_met,
                                          nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) code = sqlite3_create_module_v2(db, feed_name, &feed_module(), nullptr, nullptr);
    if (code != SQLITE_OK) throw DatabaseFailure{code, sqlite3_errmsg(db)};
}

}  // namespace

std::string feed_sql(std::string_view table, std::span<const std::string_view> columns, std::string_view nothing,
                     std::string_view mark) {
    std::string names, places;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        names += fmt::format("{}{}", i == 0 ? "" : ", ", columns[i]);
        places += fmt::format("{}c{}", i == 0 ? "" : ", ", i);
    }
    return fmt::format(
        "INSERT INTO {} ({}) SELECT {} FROM autotune_feed(?1) WHERE true ON CONFLICT DO UPDATE SET {} WHERE "
        "autotune_feed_met(?1, excluded.{})",
        table, names, places, nothing, mark);
}

void give_value(sqlite3_context* to, std::int64_t value) noexcept { sqlite3_result_int64(to, value); }
void give_value(sqlite3_context* to, double value) noexcept { sqlite3_result_double(to, value); }
void give_value(sqlite3_context* to, std::string_view value) noexcept {
    sqlite3_result_text64(to, value.data() ? value.data() : "", value.size(), SQLITE_STATIC, SQLITE_UTF8);
}
void give_value(sqlite3_context* to, std::span<const std::byte> value) noexcept {
    sqlite3_result_blob64(to, value.empty() ? static_cast<const void*>("") : value.data(), value.size(), SQLITE_STATIC);
}

std::vector<std::size_t> feed(Database& database, std::string_view insert, const FedRows& rows) {
    Feeding feeding{.rows = rows, .count = rows.count()};
    if (feeding.count == 0) return {};
    register_feed(database);
    Query query = database.query(insert);
    query.bind_pointer(1, &feeding, feed_pointer);
    query.run();
    if (static_cast<std::size_t>(database.changes()) + feeding.met.size() != feeding.count)
        throw DatabaseFailure{SQLITE_INTERNAL, fmt::format("of {} rows {} were put and {} met one", feeding.count,
                                                           database.changes(), feeding.met.size())};
    return std::move(feeding.met);
}

}  // namespace autotune
