#ifndef AUTOTUNE_CACHE_STORE_PAGES_H
#define AUTOTUNE_CACHE_STORE_PAGES_H

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/store/database.h"

struct sqlite3_file;

namespace autotune {

// Rows as they lie in a database's pages. Half of what a row of a snapshot costs through a statement are SQLite's own
// steps from column to column; its file format is published and stays: https://www.sqlite.org/fileformat2.html.
// Whatever the bytes are, none beyond them is read, and what the format does not allow throws
// DatabaseFailure{SQLITE_CORRUPT}, as a statement would.

/// The pages of a file while a read transaction of SQLite keeps them as they are. They are read through SQLite's own
/// handle, since to close another one would give up the locks of this process.
class Pages {
public:
    /// Null where the file's pages are not all that counts (a write-ahead log), where there is no file, and within a
    /// transaction: then statements answer.
    static std::unique_ptr<Pages> of(Database& database);
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    /// Bytes behind a page that may be read, so that a number is fetched without a look at how long it is.
    static constexpr std::size_t margin = 32;
    struct Page {
        std::shared_ptr<const std::byte[]> kept{};
        const std::byte* bytes = nullptr;
    };
    Page read(std::uint32_t number);
    std::uint32_t count() const noexcept { return count_; }
    std::uint32_t usable() const noexcept { return usable_; }  ///< bytes of a page
    Database& database() const noexcept { return database_; }

private:
    explicit Pages(Database& database);
    bool open();

    Database& database_;
    Query held_;  ///< a statement that is not done: the transaction
    sqlite3_file* file_ = nullptr;
    std::uint32_t page_size_ = 0, usable_ = 0, count_ = 0;
    /// Several pages at once: tables that were written together lie side by side.
    struct Block {
        std::uint64_t number = ~std::uint64_t{0}, used = 0;
        std::shared_ptr<const std::byte[]> bytes{};
    };
    std::array<Block, 8> blocks_{};  ///< the latest
    std::uint64_t uses_ = 0;
    std::uint32_t pages_a_block_ = 1;
};

/// Which columns of a table a reader asks for, by where they lie in a row.
class RowLayout {
public:
    static constexpr std::size_t most_columns = 32;
    /// nullopt: the table lacks one of them, or gives one to rows that were written without it.
    static std::optional<RowLayout> of(Pages& pages, std::string_view table, std::span<const std::string_view> columns);
    std::uint32_t root() const noexcept { return root_; }
    /// How many columns of a row have to be looked at.
    std::size_t needed() const noexcept { return needed_; }
    std::size_t place(int column) const noexcept { return places_[static_cast<std::size_t>(column)]; }

private:
    std::uint32_t root_ = 0;
    std::size_t needed_ = 2;  ///< StoredRow::first_two
    std::array<std::uint8_t, most_columns> places_{};
};

/// One row; its columns are numbered as they were asked for.
class StoredRow {
public:
    explicit StoredRow(const RowLayout& layout) : layout_{layout} {}
    /// The bytes stay where they are, with Pages::margin behind them.
    void parse(std::span<const std::byte> bytes);

    // What is of another type reads as 0 or empty: no checksum fits that.
    std::int64_t integer(int column) const noexcept { return number_of(at(column)); }
    double real(int column) const noexcept {
        const Place& place = at(column);
        // A whole number may be kept as one.
        return place.type == 7 ? std::bit_cast<double>(big_endian(place)) : static_cast<double>(number_of(place));
    }
    bool null(int column) const noexcept { return at(column).type == 0; }
    std::string_view text(int column) const noexcept {
        const auto bytes = bytes_of(at(column), 1);
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    std::span<const std::byte> blob(int column) const noexcept { return bytes_of(at(column), 0); }
    /// Whatever was asked for.
    std::pair<std::int64_t, std::int64_t> first_two() const noexcept {
        return {number_of(places_[0]), number_of(places_[1])};
    }

private:
    struct Place {
        std::uint32_t type = 0, offset = 0;
    };
    /// What a column's type says of how long it is.
    static constexpr std::array<std::uint8_t, 12> sizes{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};

    const Place& at(int column) const noexcept { return places_[layout_.place(column)]; }
    std::uint64_t big_endian(const Place& place) const noexcept {
        std::uint64_t number = 0;
        std::memcpy(&number, bytes_ + place.offset, sizeof number);
        return std::endian::native == std::endian::little ? __builtin_bswap64(number) : number;
    }
    std::int64_t number_of(const Place& place) const noexcept {
        if (place.type - 1 < 6) return static_cast<std::int64_t>(big_endian(place)) >> (64 - 8 * sizes[place.type]);
        return place.type == 9 ? 1 : 0;
    }
    std::span<const std::byte> bytes_of(const Place& place, std::uint32_t odd) const noexcept {
        if (place.type < 12 || place.type % 2 != odd) return {};
        return {bytes_ + place.offset, (place.type - 12) / 2};
    }

    RowLayout layout_;
    const std::byte* bytes_ = nullptr;
    std::array<Place, RowLayout::most_columns> places_{};
};

/// The way from a table's root to a row.
class TreePath {
protected:
    TreePath(Pages& pages, std::uint32_t root, bool by_rowid) : pages_{pages}, root_{root}, by_rowid_{by_rowid} {}

    struct Level {
        std::uint32_t number = 0, cells = 0, cell = 0;
        bool leaf = false;
        Pages::Page page{};
    };
    /// What a cell holds besides the page below it.
    struct Cell {
        std::int64_t rowid = 0;
        std::uint64_t size = 0;
        const std::byte* payload = nullptr;
    };
    void load(std::size_t depth, std::uint32_t number);
    std::uint32_t child(const Level& level, std::uint32_t cell) const;
    Cell cell(const Level& level, std::uint32_t cell) const;
    /// Whole, with what lies on pages of its own.
    std::span<const std::byte> payload(const Level& level, const Cell& cell);
    Level& top() noexcept { return levels_[depth_ - 1]; }

    static constexpr std::size_t deepest = 20;  ///< 2^31 pages need no more
    Pages& pages_;
    std::uint32_t root_;
    bool by_rowid_;
    std::size_t depth_ = 0;
    std::array<Level, deepest> levels_;
    std::uint64_t visited_ = 0;  ///< pages, each as often as a way led there

private:
    const std::byte* start(const Level& level, std::uint32_t cell) const;
    std::vector<std::byte> gathered_;
    std::uint64_t gathered_pages_ = 0, gathered_rows_ = 0;
};

/// Rows of a table without rowids whose primary key begins with two numbers, in order.
class PrefixScan : TreePath {
public:
    PrefixScan(Pages& pages, const RowLayout& layout)
        : TreePath{pages, layout.root(), false}, row_{layout}, key_{RowLayout{}} {}
    bool first(std::int64_t a, std::int64_t b);
    bool next();
    const StoredRow& row() const noexcept { return row_; }

private:
    std::pair<std::int64_t, std::int64_t> key_at(const Level& level, std::uint32_t cell);
    bool settle();
    void descend(std::uint32_t number);

    StoredRow row_, key_;
    std::pair<std::int64_t, std::int64_t> prefix_{};
};

/// Rows of a table by their rowid; to ask for those that lie near each other one after the other is cheap.
class RowidLookup : TreePath {
public:
    RowidLookup(Pages& pages, const RowLayout& layout) : TreePath{pages, layout.root(), true}, row_{layout} {}
    /// Null: there is none. Stays until the next call.
    const StoredRow* find(std::int64_t rowid);

private:
    StoredRow row_;
    std::int64_t first_ = 1, last_ = 0;  ///< rowids on the leaf
};

}  // namespace autotune
#endif
