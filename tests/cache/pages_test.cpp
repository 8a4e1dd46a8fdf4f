// Goal: rows that are read from a file's pages are those that statements give, and no bytes lead astray.
// Method: each question is put to both; files are made by SQLite, with pages small enough for trees of several levels.
#include "cache/store/pages.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "cache/store/record_rows.h"
#include "tests/cache/samples.h"

namespace autotune {
namespace {

using namespace samples;
namespace fs = std::filesystem;

/// A file that SQLite makes with these statements.
struct MadeFile {
    Folder folder;
    fs::path path = folder / "made.db";

    /// reserved: bytes at the end of each page that SQLite leaves alone.
    explicit MadeFile(const std::string& sql, int reserved = 0) {
        sqlite3* connection = nullptr;
        EXPECT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
        EXPECT_EQ(sqlite3_file_control(connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved), SQLITE_OK);
        char* message = nullptr;
        EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
        sqlite3_close(connection);
    }
    Database open() const { return Database::open(path, Database::Access::read, std::chrono::milliseconds{0}); }
};

const std::string numbered = R"sql(
CREATE TABLE pair (extra TEXT, b INTEGER, a INTEGER, c INTEGER, PRIMARY KEY (a, b, c)) WITHOUT ROWID;
CREATE TABLE one (id INTEGER PRIMARY KEY, number INTEGER, ratio REAL, word TEXT, bytes BLOB);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4999)
INSERT INTO pair SELECT hex(randomblob(i % 23)), i % 37, i / 997 - 2, i FROM n;
INSERT INTO pair SELECT hex(zeroblob(3000)), 40, 3, c FROM pair WHERE c < 5;
WITH RECURSIVE n(i) AS (SELECT -1500 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
INSERT INTO one SELECT i * i * i, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN i % 2 ELSE i * i * i * i * i END, i / 4.0,
    hex(randomblob(abs(i) % 9)), randomblob(CASE i WHEN 77 THEN 20000 ELSE abs(i) % 50 END) FROM n;
INSERT INTO one VALUES (9223372036854775807, -9223372036854775807 - 1, 1e300, '', x'');
DELETE FROM one WHERE id % 7 = 3;
)sql";
const std::string small_pages = "PRAGMA page_size = 512;" + numbered;

struct Shape {
    const char* name;
    const char* pragmas;
    int reserved = 0;
};
class PagesOfAShape : public testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(All, PagesOfAShape,
                         testing::Values(Shape{"Smallest", "PRAGMA page_size = 512;"},
                                         Shape{"Largest", "PRAGMA page_size = 65536;"},
                                         Shape{"ThatAreMoved", "PRAGMA page_size = 1024; PRAGMA auto_vacuum = 1;"},
                                         Shape{"WithReservedBytes", "PRAGMA page_size = 512;", 32}),
                         [](const testing::TestParamInfo<Shape>& one) { return std::string{one.param.name}; });

TEST_P(PagesOfAShape, ScansOfAPrefixGiveWhatAStatementGives) {
    const MadeFile file{GetParam().pragmas + numbered, GetParam().reserved};
    Database database = file.open();
    const auto pages = Pages::of(database);
    ASSERT_NE(pages, nullptr);
    const std::array<std::string_view, 2> columns{"c", "extra"};
    const auto layout = RowLayout::of(*pages, "pair", columns);
    ASSERT_TRUE(layout);
    PrefixScan scan{*pages, *layout};
    std::size_t met = 0;
    for (std::int64_t a = -3; a < 5; ++a)
        for (std::int64_t b = -1; b < 42; ++b) {
            Query row = database.query("SELECT c, extra FROM pair WHERE a = ? AND b = ? ORDER BY c");
            row.bind(a, b);
            bool there = scan.first(a, b);
            for (; row.step(); there = scan.next(), ++met) {
                ASSERT_TRUE(there) << a << ' ' << b;
                ASSERT_EQ(scan.row().integer(0), row.integer(0));
                ASSERT_EQ(scan.row().text(1), row.text(1));
                ASSERT_TRUE(scan.row().blob(1).empty());
            }
            ASSERT_FALSE(there) << a << ' ' << b;
        }
    EXPECT_EQ(met, 5005u);
}

TEST_P(PagesOfAShape, RowsAreFoundByTheirRowidInAnyOrder) {
    const MadeFile file{GetParam().pragmas + numbered, GetParam().reserved};
    Database database = file.open();
    const auto pages = Pages::of(database);
    ASSERT_NE(pages, nullptr);
    const std::array<std::string_view, 4> columns{"bytes", "number", "ratio", "word"};
    const auto layout = RowLayout::of(*pages, "one", columns);
    ASSERT_TRUE(layout);
    RowidLookup lookup{*pages, *layout};
    std::vector<std::int64_t> ids{0, 1, -1, 2, 5, INT64_MAX, INT64_MIN, 77 * 77 * 77};
    for (std::int64_t i = -1501; i < 1502; ++i) ids.push_back(i * i * i);
    std::mt19937_64 random{3};
    for (int i = 0; i < 2000; ++i) {
        const auto n = static_cast<std::int64_t>(random() % 3000) - 1500;
        ids.push_back(n * n * n);
    }
    std::size_t met = 0;
    for (const std::int64_t id : ids) {
        Query row = database.query("SELECT bytes, number, ratio, word FROM one WHERE id = ?");
        row.bind(id);
        const bool there = row.step();
        const StoredRow* found = lookup.find(id);
        ASSERT_EQ(found != nullptr, there) << id;
        if (!there) continue;
        ++met;
        ASSERT_TRUE(std::ranges::equal(found->blob(0), row.blob(0))) << id;
        ASSERT_EQ(found->integer(1), row.integer(1)) << id;
        ASSERT_EQ(found->null(1), row.null(1)) << id;
        ASSERT_EQ(found->real(2), row.real(2)) << id;
        ASSERT_EQ(found->text(3), row.text(3)) << id;
    }
    EXPECT_GT(met, 3000u);
}

TEST(Pages, AreReadOnlyWhereTheyAreAllThatCounts) {
    const MadeFile file{small_pages};
    {
        Database memory = Database::in_memory();
        memory.execute("CREATE TABLE t (a)");
        EXPECT_EQ(Pages::of(memory), nullptr);
        Database writer = Database::open(file.path, Database::Access::write, std::chrono::milliseconds{0});
        const Transaction transaction{writer};
        EXPECT_EQ(Pages::of(writer), nullptr);
    }
    {
        std::ifstream in{file.path, std::ios::binary};
        const std::string bytes{std::istreambuf_iterator<char>{in}, {}};
        Database embedded = Database::of_bytes(std::as_bytes(std::span{bytes}));
        const auto pages = Pages::of(embedded);
        ASSERT_NE(pages, nullptr);
        const std::array<std::string_view, 1> columns{"word"};
        RowidLookup lookup{*pages, *RowLayout::of(*pages, "one", columns)};
        EXPECT_NE(lookup.find(INT64_MAX), nullptr);
    }
    const MadeFile logged{"PRAGMA journal_mode = WAL; CREATE TABLE t (a)"};
    Database database = logged.open();
    EXPECT_EQ(Pages::of(database), nullptr);
}

TEST(Pages, AreNotAllThatCountsBesideALogThatTheFileDoesNotName) {
    const MadeFile logged{"PRAGMA journal_mode = WAL; CREATE TABLE t (word TEXT); INSERT INTO t VALUES ('old')"};
    Database writer = Database::open(logged.path, Database::Access::write, std::chrono::milliseconds{0});
    writer.execute("UPDATE t SET word = 'new'");  // in the log alone while the writer is open
    const Folder folder;
    const fs::path copy = folder / "copy.db";
    fs::copy_file(logged.path, copy);
    fs::copy_file(logged.path.string() + "-wal", copy.string() + "-wal");
    std::fstream head{copy, std::ios::binary | std::ios::in | std::ios::out};
    head.seekp(18).write("\1\1", 2);
    head.close();
    Database database = Database::open(copy, Database::Access::write, std::chrono::milliseconds{0});
    {
        Query word = database.query("SELECT word FROM t");
        ASSERT_TRUE(word.step());
        EXPECT_EQ(word.text(0), "new");
    }
    EXPECT_EQ(Pages::of(database), nullptr);
}

TEST(Pages, AnyNumberOfLooksAtOneLongRowIsRight) {
    const MadeFile file{
        "PRAGMA page_size = 512; CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT); "
        "INSERT INTO t VALUES (1, hex(zeroblob(5000))), (2, 'short')"};
    Database database = file.open();
    const auto pages = Pages::of(database);
    ASSERT_NE(pages, nullptr);
    const std::array<std::string_view, 1> columns{"word"};
    RowidLookup lookup{*pages, *RowLayout::of(*pages, "t", columns)};
    for (int look = 0; look < 5000; ++look) {
        ASSERT_EQ(lookup.find(1)->text(0).size(), 10000u);
        ASSERT_EQ(lookup.find(2)->text(0), "short");
    }
}

TEST(Pages, StayAsTheyAreUntilTheReaderIsDone) {
    const MadeFile file{"CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT); INSERT INTO t VALUES (1, 'old')"};
    Database reader = file.open();
    Database writer = Database::open(file.path, Database::Access::write, std::chrono::milliseconds{0});
    const std::array<std::string_view, 1> columns{"word"};
    const auto word = [&](Pages& pages) {
        return std::string{RowidLookup{pages, *RowLayout::of(pages, "t", columns)}.find(1)->text(0)};
    };
    {
        const auto pages = Pages::of(reader);
        ASSERT_NE(pages, nullptr);
        EXPECT_THROW(writer.execute("UPDATE t SET word = 'new'"), DatabaseFailure);
        EXPECT_EQ(word(*pages), "old");
        EXPECT_EQ(Pages::of(reader), nullptr);
        EXPECT_THROW(writer.execute("UPDATE t SET word = 'new'"), DatabaseFailure);
    }
    writer.execute("UPDATE t SET word = 'new'");
    const auto pages = Pages::of(reader);
    EXPECT_EQ(word(*pages), "new");
}

TEST(Pages, AColumnThatOldRowsLackIsLeftToStatements) {
    const MadeFile file{
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER); INSERT INTO t VALUES (1, 5); "
        "ALTER TABLE t ADD COLUMN b INTEGER; ALTER TABLE t ADD COLUMN c INTEGER NOT NULL DEFAULT 7"};
    Database database = file.open();
    const auto pages = Pages::of(database);
    const std::array<std::string_view, 2> nullable{"a", "b"}, given{"a", "c"}, unknown{"a", "d"};
    const auto layout = RowLayout::of(*pages, "t", nullable);
    ASSERT_TRUE(layout);
    RowidLookup lookup{*pages, *layout};
    ASSERT_NE(lookup.find(1), nullptr);
    EXPECT_EQ(lookup.find(1)->integer(0), 5);
    EXPECT_TRUE(lookup.find(1)->null(1));
    EXPECT_FALSE(RowLayout::of(*pages, "t", given));
    EXPECT_FALSE(RowLayout::of(*pages, "t", unknown));
    EXPECT_FALSE(RowLayout::of(*pages, "none", nullable));
}

/// All that a scan says of a row, but for what people are told of its problem and run.
std::string said(const RecordView& view) {
    std::string text = view.id.text();
    for (const std::int64_t number :
         {view.time_ns, view.low_ns, view.high_ns, view.default_ns.value_or(-1), view.samples, view.evaluated,
          view.space_size, view.tuned_at, static_cast<std::int64_t>(view.effort),
          static_cast<std::int64_t>(view.verified), static_cast<std::int64_t>(view.crc),
          static_cast<std::int64_t>(view.order.local), static_cast<std::int64_t>(view.order.locked_clocks)})
        text += ' ' + std::to_string(number);
    text += ' ' + std::to_string(view.max_error) + ' ' + view.device->fp + ' ' + view.source->variant + ' ';
    text += view.environment->driver + ' ' + view.config->hash() + ' ' + std::string{view.stale} + ' ';
    text += std::string{view.order.run_uuid} + ' ';
    for (const std::byte byte : view.problem_key) text += std::to_string(std::to_integer<int>(byte)) + ',';
    return text;
}

struct Scanned {
    std::vector<std::string> rows, broken;
    friend bool operator==(const Scanned&, const Scanned&) = default;
};

/// The same question by pages and by statements.
Scanned scanned(Database& database, bool by_pages, const std::string& op = {}, const std::string& fp = {}) {
    Scanned out;
    Today today = samples::today();
    today.nvrtc_minor = 1;
    scan_records(
        database, {.op = op, .device_fp = fp, .with_problem = !by_pages}, today,
        [&](const RecordView& view) {
            EXPECT_EQ(view.problem == nullptr, by_pages);
            out.rows.push_back(said(view));
        },
        [&](const RecordKey& key) { out.broken.push_back(key.text()); });
    return out;
}

/// Records of two devices, two templates, several ranks and runs, with keys and names of any length.
std::vector<Record> many_records(std::int64_t problems) {
    std::vector<Record> records;
    for (std::int64_t n = 0; n < problems; ++n)
        for (int rank = 0; rank <= n % 3; ++rank) {
            Record record = samples::record(n * 7919 % problems, 50.0 + static_cast<double>(n % 11));
            record.device = device(n % 4 == 0 ? "h100" : "h200");
            record.source = templates()[n % 5 == 0 ? 1 : 0];
            record.config = config(32 << rank, 4, record.source.variant);
            record.rank = rank;
            record.run.uuid = "run " + std::to_string(n % 97);
            if (n % 97 == 5) record.run.uuid += std::string(60, 'x');
            if (n % 97 == 6) record.run.origin = "import:3";
            if (n % 97 == 7) record.run.clock_policy = "locked";
            if (n % 3 == 1) record.default_us = 100.5;
            if (n % 50 == 9) record.problem.key.resize(n == 9 ? 9000 : static_cast<std::size_t>(100 + n % 900));
            record.max_error = n % 2 == 0 ? 0.0 : 0.25;
            records.push_back(record);
        }
    return records;
}

TEST(PagesOfRecords, GiveWhatStatementsGive) {
    const Folder folder;
    Store::open({.path = folder / "tune.db"}).put(many_records(3000));
    Database database = Database::open(folder / "tune.db", Database::Access::read, std::chrono::milliseconds{0});
    ASSERT_NE(Pages::of(database), nullptr);
    const Scanned all = scanned(database, true);
    EXPECT_EQ(all.rows.size(), 6000u);
    EXPECT_TRUE(all == scanned(database, false));
    for (const char* fp : {"h100", "h200", "none"})
        for (const char* op : {"scale", "none"})
            EXPECT_TRUE(scanned(database, true, op, fp) == scanned(database, false, op, fp)) << fp << op;
}

TEST(PagesOfRecords, LeaveOutWhatIsDamagedAsStatementsDo) {
    const Folder folder;
    Store::open({.path = folder / "tune.db"}).put(many_records(300));
    Database database = Database::open(folder / "tune.db", Database::Access::write, std::chrono::milliseconds{0});
    const std::size_t before = scanned(database, true).rows.size();
    for (const char* damage :
         {"UPDATE record SET time_ns = time_ns + 1 WHERE numbers < x'10'",
          "UPDATE record SET setting = 99 WHERE numbers = x'11'", "UPDATE record SET form = 99 WHERE numbers = x'12'",
          "UPDATE record SET default_ns = NULL WHERE numbers BETWEEN x'20' AND x'30'",
          "UPDATE record SET numbers = x'ff' WHERE numbers = x'31'",
          "UPDATE record SET run = randomblob(16) WHERE numbers = x'32'",
          "UPDATE record SET run = x'00' WHERE numbers = x'33'", "UPDATE config SET body_json = '{' WHERE id = 1",
          "UPDATE form SET names_json = '[]' WHERE id = 1", "UPDATE env SET driver = 'other'"}) {
        database.execute(damage);
        const Scanned by_pages = scanned(database, true), by_statement = scanned(database, false);
        EXPECT_TRUE(by_pages == by_statement) << damage;
        EXPECT_LT(by_pages.rows.size(), before) << damage;
    }
}

TEST(PagesOfRecords, OfAnyBytesAreReadOrRefused) {
    const Folder folder;
    const fs::path path = folder / "tune.db";
    const std::vector<Record> records = many_records(200);
    Store::open({.path = path}).put(records);
    std::ifstream in{path, std::ios::binary};
    const std::string sound{std::istreambuf_iterator<char>{in}, {}};
    std::set<std::string> known;
    {
        Database database = Database::of_bytes(std::as_bytes(std::span{sound}));
        for (const std::string& row : scanned(database, true).rows) known.insert(row);
    }
    ASSERT_EQ(known.size(), records.size());
    std::mt19937_64 random{17};
    int read = 0, refused = 0, fewer = 0, compared = 0;
    for (int round = 0; round < 400; ++round) {
        std::string bytes = sound;
        for (std::uint64_t left = 1 + random() % (round % 2 ? 40 : 3); left > 0; --left) {
            // Heads of pages, where a wrong byte leads furthest, and any others.
            const std::size_t page = random() % (bytes.size() / 4096), byte = random() % (left % 2 ? 4096 : 24);
            if (page * 4096 + byte >= 100) bytes[page * 4096 + byte] = static_cast<char>(random());
        }
        if (round % 8 == 7) bytes.resize(bytes.size() / 2);
        try {
            Database database = Database::of_bytes(std::as_bytes(std::span{bytes}));
            const Scanned out = scanned(database, true);
            ++read;
            for (const std::string& row : out.rows) ASSERT_TRUE(known.contains(row)) << round << ": " << row;
            fewer += out.rows.size() < known.size() ? 1 : 0;
            if (database.text_of("PRAGMA integrity_check") != "ok") continue;
            ++compared;  // only what rows say was changed
            // A statement is also asked what people are told of the run, so it may leave out more, and says what.
            const Scanned all = scanned(database, false);
            const std::set<std::string> rows{out.rows.begin(), out.rows.end()};
            for (const std::string& row : all.rows) EXPECT_TRUE(rows.contains(row)) << round << ": " << row;
            for (const std::string& key : out.broken) EXPECT_EQ(std::ranges::count(all.broken, key), 1) << round << key;
            EXPECT_EQ(out.rows.size() + out.broken.size(), all.rows.size() + all.broken.size()) << round;
        } catch (const DatabaseFailure&) {
            ++refused;
        }
    }
    EXPECT_GT(read, 20);
    EXPECT_GT(refused, 20);
    EXPECT_GT(fewer, 20);
    EXPECT_GT(compared, 20);
}

TEST(PagesOfRecords, ATreeThatHoldsItselfEnds) {
    const MadeFile file{small_pages};
    std::ifstream in{file.path, std::ios::binary};
    std::string bytes{std::istreambuf_iterator<char>{in}, {}};
    const auto root = static_cast<std::size_t>([&] {
        Database database = file.open();
        return *database.integer_of("SELECT rootpage FROM sqlite_schema WHERE name = 'pair'");
    }());
    const std::size_t page = (root - 1) * 512;
    ASSERT_EQ(bytes[page], 2);
    const int cells = static_cast<unsigned char>(bytes[page + 3]) << 8 | static_cast<unsigned char>(bytes[page + 4]);
    const auto set_child = [&](std::size_t at, std::size_t number) {
        for (int i = 0; i < 4; ++i)
            bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(number >> (8 * (3 - i)));
    };
    const auto cell_at = [&](int cell) {
        const std::size_t at = page + 12 + 2 * static_cast<std::size_t>(cell);
        return page + (static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])) << 8 |
                       static_cast<unsigned char>(bytes[at + 1]));
    };
    const std::string sound = bytes;
    for (const bool itself : {true, false}) {
        bytes = sound;
        // Every page below is the root, or the same one.
        const std::size_t target = itself ? root : [&] {
            std::size_t number = 0;
            for (std::size_t i = 0; i < 4; ++i)
                number = number << 8 | static_cast<unsigned char>(sound[cell_at(0) + i]);
            return number;
        }();
        for (int cell = 0; cell < cells; ++cell) set_child(cell_at(cell), target);
        set_child(page + 8, target);
        Database database = Database::of_bytes(std::as_bytes(std::span{bytes}));
        const auto pages = Pages::of(database);
        ASSERT_NE(pages, nullptr);
        const std::array<std::string_view, 1> columns{"c"};
        PrefixScan scan{*pages, *RowLayout::of(*pages, "pair", columns)};
        std::size_t rows = 0;
        try {
            for (std::int64_t a = -3; a < 5; ++a)
                for (bool there = scan.first(a, 1); there; there = scan.next()) ASSERT_LT(++rows, 100'000u);
            EXPECT_FALSE(itself);
        } catch (const DatabaseFailure& failure) {
            EXPECT_TRUE(failure.corrupt());
        }
    }
}

}  // namespace
}  // namespace autotune
