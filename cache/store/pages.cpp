#include "cache/store/pages.h"

#include <sqlite3.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

namespace autotune {

namespace {

[[noreturn]] void refuse_page() { throw DatabaseFailure{SQLITE_CORRUPT, sqlite3_errstr(SQLITE_CORRUPT)}; }

std::uint32_t two_bytes(const std::byte* at) noexcept {
    return std::to_integer<std::uint32_t>(at[0]) << 8 | std::to_integer<std::uint32_t>(at[1]);
}

std::uint32_t four_bytes(const std::byte* at) noexcept { return two_bytes(at) << 16 | two_bytes(at + 2); }

/// Seven bits a byte, the ninth whole.
std::uint64_t long_varint(const std::byte*& at) noexcept {
    std::uint64_t number = 0;
    for (int i = 0; i < 8; ++i) {
        const auto byte = std::to_integer<std::uint64_t>(*at++);
        number = number << 7 | (byte & 0x7f);
        if (byte < 0x80) return number;
    }
    return number << 8 | std::to_integer<std::uint64_t>(*at++);
}

inline std::uint64_t next_varint(const std::byte*& at) noexcept {
    const auto first = std::to_integer<std::uint64_t>(*at);
    if (first >= 0x80) return long_varint(at);
    ++at;
    return first;
}

}  // namespace

Pages::Pages(Database& database) : database_{database}, held_{database.query("SELECT 1 FROM sqlite_schema")} {}

std::unique_ptr<Pages> Pages::of(Database& database) {
    // What writes has pages that the file lacks; a second Pages would share the statement that holds the lock, and
    // release it.
    if (sqlite3_txn_state(database.handle(), "main") != SQLITE_TXN_NONE) return nullptr;
    std::unique_ptr<Pages> pages{new Pages{database}};
    return pages->open() ? std::move(pages) : nullptr;
}

bool Pages::open() {
    sqlite3* const connection = database_.handle();
    if (!held_.step() || sqlite3_txn_state(connection, "main") != SQLITE_TXN_READ ||
        sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &file_) != SQLITE_OK || !file_ ||
        !file_->pMethods)
        return false;
    // A log that lies beside a file counts whatever the file's head says.
    Query mode = database_.query("PRAGMA main.journal_mode");
    if (!mode.step() || mode.text(0) == "wal") return false;
    std::array<std::byte, 100> header;
    sqlite3_int64 size = 0;
    if (file_->pMethods->xFileSize(file_, &size) != SQLITE_OK ||
        file_->pMethods->xRead(file_, header.data(), static_cast<int>(header.size()), 0) != SQLITE_OK)
        return false;
    constexpr std::byte rollback_journal{1};
    constexpr std::uint32_t utf8 = 1;
    if (header[18] != rollback_journal || header[19] != rollback_journal || four_bytes(&header[56]) != utf8)
        return false;
    page_size_ = two_bytes(&header[16]) == 1 ? 65536 : two_bytes(&header[16]);
    const auto reserved = std::to_integer<std::uint32_t>(header[20]);
    if (page_size_ < 512 || !std::has_single_bit(page_size_) || page_size_ - reserved < 480) return false;
    usable_ = page_size_ - reserved;
    count_ = static_cast<std::uint32_t>(std::min<sqlite3_int64>(size / page_size_, 0xfffffffe));
    // In a large file that grew by many hands neighbours have little to do with each other.
    constexpr sqlite3_int64 small = 64 << 20;
    constexpr std::uint32_t block = 32 << 10;
    pages_a_block_ = size <= small && page_size_ < block ? block / page_size_ : 1;
    return true;
}

Pages::Page Pages::read(std::uint32_t number) {
    if (number == 0 || number > count_) refuse_page();
    const std::uint64_t wanted = (number - 1) / pages_a_block_;
    auto block = std::ranges::find(blocks_, wanted, &Block::number);
    if (block == blocks_.end()) {
        block = std::ranges::min_element(blocks_, {}, &Block::used);
        const std::uint64_t before = wanted * pages_a_block_;
        const std::size_t size = std::min<std::uint64_t>(pages_a_block_, count_ - before) * page_size_;
        const std::shared_ptr<std::byte[]> bytes{new std::byte[size + margin]};
        std::memset(bytes.get() + size, 0, margin);
        if (const int code = file_->pMethods->xRead(file_, bytes.get(), static_cast<int>(size),
                                                    static_cast<sqlite3_int64>(before * page_size_));
            code != SQLITE_OK)
            throw DatabaseFailure{code, sqlite3_errstr(code)};
        // Who still reads the block that was here keeps it.
        *block = {.number = wanted, .bytes = bytes};
    }
    block->used = ++uses_;
    return {block->bytes, block->bytes.get() + (number - 1) % pages_a_block_ * std::size_t{page_size_}};
}

std::optional<RowLayout> RowLayout::of(Pages& pages, std::string_view table,
                                       std::span<const std::string_view> columns) {
    struct Column {
        std::string name;
        std::int64_t key = 0;
        bool given = false;
    };
    std::vector<Column> there;
    std::int64_t root = 0;
    {
        Query row = pages.database().query(
            "SELECT s.rootpage, c.name, c.pk, c.dflt_value FROM sqlite_schema s JOIN pragma_table_info(s.name) c "
            "WHERE s.type = 'table' AND s.name = ? ORDER BY c.cid");
        row.bind(table);
        while (row.step()) {
            root = row.integer(0);
            there.push_back({std::string{row.text(1)}, row.integer(2), !row.null(3)});
        }
    }
    if (there.empty() || there.size() > most_columns || columns.size() > most_columns) return std::nullopt;
    if (root < 2 || root > pages.count()) refuse_page();
    const Pages::Page page = pages.read(static_cast<std::uint32_t>(root));
    // Where rows lie in an index, as without rowids, the columns of the primary key come first.
    if (page.bytes[0] == std::byte{2} || page.bytes[0] == std::byte{10})
        std::ranges::stable_sort(there, {},
                                 [](const Column& c) { return c.key > 0 ? c.key : std::int64_t{most_columns} + 1; });
    RowLayout layout;
    layout.root_ = static_cast<std::uint32_t>(root);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto found = std::ranges::find(there, columns[i], &Column::name);
        if (found == there.end() || found->given) return std::nullopt;
        layout.places_[i] = static_cast<std::uint8_t>(found - there.begin());
        layout.needed_ = std::max<std::size_t>(layout.needed_, layout.places_[i] + 1u);
    }
    return layout;
}

void StoredRow::parse(std::span<const std::byte> bytes) {
    const std::byte* at = bytes.data();
    const std::uint64_t header = next_varint(at);
    if (header > bytes.size()) refuse_page();
    const std::byte* const end = bytes.data() + header;
    std::uint64_t offset = header;
    const std::size_t needed = layout_.needed();
    std::size_t count = 0;
    while (at < end && count < needed) {
        const std::uint64_t type = next_varint(at);
        places_[count++] = {static_cast<std::uint32_t>(type), static_cast<std::uint32_t>(offset)};
        offset += type < sizes.size() ? sizes[type] : (type - 12) / 2;
        // Looked at one by one: many together may go round.
        if (offset > bytes.size()) refuse_page();
    }
    if (at > end) refuse_page();
    for (; count < needed; ++count) places_[count] = {};
    bytes_ = bytes.data();
}

inline const std::byte* TreePath::start(const Level& level, std::uint32_t cell) const {
    const std::uint32_t at = two_bytes(&level.page.bytes[(level.leaf ? 8u : 12u) + 2 * cell]);
    if (at >= pages_.usable()) refuse_page();
    return &level.page.bytes[at];
}

inline TreePath::Cell TreePath::cell(const Level& level, std::uint32_t cell) const {
    const std::byte* at = start(level, cell) + (level.leaf ? 0 : 4);
    Cell out;
    if (level.leaf || !by_rowid_) out.size = next_varint(at);
    if (by_rowid_) out.rowid = static_cast<std::int64_t>(next_varint(at));
    out.payload = at;
    return out;
}

void TreePath::load(std::size_t depth, std::uint32_t number) {
    if (depth >= levels_.size()) refuse_page();
    depth_ = depth + 1;
    ++visited_;
    Level& level = levels_[depth];
    if (level.number == number) return;
    level.number = 0;
    level.page = pages_.read(number);
    const auto kind = std::to_integer<int>(level.page.bytes[0]);
    level.leaf = kind == (by_rowid_ ? 13 : 10);
    if ((!level.leaf && kind != (by_rowid_ ? 5 : 2)) || number == 1) refuse_page();
    level.cells = two_bytes(&level.page.bytes[3]);
    if ((level.leaf ? 8 : 12) + 2 * level.cells > pages_.usable()) refuse_page();
    level.number = number;
}

/// The page before a cell; behind the last cell, the rightmost.
std::uint32_t TreePath::child(const Level& level, std::uint32_t cell) const {
    return four_bytes(cell < level.cells ? start(level, cell) : &level.page.bytes[8]);
}

std::span<const std::byte> TreePath::payload(const Level& level, const Cell& cell) {
    const std::uint64_t usable = pages_.usable();
    const std::uint64_t most = by_rowid_ ? usable - 35 : (usable - 12) * 64 / 255 - 23;
    const std::byte* const end = level.page.bytes + usable;
    const auto left = static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(end - cell.payload, 0));
    if (cell.size <= most) {
        if (cell.size > left) refuse_page();
        return {cell.payload, cell.size};
    }
    if (cell.size / usable > pages_.count()) refuse_page();
    const std::uint64_t least = (usable - 12) * 32 / 255 - 23;
    const std::uint64_t even = least + (cell.size - least) % (usable - 4);
    const std::uint64_t here = even <= most ? even : least;
    if (here + 4 > left) refuse_page();
    ++gathered_rows_;
    gathered_.assign(cell.payload, cell.payload + here);
    Pages::Page page;
    for (std::uint32_t next = four_bytes(cell.payload + here); gathered_.size() < cell.size;
         next = four_bytes(page.bytes)) {
        // A page is of one row, and few rows have any. A row may be asked for again, but then costs little each time.
        if (++gathered_pages_ > std::uint64_t{64} * pages_.count() + 64 * gathered_rows_) refuse_page();
        page = pages_.read(next);
        const std::uint64_t more = std::min(cell.size - gathered_.size(), usable - 4);
        gathered_.insert(gathered_.end(), page.bytes + 4, page.bytes + 4 + more);
    }
    gathered_.resize(cell.size + Pages::margin);
    return {gathered_.data(), cell.size};
}

std::pair<std::int64_t, std::int64_t> PrefixScan::key_at(const Level& level, std::uint32_t at) {
    key_.parse(payload(level, cell(level, at)));
    return key_.first_two();
}

bool PrefixScan::first(std::int64_t a, std::int64_t b) {
    prefix_ = {a, b};
    visited_ = 0;
    load(0, root_);
    for (;;) {
        Level& level = top();
        std::uint32_t low = 0, high = level.cells;
        while (low < high) {
            const std::uint32_t middle = (low + high) / 2;
            if (key_at(level, middle) < prefix_)
                low = middle + 1;
            else
                high = middle;
        }
        level.cell = low;
        if (level.leaf) break;
        load(depth_, child(level, low));
    }
    return settle();
}

bool PrefixScan::next() {
    Level& level = top();
    ++level.cell;
    if (!level.leaf) {
        load(depth_, child(level, level.cell));
        while (!top().leaf) {
            top().cell = 0;
            load(depth_, child(top(), 0));
        }
        top().cell = 0;
    }
    return settle();
}

/// At a cell: where a page has no more of them, at the one that stands after it in the page above.
bool PrefixScan::settle() {
    // Each page is met once, but for those where a range begins.
    if (visited_ > std::uint64_t{pages_.count()} + deepest) refuse_page();
    while (top().cell >= top().cells)
        if (--depth_ == 0) return false;
    row_.parse(payload(top(), cell(top(), top().cell)));
    return row_.first_two() == prefix_;
}

const StoredRow* RowidLookup::find(std::int64_t rowid) {
    if (rowid < first_ || rowid > last_) {
        first_ = 1, last_ = 0;
        load(0, root_);
        for (;;) {
            Level& level = top();
            if (level.leaf) break;
            std::uint32_t low = 0, high = level.cells;
            while (low < high) {
                const std::uint32_t middle = (low + high) / 2;
                if (cell(level, middle).rowid < rowid)
                    low = middle + 1;
                else
                    high = middle;
            }
            load(depth_, child(level, low));
        }
        if (top().cells == 0) return nullptr;
        top().cell = 0;
        first_ = cell(top(), 0).rowid;
        last_ = cell(top(), top().cells - 1).rowid;
        if (rowid < first_ || rowid > last_) return nullptr;
    }
    Level& leaf = top();
    const auto take = [&](std::uint32_t at, const Cell& found) {
        leaf.cell = at;
        row_.parse(payload(leaf, found));
        return &row_;
    };
    // Often it is the next, or the same row as before.
    for (std::uint32_t at : {leaf.cell + 1, leaf.cell})
        if (at < leaf.cells)
            if (const Cell found = cell(leaf, at); found.rowid == rowid) return take(at, found);
    std::uint32_t low = 0, high = leaf.cells;
    while (low < high) {
        const std::uint32_t middle = (low + high) / 2;
        if (cell(leaf, middle).rowid < rowid)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == leaf.cells) return nullptr;
    const Cell found = cell(leaf, low);
    return found.rowid == rowid ? take(low, found) : nullptr;
}

}  // namespace autotune
