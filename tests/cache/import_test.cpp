// Goal: records of elsewhere come in only as what they may be, and rank below what was measured here.
// Method: sound files, and files with one thing wrong each, the same as a database and as JSON lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "autotune/error.h"
#include "cache/sharing/exports.h"
#include "cache/store/file.h"
#include "cache/store/json.h"
#include "tests/cache/sharing_samples.h"
#include "tuner/model/hashing.h"

namespace autotune {
namespace {

using namespace samples;
using testing::AnyOf;
using testing::HasSubstr;

TakingInOptions as(Trust trust) { return {.ops = &shared_ops(), .trust = trust}; }

TakenIn import_of(Store& store, std::vector<std::byte> bytes, Trust trust = Trust::elsewhere) {
    return take_in_bytes(store, std::move(bytes), "foreign.db", as(trust));
}

std::string refusal_of(std::vector<std::byte> bytes) {
    Store store = Store::in_memory();
    const TakenIn taken = import_of(store, std::move(bytes));
    EXPECT_EQ(taken.refused, taken.rows);
    EXPECT_TRUE(store.records({}, {}).empty());
    return taken.named.empty() ? "nothing was refused" : taken.named.front().reason;
}

std::string error_of(std::vector<std::byte> bytes) {
    Store store = Store::in_memory();
    try {
        import_of(store, std::move(bytes));
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), Error::Kind::usage);
        return e.what();
    }
    return "no error";
}

/// The bytes of a sound database of one record after some SQL that a hostile author runs on it.
std::vector<std::byte> poisoned(const std::string& sql) {
    const Folder folder;
    const std::filesystem::path path = folder / "p.db";
    write_file_whole(path, database_bytes({shared_record(1024, 10)}));
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
    sqlite3_close(db);
    return read_file_whole(path).value();
}

/// The same of a line: what is changed in its JSON; the checksum stays as it was.
std::vector<std::byte> changed_line(const std::string& from, const std::string& to) {
    std::string line = to_line(shared_record(1024, 10));
    const std::size_t at = line.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << line;
    return bytes_of(line.replace(at, from.size(), to) + '\n');
}

// Goal: an import that is stopped half-way leaves the database as it was, and the same command takes all in.
TEST(Import, StoppedHalfWayNothingIsTakenInAndTheNextOneTakesAll) {
    std::vector<Record> records;
    for (std::int64_t n = 1; n <= 5000; ++n) records.push_back(shared_record(n, 50.0));
    const Folder folder;
    for (const auto& bytes : {database_bytes(records), lines_bytes(records)}) {
        const std::filesystem::path path = folder / (bytes[0] == std::byte{'{'} ? "lines" : "database") / "tune.db";
        Store store = Store::open({.path = path});
        store.put(std::vector{shared_record(7, 40.0, "own")});
        const std::string before = exported(store);
        int asked = 0;
        try {
            take_in_bytes(store, bytes, "x", {.ops = &shared_ops(), .stopped = [&] { return ++asked == 2; }});
            FAIL() << "it was not stopped";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), Error::Kind::interrupted);
            EXPECT_EQ(std::string{error.what()}, "interrupted: nothing of 'x' is taken in");
        }
        EXPECT_EQ(asked, 2);
        EXPECT_EQ(exported(store), before);
        EXPECT_TRUE(store.check().empty());
        EXPECT_EQ(store.row_counts().at("import_log"), 0);
        const TakenIn whole = take_in_bytes(store, bytes, "x", {.ops = &shared_ops(), .stopped = [] { return false; }});
        EXPECT_EQ(whole.rows, records.size());
        EXPECT_EQ(whole.refused, 0u);
    }
}

TEST(Import, TakesASoundDatabaseAndSoundLinesAlike) {
    const std::vector<Record> records{shared_record(1024, 10), shared_record(1024, 10.1, "a", 1),
                                      shared_record(2048, 20, "b")};
    Store from_database = Store::in_memory(), from_lines = Store::in_memory();
    EXPECT_EQ(import_of(from_database, database_bytes(records)).added, 3u);
    EXPECT_EQ(import_of(from_lines, lines_bytes(records)).added, 3u);
    EXPECT_EQ(exported(from_database), exported(from_lines));
    std::vector<Record> taken = from_database.records({.op = "scale"}, {});
    ASSERT_EQ(taken.size(), 3u);
    std::ranges::sort(taken, {}, &Record::time_us);
    EXPECT_EQ(taken[0].config, records[0].config);
    EXPECT_EQ(taken[0].problem.fields, records[0].problem.fields);
    EXPECT_EQ(taken[0].problem.json, records[0].problem.json);
    EXPECT_EQ(taken[0].time_us, 10);
    EXPECT_EQ(taken[0].verified, Verified::elsewhere);
    EXPECT_FALSE(taken[0].local());
    EXPECT_TRUE(from_database.check().empty());
}

TEST(Import, TakesWhatAnExportWrites) {
    Store store = Store::in_memory(), next = Store::in_memory(), third = Store::in_memory();
    store.put(std::vector{shared_record(1024, 10), shared_record(2048, 20, "b")});
    EXPECT_EQ(import_of(next, bytes_of(exported(store))).added, 2u);
    EXPECT_EQ(import_of(third, bytes_of(exported(next))).added, 2u);
    EXPECT_EQ(exported(third), exported(next)) << "what was imported once is the same after a second import";
}

TEST(Import, NeverReplacesWhatWasMeasuredHere) {
    Store store = Store::in_memory();
    Record slow = shared_record(1024, 50);
    slow.verified = Verified::checked;
    store.put({&slow, 1});
    const std::string before = exported(store);
    const TakenIn taken = import_of(store, database_bytes({shared_record(1024, 1, "b")}));
    EXPECT_EQ(taken.not_better, 1u);
    EXPECT_EQ(exported(store), before);
    EXPECT_EQ(imports(store).at(0).beside, 1u);
    Store at_first = Store::in_memory();
    import_of(at_first, database_bytes({shared_record(1024, 1, "b")}));
    at_first.put({&slow, 1});
    EXPECT_EQ(exported(at_first), before) << "whichever came first";
    EXPECT_EQ(imports(at_first).at(0).beside, 1u);
}

// Goal: what was imported is not lost to what is measured here: it waits, and stands again when that is pruned.
TEST(Import, WaitsBehindASearchOfHereAndStandsAgainWhenThatIsPruned) {
    Store store = Store::in_memory();
    import_of(store, database_bytes({shared_record(1024, 10), shared_record(1024, 10.1, "a", 1)}));
    const std::string imported = exported(store);
    Record mine = shared_record(1024, 50, "here");
    mine.run.ended = mine.tuned_at = 1'600'000'000;
    RunStart start{.device = mine.device,
                   .environment = mine.environment,
                   .templates = {mine.source},
                   .problem = mine.problem,
                   .info = mine.run};
    const RunId run = store.begin_run(start);
    store.record_trial(run, mine.config, timed(50));
    EXPECT_EQ(
        store.finish_run(run, {.finalists = {finalist(mine.config, 50)}, .evaluated = 2, .space_size = 8}).records, 1u);
    const std::vector<Record> best = store.records({.op = "scale", .winners_only = true}, {});
    ASSERT_EQ(best.size(), 1u);
    EXPECT_TRUE(best[0].local());
    EXPECT_EQ(best[0].time_us, 50) << "the imported one is faster, and nobody has checked it here";
    EXPECT_EQ(imports(store).at(0).beside, 1u);
    store.transact([&](Database& db) { EXPECT_TRUE(Contest{db}.remove(best[0].id)); });
    EXPECT_EQ(exported(store), imported);
    EXPECT_EQ(imports(store).at(0).beside, 0u);
}

TEST(Import, ARowThatClaimsALocalRunPassesForNone) {
    Store store = Store::in_memory();
    Record mine = shared_record(1024, 50);
    store.put({&mine, 1});
    Record forged = shared_record(2048, 1);  // of the same run
    EXPECT_EQ(import_of(store, database_bytes({forged})).added, 1u);
    for (const Record& record : store.records({.op = "scale"}, {}))
        EXPECT_EQ(record.local(), record.time_us == 50) << record.problem.text();
    forged.run.origin = "import";  // a claim that keeps its uuid
    EXPECT_THAT(import_of(store, lines_bytes({forged})).named.at(0).reason, HasSubstr("is another one here"));
}

TEST(Import, OfAFileThatIsImportedAgainNoRowIsCountedTwice) {
    Store store = Store::in_memory();
    const auto file = database_bytes({shared_record(1024, 10, "b"), shared_record(2048, 10, "c")});
    const auto taken_again = [&](const char* removal) {
        store.transact([&](Database& db) { db.execute(removal); });
        import_of(store, file);
        const auto entry = imports(store).at(0);
        return std::vector{entry.accepted, entry.rows, entry.standing};
    };
    const std::vector<std::size_t> all{2, 2, 2};
    EXPECT_EQ(taken_again("SELECT 1"), all);
    EXPECT_EQ(taken_again("DELETE FROM record"), all);
    EXPECT_EQ(taken_again("DELETE FROM record WHERE numbers = (SELECT min(numbers) FROM record)"), all);
}

TEST(Import, IsLoggedAndCanBeReverted) {
    Store store = Store::in_memory();
    Record mine = shared_record(4096, 50);
    store.put({&mine, 1});
    const std::string before = exported(store);
    const TakenIn taken =
        import_of(store, database_bytes({shared_record(1024, 10, "b"), shared_record(2048, 10, "c")}));
    ASSERT_EQ(imports(store).size(), 1u);
    EXPECT_EQ(imports(store)[0].id, taken.import_id);
    EXPECT_EQ(imports(store)[0].sha256, taken.sha256);
    EXPECT_EQ(imports(store)[0].accepted, 2u);
    EXPECT_EQ(imports(store)[0].standing, 2u);
    EXPECT_EQ(revert_import(store, taken.import_id, true).records, 2u);
    EXPECT_NE(exported(store), before) << "a dry run";
    EXPECT_EQ(revert_import(store, taken.import_id, false).records, 2u);
    EXPECT_EQ(exported(store), before);
    EXPECT_THROW(revert_import(store, taken.import_id, false), Error);
}

TEST(Import, ADryRunTellsTheSameAndWritesNothing) {
    Store store = Store::in_memory();
    TakingInOptions options = as(Trust::elsewhere);
    options.dry_run = true;
    const TakenIn taken = take_in_bytes(store, database_bytes({shared_record(1024, 10)}), "x.db", options);
    EXPECT_EQ(taken.added, 1u);
    EXPECT_EQ(taken.import_id, 0);
    EXPECT_TRUE(exported(store).empty());
    EXPECT_EQ(store.generation(), 0);
}

TEST(Import, AConfigValueThatTheOpDoesNotDeclareIsRefusedByName) {
    for (const std::string value :
         {"928", "\"64\\n#include </etc/passwd>\"", "\"64); asm(\"", "64.0", "true", "null"}) {
        const std::string reason = refusal_of(changed_line("[\"THREADS\",64]", "[\"THREADS\"," + value + "]"));
        if (value == "null")
            EXPECT_THAT(reason, HasSubstr("boolean, number or word"));
        else
            EXPECT_THAT(reason, HasSubstr("is not a value of THREADS (32, 64, 128, 256)")) << value;
        EXPECT_EQ(reason.find('\n'), std::string::npos);
    }
    EXPECT_EQ(refusal_of(poisoned("UPDATE config SET body_json = replace(body_json, '64', '928')")),
              "THREADS='928' is not a value of THREADS (32, 64, 128, 256); the row's checksum fails too");
    EXPECT_THAT(refusal_of(changed_line("\"MODE\",\"plain\"", "\"MODE\",\"plain -DX=1\"")),
                HasSubstr("is not a value of MODE (plain, fast)"));
    EXPECT_THAT(refusal_of(changed_line("[\"VEC\",1]", "[\"VEC\",1],[\"EVIL\",1]")), HasSubstr("is no parameter of"));
    EXPECT_THAT(refusal_of(changed_line("[\"VEC\",1]", "[\"VEC\",1],[\"VEC\",1]")), HasSubstr("two values"));
    EXPECT_THAT(refusal_of(changed_line(",[\"VEC\",1]", "")), HasSubstr("no value for VEC"));
}

TEST(Import, WhatItDoesNotKnowIsRefusedByName) {
    Record other_op = shared_record(1024, 10), other_variant = other_op;
    other_op.source.op = "unheard_of";
    other_variant.source.variant = other_variant.config.variant = "unheard_of";
    for (const auto& [record, words] : {std::pair{other_op, "there is no op 'unheard_of' here"},
                                        {other_variant, "scale has no variant 'unheard_of' here"}}) {
        EXPECT_EQ(refusal_of(database_bytes({record})), words);
        EXPECT_EQ(refusal_of(lines_bytes({record})), words);
    }
}

TEST(Import, AKeyThatDoesNotReadBackIsRefused) {
    const Record sound = shared_record(1024, 10);
    std::vector<Record> bad(6, sound);
    bad[0].problem.key.pop_back();
    bad[1].problem.key.push_back(std::byte{0});
    bad[2].problem.key.clear();
    bad[3].problem.key[0] = std::byte{2};            // another version
    bad[4].problem.key.assign(64, std::byte{0xff});  // lengths beyond all bounds
    const std::string text(reinterpret_cast<const char*>(bad[5].problem.key.data()), bad[5].problem.key.size());
    bad[5].problem.key[text.find("f32") + 1] = std::byte{'6'};  // a dtype that the op does not take
    for (const Record& record : bad) {
        if (!record.problem.key.empty())
            EXPECT_THAT(refusal_of(database_bytes({record})), HasSubstr("problem")) << to_hex(record.problem.key);
        EXPECT_THAT(refusal_of(lines_bytes({record})), HasSubstr("problem")) << to_hex(record.problem.key);
    }
}

TEST(Import, WhatAProblemSaysBesideItsKeyIsNotTaken) {
    Store store = Store::in_memory();
    std::string line = to_line(shared_record(1024, 10));
    line.replace(line.find("[\"n\",1024]"), 10, "[\"n\",4096]");
    EXPECT_EQ(import_of(store, bytes_of(line)).added, 1u);
    EXPECT_EQ(store.records({.op = "scale"}, {}).at(0).problem.fields, shared_record(1024, 10).problem.fields);
}

// SQLite has no checksums of pages: a flipped bit in a payload passes its own checks.
TEST(Import, AFlippedFigureFailsTheChecksum) {
    for (const char* column : {"time_ns = 9995", "samples = 21", "default_ns = NULL", "max_err = 0.25", "tuned_at = 5",
                               "verified = 1", "evaluated = 11"})
        EXPECT_EQ(refusal_of(poisoned(std::string{"UPDATE record SET "} + column)), "its checksum fails") << column;
    EXPECT_EQ(refusal_of(changed_line("\"time_us\":10.0", "\"time_us\":9.95")), "its checksum fails");
}

TEST(Import, FiguresThatNoSearchLeavesAreRefused) {
    for (const char* column :
         {"time_ns = 0", "time_ns = -5", "lo_ns = 11000", "hi_ns = 5", "samples = -1", "rank = 99", "max_err = 9e999",
          "verified = 3", "tuned_at = -1", "default_ns = 0", "time_ns = 9223372036854775807", "nvrtc_major = -1"})
        EXPECT_THAT(refusal_of(poisoned(std::string{"UPDATE record SET "} + column)),
                    AnyOf(HasSubstr("outside"), HasSubstr("below zero"), HasSubstr("before 1970"),
                          HasSubstr("no word of ours")))
            << column;
    for (const auto& [from, to] : {std::pair{"\"rank\":0", "\"rank\":-1"},
                                   {"\"rank\":0", "\"rank\":1e3"},
                                   {"\"time_us\":10.0", "\"time_us\":-1"},
                                   {"\"time_us\":10.0", "\"time_us\":1e99"},
                                   {"\"samples\":20", "\"samples\":\"20\""}})
        EXPECT_THAT(refusal_of(changed_line(from, to)), AnyOf(HasSubstr("outside"), HasSubstr("no number"))) << to;
}

// Goal: nobody's record counts for a GPU that its figures do not describe, and no number becomes another one on its
// way.
TEST(Import, AFingerprintOfOtherFiguresIsRefused) {
    const std::string why = "its GPU's fingerprint is not that of its figures";
    for (const auto& [from, to] : {std::pair{"\"cc\":90", "\"cc\":75"},
                                   {"\"sm_count\":132", "\"sm_count\":1"},
                                   {"\"bandwidth_gbs\":4890", "\"bandwidth_gbs\":490"},
                                   {"\"vendor\":\"nvidia\"", "\"vendor\":\"other\""}})
        EXPECT_EQ(refusal_of(changed_line(from, to)), why) << to;
    EXPECT_EQ(refusal_of(poisoned("UPDATE device SET sm = 131")), why);
}

TEST(Import, ANumberThatItsFieldCannotHoldIsRefused) {
    for (const auto& [from, to] : {std::pair{"\"cc\":90", "\"cc\":4294967386"},
                                   {"\"seed\":7", "\"seed\":-1"},
                                   {"\"warp\":32", "\"warp\":-4294967264"},
                                   {"\"nvrtc_major\":13", "\"nvrtc_major\":4294967309"},
                                   {"\"max_grid\":[", "\"max_grid\":[1099511627776,0,-1],\"was\":["}})
        EXPECT_THAT(refusal_of(changed_line(from, to)), HasSubstr(", which no ")) << to;
}

// Goal: what an import takes does not depend on the order of its lines. Method: two lines of one run whose GPU is told
// in two ways, one of them with another name.
TEST(Import, TwoLinesOfOneRunMayTellTheirGpuInTwoWays) {
    const Record one = shared_record(1024, 10);
    Record other = shared_record(2048, 20);
    other.run = one.run;
    other.device.name = "NVIDIA H200 NVL";
    std::set<std::string> ends;
    for (const auto& records : {std::vector{one, other}, std::vector{other, one}}) {
        Store store = Store::in_memory();
        const TakenIn taken = import_of(store, lines_bytes(records));
        EXPECT_EQ(taken.refused, 0u) << taken.named.front().reason;
        ends.insert(exported(store));
    }
    EXPECT_EQ(ends.size(), 1u);
}

TEST(Import, TextsThatSteerATerminalAreRefused) {
    for (const std::string text :
         {"evil\\u001b[2J", "a\\nb", "a\\u009bb", "a\\u202eb", "a\\u2028b", "\\ufeffa", "a\\u2066b"})
        EXPECT_THAT(refusal_of(changed_line("\"name\":\"NVIDIA H200\"", "\"name\":\"" + text + "\"")),
                    HasSubstr("its GPU is called"));
    EXPECT_THAT(refusal_of(poisoned("UPDATE setting SET strategy = 'x' || char(27) || '[31m'")),
                HasSubstr("its run holds"));
    EXPECT_EQ(refusal_of(poisoned("UPDATE setting SET strategy = 'x' || char(27)")).find('\x1b'), std::string::npos);
    EXPECT_THAT(refusal_of(poisoned("UPDATE device SET name = printf('%.1000c', 'x')")),
                HasSubstr("its GPU is called"));
}

TEST(Import, PartsThatAreMissingOrOfAnotherTypeAreRefused) {
    EXPECT_THAT(refusal_of(poisoned("DELETE FROM config")), HasSubstr("config is missing"));
    EXPECT_THAT(refusal_of(poisoned("DELETE FROM run")), HasSubstr("run is missing"));
    EXPECT_THAT(refusal_of(poisoned("DELETE FROM device")), HasSubstr("GPU is missing"));
    EXPECT_THAT(refusal_of(poisoned("DELETE FROM env")), HasSubstr("environment is missing"));
    EXPECT_THAT(refusal_of(poisoned("DELETE FROM template")), HasSubstr("template is missing"));
    EXPECT_THAT(refusal_of(poisoned("DELETE FROM form")), HasSubstr("problem is missing"));
    EXPECT_THAT(refusal_of(poisoned("DELETE FROM setting")), HasSubstr("run is missing"));
    EXPECT_THAT(refusal_of(poisoned("UPDATE form SET names_json = '[1'")), HasSubstr("fails its checksum"));
    EXPECT_THAT(refusal_of(poisoned("UPDATE setting SET budget = '1s'")), HasSubstr("does not fit its hash"));
    EXPECT_THAT(refusal_of(poisoned("UPDATE run SET seed = 8")), HasSubstr("fails its checksum"));
    EXPECT_THAT(refusal_of(poisoned("UPDATE record SET numbers = x'ff'")), HasSubstr("does not decode"));
    EXPECT_THAT(refusal_of(poisoned("UPDATE record SET run = x'00'")), HasSubstr("run is missing"));
    EXPECT_THAT(refusal_of(poisoned("UPDATE device SET name = 'other'")), HasSubstr("fails its checksum"));
    EXPECT_THAT(refusal_of(poisoned("UPDATE device SET attrs_json = '[1'")), HasSubstr("no JSON of ours"));
    EXPECT_THAT(refusal_of(poisoned("UPDATE env SET os = 'Plan 9'")), HasSubstr("does not fit its hash"));
    EXPECT_THAT(refusal_of(poisoned("UPDATE template SET source_hash = 'zz'")), HasSubstr("does not fit its hash"));
}

TEST(Import, ASchemaWithAnythingMoreIsRefusedBeforeItIsAsked) {
    for (const char* sql :
         {"CREATE VIEW v AS SELECT 1", "CREATE TRIGGER t AFTER INSERT ON record BEGIN DELETE FROM record; END",
          "CREATE TABLE more (x)", "CREATE INDEX i ON record (time_ns)", "CREATE VIRTUAL TABLE f USING fts5(x)",
          "ALTER TABLE meta ADD COLUMN extra TEXT", "DROP TABLE record; CREATE VIEW record AS SELECT * FROM predicted",
          "DROP TABLE meta; CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT AS (upper(key))) STRICT",
          "CREATE VIEW deep AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"})
        EXPECT_THAT(error_of(poisoned(sql)), HasSubstr("no database of autotune has")) << sql;
    EXPECT_THAT(error_of(poisoned("DROP TABLE predicted")), HasSubstr("it lacks the table 'predicted'"));
}

TEST(Import, AnotherApplicationOrANewerSchemaIsRefused) {
    EXPECT_EQ(error_of(poisoned("PRAGMA application_id = 7")),
              "'foreign.db' is not taken in: it is no autotune database");
    EXPECT_EQ(error_of(poisoned("PRAGMA user_version = 4")),
              "'foreign.db' is not taken in: it has schema 4, this program reads 1 to 3");
    EXPECT_THAT(error_of(bytes_of("SELECT 1")), HasSubstr("it is no autotune database"));
    EXPECT_THAT(error_of(bytes_of("{\"v\":2,\"kind\":\"record\"}")), HasSubstr("format 2, this program reads 1"));
    EXPECT_THAT(error_of(bytes_of("{}")), HasSubstr("its first line is no record"));
}

TEST(Import, LinesMayBeginWithTheMarkThatEditorsPutBeforeUtf8) {
    std::vector<std::byte> bytes = bytes_of("\xef\xbb\xbf");
    const auto lines = lines_bytes({shared_record(1024, 10)});
    bytes.insert(bytes.end(), lines.begin(), lines.end());
    Store store = Store::in_memory();
    EXPECT_EQ(import_of(store, bytes).added, 1u);
    EXPECT_EQ(imports(store).at(0).sha256, sha256_hex(std::span<const std::byte>{bytes})) << "not the file's";
    EXPECT_THAT(error_of(bytes_of("\xef\xbb\xbfno JSON")), HasSubstr("it is no autotune database"));
}

TEST(Import, HugeBlobsAndLinesAreRefused) {
    EXPECT_THAT(refusal_of(poisoned("UPDATE config SET body_json = printf('%.100000c', '[')")),
                HasSubstr("config is missing or damaged"));
    EXPECT_THAT(error_of(poisoned("UPDATE config SET body_json = printf('%.2000000c', '[')")), HasSubstr("is damaged"));
    std::vector<std::byte> bytes = lines_bytes({shared_record(1024, 10)});
    bytes.insert(bytes.end(), 100'000, std::byte{'x'});
    Store store = Store::in_memory();
    const TakenIn taken = import_of(store, bytes);
    EXPECT_EQ(taken.added, 1u);
    EXPECT_THAT(taken.named.at(0).reason, HasSubstr("the line has 100000 bytes, and 65536 are allowed"));
}

TEST(Import, LinesThatNestDeeplyAreRefused) {
    const std::string deep = std::string(1000, '[') + std::string(1000, ']');
    Store store = Store::in_memory();
    std::vector<std::byte> bytes = lines_bytes({shared_record(1024, 10)});
    const auto more = changed_line("[[\"THREADS\",64]", "[" + deep + ",[\"THREADS\",64]");
    bytes.insert(bytes.end(), more.begin(), more.end());
    EXPECT_EQ(import_of(store, bytes).named.at(0).reason, "the line is no record");
}

TEST(Import, AMemberThatStandsTwiceIsRefusedAlsoInAPartOfALine) {
    Store store = Store::in_memory();
    for (const char* part : {"\"device\":{", "\"run\":{", "\"template\":{", "\"env\":{"}) {
        const TakenIn taken =
            import_of(store, changed_line(part, std::string{part} + "\"name\":\"one\",\"name\":\"other\","));
        EXPECT_EQ(taken.refused, 1u) << part;
        EXPECT_EQ(taken.named.at(0).reason, "it has a member twice") << part;
    }
}

TEST(Import, FilesThatAreNoneAreRefusedWithoutWaiting) {
    const Folder folder;
    write_file_whole(folder / "sound.db", database_bytes({shared_record(1024, 10)}));
    std::filesystem::create_symlink(folder / "sound.db", folder / "link.db");
    ASSERT_EQ(::mkfifo((folder / "pipe.db").c_str(), 0600), 0);
    std::ofstream{folder / "empty.db"};
    Store store = Store::in_memory();
    for (const auto& [name, words] : {std::pair{"link.db", "it is a link"},
                                      {"pipe.db", "it is no file"},
                                      {"empty.db", "it is empty"},
                                      {".", "it is no file"},
                                      {"absent.db", "No such file"}}) {
        try {
            take_in(store, {folder / "sound.db", folder / name}, as(Trust::elsewhere));
            ADD_FAILURE() << name;
        } catch (const Error& e) {
            EXPECT_THAT(e.what(), HasSubstr(words));
        }
        EXPECT_TRUE(exported(store).empty()) << "of several files none goes in where one is none";
    }
    EXPECT_EQ(take_in(store, {folder / "sound.db"}, as(Trust::elsewhere)).at(0).added, 1u);
}

TEST(Import, WhatIsStillInALogBesideTheFileIsNotOverlooked) {
    const Folder folder;
    write_file_whole(folder / "x.db", database_bytes({shared_record(1024, 10)}));
    std::ofstream{folder / "x.db-wal"} << "frames";
    Store store = Store::in_memory();
    try {
        take_in(store, {folder / "x.db"}, as(Trust::elsewhere));
        ADD_FAILURE();
    } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("its last writes are still in 'x.db-wal'"));
    }
}

TEST(Import, AFileWithMoreRowsThanAllowedGoesInNotAtAll) {
    Store store = Store::in_memory();
    TakingInOptions options = as(Trust::elsewhere);
    options.most_rows = 1;
    EXPECT_THROW(
        take_in_bytes(store, lines_bytes({shared_record(1024, 10), shared_record(2048, 10, "b")}), "x", options),
        Error);
    EXPECT_TRUE(exported(store).empty());
}

TEST(Import, APredictionStaysOne) {
    Record predicted = shared_record(1024, 10);
    predicted.predicted = true;
    predicted.model_version = "7";
    predicted.environment.emulator = 7;
    for (const auto& bytes : {database_bytes({predicted}), lines_bytes({predicted})}) {
        Store store = Store::in_memory();
        EXPECT_EQ(import_of(store, bytes).added, 1u);
        EXPECT_TRUE(store.records({.op = "scale"}, {}).empty());
        const std::vector<Record> stored = store.records({.op = "scale", .predicted = true}, {});
        ASSERT_EQ(stored.size(), 1u);
        EXPECT_FALSE(stored[0].local());
    }
}

}  // namespace
}  // namespace autotune
