#ifndef AUTOTUNE_CACHE_STORE_ROW_FEED_H
#define AUTOTUNE_CACHE_STORE_ROW_FEED_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/store/database.h"

struct sqlite3_context;

namespace autotune {

/// Rows in memory that one statement takes, hundreds at a time: a statement a row costs half as much again. They come
/// through a virtual table; it exists in the connection only, never in a schema.
class FedRows {
public:
    static constexpr int most_columns = 24;  ///< c0, c1, ...
    /// Up to that many rows a statement each costs less: it takes 1.9 us, to feed 5 us and 1.0 a row.
    static constexpr std::size_t few = 7;

    virtual ~FedRows() = default;
    virtual std::size_t count() const noexcept = 0;
    /// Gives a column's value; none: NULL. Texts and blobs stay where they are until the statement ends.
    virtual void give(sqlite3_context* to, std::size_t row, int column) const noexcept = 0;
    /// What tells a row from its neighbours.
    virtual std::int64_t mark(std::size_t row) const noexcept = 0;
};

/// The statement for feed(): the table's columns in the order of FedRows::give.
/// nothing  an assignment that changes nothing, such as "crc = crc"; mark  the column of FedRows::mark
std::string feed_sql(std::string_view table, std::span<const std::string_view> columns, std::string_view nothing,
                     std::string_view mark);

// What give() gives.
void give_value(sqlite3_context* to, std::int64_t value) noexcept;
void give_value(sqlite3_context* to, double value) noexcept;
void give_value(sqlite3_context* to, std::string_view value) noexcept;
void give_value(sqlite3_context* to, std::span<const std::byte> value) noexcept;

/// Runs `INSERT INTO ... SELECT c0, c1 ... FROM autotune_feed(?1) WHERE true ON CONFLICT DO UPDATE SET ... WHERE
/// autotune_feed_met(?1, excluded.MARK)`: rows whose place is free are now there, and the numbers of the others come
/// back in order. Of two rows for one place the first is put. In a transaction of the caller's. Throws DatabaseFailure.
std::vector<std::size_t> feed(Database& database, std::string_view insert, const FedRows& rows);

}  // namespace autotune
#endif
