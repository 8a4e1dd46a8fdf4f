// Goal: records leave one database and come into another by the command line, with its messages and exit codes.
// Method: a search on a made-up GPU fills the first one.
#include <sqlite3.h>

#include <chrono>
#include <optional>
#include <thread>

#include "cache/store/entities.h"
#include "cache/store/shared_rows.h"
#include "cache/store/store.h"
#include "cache/store/writer_lock.h"
#include "tests/tools/command_line.h"

namespace autotune {
namespace {

using nlohmann::json;

class DbCommandLine : public CommandLine {
protected:
    void SetUp() override {
        CommandLine::SetUp();
        const Answer r = scripted("tune softmax rows=64,cols=4096,dtype=f32 --budget 12");
        ASSERT_EQ(r.code, 0) << r.err;
        ASSERT_EQ(run("db export softmax -o all.jsonl").code, 0);
        rows = static_cast<std::size_t>(std::ranges::count(read(folder / "all.jsonl"), '\n'));
        ASSERT_GT(rows, 0u);
    }
    /// Where the search stored.
    std::filesystem::path stored() const {
        return json::parse(run("db path --json").out).at("path").get<std::string>();
    }
    static void change(const std::filesystem::path& database, const char* sql) {
        sqlite3* connection = nullptr;
        ASSERT_EQ(sqlite3_open(database.c_str(), &connection), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(connection, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(connection);
        sqlite3_close(connection);
    }
    std::string rows_text() const { return std::to_string(rows) + (rows == 1 ? " record" : " records"); }

    std::size_t rows = 0;
};

TEST_F(DbCommandLine, WhatIsExportedAsLinesOrAsADatabaseIsImportedAlike) {
    ASSERT_EQ(run("db export -o all.db").code, 0);
    const Answer lines = run("db import all.jsonl --db a/tune.db"), database = run("db import all.db --db b/tune.db");
    EXPECT_EQ(lines.code, 0) << lines.err;
    EXPECT_EQ(lines.out, "all.jsonl  " + rows_text() + ": " + std::to_string(rows) +
                             " new, 0 better, 0 not better   (import 1)\n");
    EXPECT_EQ(database.code, 0) << database.err;
    EXPECT_EQ(run("db export --db a/tune.db").out, run("db export --db b/tune.db").out);
    EXPECT_NE(run("query softmax --db a/tune.db --json").out.find("\"verified\":\"elsewhere\""), std::string::npos);
}

TEST_F(DbCommandLine, AnExportOfNothingLeavesWhatIsThereAlone) {
    const std::string before = read(folder / "all.jsonl");
    for (const char* const to :
         {"-o all.jsonl", "--csv -o all.jsonl", "--as cpp -o all.jsonl", "-o new.db", "--flat new.db"}) {
        const Answer none = run(std::string{"db export gemm "} + to);
        EXPECT_EQ(none.code, 2) << to << none.err;
        EXPECT_NE(none.err.find("no record matches"), std::string::npos) << none.err;
        const Answer absent = run(std::string{"db export --db typo.db "} + to);
        EXPECT_EQ(absent.code, 1) << to << absent.err;
        EXPECT_NE(absent.err.find("there is no database at 'typo.db'"), std::string::npos) << absent.err;
    }
    EXPECT_EQ(read(folder / "all.jsonl"), before);
    EXPECT_FALSE(std::filesystem::exists(folder / "new.db"));
}

TEST_F(DbCommandLine, AFileOfTrialsIsNotCalledDamaged) {
    const std::string trials = (stored().parent_path() / "trials.db").string();
    for (const std::string& words : {"query --db " + trials, "tune softmax rows=8,cols=8,dtype=f32 --db " + trials}) {
        const Answer r = scripted(words);
        EXPECT_EQ(r.code, 1) << r.err;
        EXPECT_NE(r.err.find("has the trials of a database, and is none itself"), std::string::npos) << r.err;
    }
}

TEST_F(DbCommandLine, WhatNeedsADatabaseMakesNone) {
    for (const std::string words : {"db bundle softmax -o x.bundle", "db revert-import 1", "db export"}) {
        const Answer r = run(words + " --db typo.db");
        EXPECT_EQ(r.code, 1) << words << r.err;
        EXPECT_NE(r.err.find("there is no database at 'typo.db'"), std::string::npos) << words << r.err;
    }
    EXPECT_EQ(scripted("verify --db typo.db").code, 1);
    for (const auto& entry : std::filesystem::directory_iterator{folder})
        EXPECT_EQ(entry.path().filename().string().find("typo"), std::string::npos) << entry.path();
}

TEST_F(DbCommandLine, ALineEndInWhatAGpuIsCalledBreaksNoTable) {
    Store::open({.path = stored()}).transact([](Database& db) {
        DeviceIdentity gpu = Entities{db}.device(1)->value;
        gpu.name = "two\nlines";
        describe(db, 1, gpu);
    });
    const Answer r = run("query softmax");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out.find("two\nlines"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("two"), std::string::npos) << r.out;
}

TEST_F(DbCommandLine, AMergeKeepsWhatIsBetterAndTellsWhatIsMissing) {
    write("problems.txt", "softmax rows=64,cols=4096,dtype=f32\n");
    EXPECT_EQ(run("db merge all.jsonl --into m/all.db --expect-problems problems.txt").code, 0);
    EXPECT_EQ(run("db export --db m/all.db").out, read(folder / "all.jsonl"));
    const Answer again = run("db merge all.jsonl all.jsonl --into m/all.db");
    EXPECT_NE(again.out.find("0 new, 0 better, " + std::to_string(rows) + " not better"), std::string::npos)
        << again.out;
    write("problems.txt", "softmax rows=65,cols=4096,dtype=f32\n");
    const Answer missing = run("db merge all.jsonl --into m/all.db --expect-problems problems.txt");
    EXPECT_EQ(missing.code, 4);
    EXPECT_NE(missing.out.find("missing: softmax rows=65,cols=4096,dtype=f32 (problems.txt:1)"), std::string::npos)
        << missing.out;
}

TEST_F(DbCommandLine, ADryRunMakesNoFile) {
    const Answer r = run("db merge all.jsonl --into m/all.db --dry-run");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("nothing written (dry run)"), std::string::npos) << r.out;
    EXPECT_FALSE(std::filesystem::exists(folder / "m"));
}

TEST_F(DbCommandLine, ARefusedRowIsNamedWithItsReasonAndAllRefusedEndsWithTwo) {
    std::string text = read(folder / "all.jsonl");
    for (std::size_t at = 0; (at = text.find("\"config\":[[\"", at)) != std::string::npos; at += 12)
        text.replace(at + 12, 1, "X");
    write("bad.jsonl", text);
    const Answer r = run("db import bad.jsonl --db a/tune.db");
    EXPECT_EQ(r.code, 2) << r.out;
    EXPECT_NE(r.out.find("refused: bad.jsonl record 1 of 'softmax': "), std::string::npos) << r.out;
}

// Goal: Ctrl-C ends an import with nothing taken in, one message and the documented code.
// Method: the test holds the writers' lock, so the signal meets an import that has read its file and put no row.
TEST_F(DbCommandLine, AnImportThatIsInterruptedTakesNothingIn) {
    ASSERT_EQ(run("db import all.jsonl --db a/tune.db").code, 0);
    ASSERT_EQ(run("db revert-import 1 --db a/tune.db").code, 0);
    for (const std::string command : {"import all.jsonl --db", "merge all.jsonl --into"}) {
        Answer r;
        {
            WriterLock lock{folder / "a/tune.db"};
            std::optional<WriterTurn> turn{std::in_place, lock, std::chrono::seconds{10}};
            ASSERT_TRUE(turn->held());
            std::thread importing{[&] {
                // The signal may come once it is caught, bit 1 of the mask, and not by the shell that has yet to become
                // the program.
                r = shell("'" AUTOTUNE_BINARY_DIR "/bin/autotune' db " + command +
                          " a/tune.db & pid=$!; until grep -q autotune /proc/$pid/comm && "
                          "grep -q 'SigCgt:.*[2367abef]$' /proc/$pid/status; do sleep 0.01; done; kill -INT $pid; "
                          "touch told; wait $pid");
            }};
            while (!std::filesystem::exists(folder / "told")) std::this_thread::sleep_for(std::chrono::milliseconds{5});
            std::filesystem::remove(folder / "told");
            turn.reset();
            importing.join();
        }
        EXPECT_EQ(r.code, 130) << command << r.out << r.err;
        EXPECT_EQ(r.err, "error: interrupted: nothing of 'all.jsonl' is taken in\nhelp: give the same command again\n");
        EXPECT_EQ(run("db export --db a/tune.db").out, "") << command;
        EXPECT_EQ(run("db check --db a/tune.db").code, 0) << command;
    }
    EXPECT_EQ(run("db import all.jsonl --db a/tune.db").code, 0);
    EXPECT_NE(run("db export --db a/tune.db").out, "");
}

TEST_F(DbCommandLine, AnImportIsListedAndReverted) {
    ASSERT_EQ(run("db import all.jsonl --db a/tune.db").code, 0);
    EXPECT_NE(run("db imports --db a/tune.db").out.find("import 1: "), std::string::npos);
    EXPECT_EQ(run("db revert-import 1 --db a/tune.db").out, "import 1: " + rows_text() + " and 0 predictions gone\n");
    EXPECT_EQ(run("db export --db a/tune.db").out, "");
    const Answer none = run("db revert-import 1 --db a/tune.db");
    EXPECT_EQ(none.code, 1);
    EXPECT_EQ(none.err, "error: there is no import 1\nhelp: autotune db imports\n");
    EXPECT_EQ(run("db revert-import x --db a/tune.db").code, 1);
}

TEST_F(DbCommandLine, AFileThatIsNoneAndAWordTooFewAreToldAndEndWithOne) {
    write("x.db", "no database");
    for (const auto& [words, message] :
         {std::pair{
              "db import x.db --db a/tune.db",
              "error: 'x.db' is not taken in: it is no autotune database\nhelp: name a file that autotune db export or "
              "autotune db bundle has made, or a tune.db\n"},
          {"db import", "error: an import needs a file\nhelp: autotune db import softmax.jsonl\n"},
          {"db merge --into m.db",
           "error: a merge needs files\nhelp: autotune db merge node1.db node2.db --into all.db\n"},
          {"db export --as xml", "error: --as is db, lines, cpp, csv, flat, not 'xml'\n"},
          {"db export --as db", "error: a database is no text for a terminal\nhelp: add -o records.db\n"},
          {"db export softmx", "error: there is no op 'softmx'; did you mean 'softmax'?\nhelp: autotune ops\n"}}) {
        const Answer r = run(words);
        EXPECT_EQ(r.code, 1) << words;
        EXPECT_EQ(r.err, message) << words;
        EXPECT_EQ(r.out, "") << words;
    }
}

TEST_F(DbCommandLine, VerifyTakesImportedRecordsOverOnceTheyWereCheckedAndTimedHere) {
    ASSERT_EQ(run("db import all.jsonl --db a/tune.db").code, 0);
    const Answer r = scripted("verify softmax --imported --db a/tune.db");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find(" now measured here"), std::string::npos) << r.out;
    const std::string after = run("db export --db a/tune.db").out;
    EXPECT_EQ(after.find("\"origin\":\"import\""), std::string::npos) << after;
    EXPECT_NE(after.find("\"strategy\":\"verify\""), std::string::npos) << after;
    EXPECT_EQ(scripted("verify softmax --imported --db a/tune.db").out,
              "0 records checked, 0 failed, 0 now measured here\n");
}

// Goal: what was imported waits behind a slower search of here, until it was measured here and is faster.
TEST_F(DbCommandLine, VerifyTimesWhatWaitsBehindASearchOfHereAndTheFasterStands) {
    const std::string problem = "softmax rows=64,cols=4096,dtype=f32";
    const auto first = [&](const std::string& db) { return json::parse(run("query softmax --json" + db).out); };
    const json won = first("");
    json here = won;
    std::string db;
    for (int seed = 1; seed <= 20 && here["time_us"] <= won["time_us"]; ++seed) {  // until two trials found less
        db = fmt::format(" --db a/{}.db", seed);
        const std::string search = fmt::format("tune {} --strategy random --seed {} --budget 2{}", problem, seed, db);
        ASSERT_EQ(scripted(search + " --prior none").code, 0);
        here = first(db);
    }
    ASSERT_GT(here["time_us"], won["time_us"]) << "each short search found as much";
    ASSERT_EQ(run("db import all.jsonl" + db).code, 0);
    EXPECT_EQ(first(db)["config"], here["config"]) << "nobody has measured the other one here";
    const Answer r = scripted("verify softmax --imported" + db);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(first(db)["config"], won["config"]) << r.out;
    EXPECT_EQ(first(db)["verified"], "verified");
    EXPECT_EQ(scripted("verify softmax --imported" + db).out, "0 records checked, 0 failed, 0 now measured here\n");
}

TEST_F(DbCommandLine, AnImportedRecordThatFailsItsCheckIsTakenOverByNobody) {
    ASSERT_EQ(run("db import all.jsonl --db a/tune.db").code, 0);
    const std::string config =
        json::parse(run("query softmax --db a/tune.db --json").out)["config"]["text"].get<std::string>();
    const Answer r = scripted("verify softmax --imported --db a/tune.db", "SCRIPTED_FAILS='" + config + "'");
    EXPECT_EQ(r.code, 4) << r.out;
    EXPECT_NE(r.out.find("1 failed"), std::string::npos) << r.out;
    const Answer why = scripted("why softmax rows=64,cols=4096,dtype=f32 --db a/tune.db");
    EXPECT_EQ(why.out.find("answer: exact, " + config), std::string::npos) << why.out;
}

TEST_F(DbCommandLine, ADiffNamesWhatIsFasterAndFailsWhereItIsAskedTo) {
    EXPECT_EQ(run("db diff all.jsonl all.jsonl --fail-on any").out, "1 problem: 1 same\n");
    ASSERT_EQ(scripted("tune softmax rows=65,cols=4096,dtype=f32 --budget 12").code, 0);
    ASSERT_EQ(run("db export softmax -o more.db").code, 0);
    const Answer r = run("db diff all.jsonl more.db");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("only in the second"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("2 problems: 1 only in the second, 1 same\n"), std::string::npos) << r.out;
    EXPECT_EQ(run("db diff all.jsonl more.db --fail-on slower").code, 0);
    EXPECT_EQ(run("db diff all.jsonl more.db --fail-on any").code, 4);
    EXPECT_EQ(run("db diff all.jsonl").code, 1);
}

TEST_F(DbCommandLine, TwoGpusThatAreOneSiliconAreJoinedListedAndParted) {
    const std::string fp = json::parse(run("db alias --json").out)["fp"], other(64, 'b');
    {
        Store store = Store::open({.path = folder / "cache/1/tune.db"});
        std::vector<Record> records = store.records({}, {});
        ASSERT_FALSE(records.empty());
        for (Record& record : records) {
            record.device.fp = other;
            record.run.uuid = std::string(32, 'c');
        }
        store.put(records);
    }
    const std::string one = std::min(fp, other).substr(0, 16), two = std::max(fp, other).substr(0, 16);
    const std::string before = run("db alias").out;
    EXPECT_EQ(std::ranges::count(before, '\n'), 2) << before;
    EXPECT_NE(before.find(two + "  "), std::string::npos) << before;
    const Answer made = run("db alias " + fp.substr(0, 12) + " bbbbbbbb");
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(made.out, fp.substr(0, 16) + " and bbbbbbbbbbbbbbbb are one GPU now\n");
    EXPECT_EQ(run("db alias").out, before + one + " and " + two + " are one GPU\n");
    const Answer parted = run("db alias bbbbbbbb " + fp + " --remove");
    EXPECT_EQ(parted.code, 0) << parted.err;
    EXPECT_EQ(run("db alias").out, before);
    for (const std::string& words : {"bbbbbbbb " + fp + " --remove", std::string{"bbbbbbbb"}, std::string{"--remove"},
                                     "bbbb " + fp, "cccccccc " + fp, fp + " " + fp}) {
        const Answer wrong = run("db alias " + words);
        EXPECT_EQ(wrong.code, 1) << words;
        EXPECT_NE(wrong.err.find("error: "), std::string::npos) << words;
        EXPECT_EQ(wrong.out, "") << words;
    }
    EXPECT_EQ(run("db alias cccccccc " + fp).err,
              "error: no GPU of the database has a fingerprint that begins with 'cccccccc'\nhelp: autotune db alias\n");
    EXPECT_EQ(run("db alias").out, before);
}

TEST_F(DbCommandLine, QuerySaysThatDamagedRecordsAreLeftOut) {
    EXPECT_EQ(run("query").err.find("left out"), std::string::npos);
    change(stored(), "UPDATE record SET time_ns = time_ns + 1 WHERE rank = 0");
    const Answer r = run("query");
    EXPECT_NE(r.err.find("warning: 1 damaged record is left out\nhelp: autotune db check\n"), std::string::npos)
        << r.err;
    EXPECT_EQ(run("db check").code, 4);
}

TEST_F(DbCommandLine, TablesForViewersAndAHeaderAreExportedToo) {
    EXPECT_EQ(run("db export --flat flat.db").code, 0);
    EXPECT_EQ(read(folder / "flat.db").substr(0, 15), "SQLite format 3");
    EXPECT_EQ(run("db export --flat flat.db").code, 1) << "it is there already";
    EXPECT_EQ(run("db export --csv").out.substr(0, 15), "op,gpu,problem,");
    EXPECT_NE(run("db export --as cpp").out.find("inline constexpr autotune::EmbeddedRecord tuned_records[] = {"),
              std::string::npos);
}

TEST_F(DbCommandLine, StatsTellWhatIsHeldOfEachOpAndGpu) {
    const Answer r = run("db stats");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("record " + std::to_string(rows)), std::string::npos) << r.out;
    const json line = json::parse(run("db stats --json").out);
    ASSERT_EQ(line["groups"].size(), 1u);
    EXPECT_EQ(line["groups"][0]["op"], "softmax");
    EXPECT_EQ(line["groups"][0]["records"], rows);
    EXPECT_EQ(line["groups"][0]["problems"], 1);
    EXPECT_EQ(line["bytes"], std::filesystem::file_size(stored()));
}

TEST_F(DbCommandLine, ACheckNamesARecordThatWasChangedAndEndsWithFour) {
    const Answer sound = run("db check");
    EXPECT_EQ(sound.code, 0) << sound.out << sound.err;
    EXPECT_NE(sound.out.find("is sound\n"), std::string::npos) << sound.out;
    change(stored(), "UPDATE record SET time_ns = time_ns - 1 WHERE rank = 0");
    const Answer r = run("db check");
    EXPECT_EQ(r.code, 4);
    EXPECT_NE(r.out.find("the checksum of record "), std::string::npos) << r.out;
    EXPECT_NE(r.err.find("has 1 fault\nhelp: autotune db salvage "), std::string::npos) << r.err;
    EXPECT_EQ(run("db check none.db").code, 1);
    EXPECT_FALSE(std::filesystem::exists(folder / "none.db"));
}

TEST_F(DbCommandLine, SalvageCopiesAllButTheRowsWhoseChecksumsFail) {
    change(stored(), "UPDATE record SET time_ns = time_ns - 1 WHERE rank = 0");
    const std::string broken = "'" + stored().string() + "'";
    const Answer r = run("db salvage " + broken + " new.db");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("left out, since their checksums or parts fail: 1 row\n"), std::string::npos) << r.out;
    EXPECT_EQ(run("db check new.db").code, 0);
    EXPECT_EQ(std::ranges::count(run("db export --db new.db").out, '\n'), static_cast<std::ptrdiff_t>(rows) - 1);
    const Answer again = run("db salvage " + broken + " new.db");
    EXPECT_EQ(again.code, 1);
    EXPECT_NE(again.err.find("new.db' is there already\nhelp: name a new file\n"), std::string::npos) << again.err;
    EXPECT_EQ(run("db salvage").code, 1);
}

TEST_F(DbCommandLine, AFileThatWasCutOffIsNamedByACheckAndSalvaged) {
    const std::filesystem::path whole = stored();
    std::filesystem::copy_file(whole, folder / "cut.db");
    std::filesystem::resize_file(folder / "cut.db", std::filesystem::file_size(whole) - 4096);
    const Answer check = run("db check cut.db");
    EXPECT_EQ(check.code, 4);
    EXPECT_NE(check.out.find("shorter than its header says"), std::string::npos) << check.out;
    const Answer r = run("db salvage cut.db new.db");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(run("db check new.db").code, 0);
}

TEST_F(DbCommandLine, PruneRemovesWhatItsDryRunTells) {
    const auto told = [&](const std::string& words) {
        const Answer r = run("db prune --json " + words);
        EXPECT_EQ(r.code, 0) << r.err;
        json line = json::parse(r.out);
        line.erase("dry_run");
        return line;
    };
    const json would = told("--trials --dry-run"), gone = told("--trials");
    EXPECT_GT(would["trials"], 0);
    EXPECT_EQ(would["records"], 0);
    EXPECT_EQ(gone, would);
    EXPECT_EQ(told("--trials")["trials"], 0);
    EXPECT_EQ(told("--older-than 90d")["records"], 0);
    EXPECT_EQ(run("db export").out, read(folder / "all.jsonl"));
    EXPECT_EQ(run("db prune").err,
              "error: nothing was said to go\nhelp: give --trials, --stale or --older-than 90d; --dry-run shows what "
              "would\n");
    for (const std::string age : {"90", "d", "-1d", "90days", "99999999999999999999d"}) {
        const Answer r = run("db prune --older-than=" + age);
        EXPECT_EQ(r.code, 1) << age;
        EXPECT_EQ(r.err, "error: '" + age + "' is no age\nhelp: such as 90d, 12h or 6w\n");
    }
}

TEST_F(DbCommandLine, UpkeepOfNothingSaysSoAndMakesNothing) {
    for (const std::string words : {"prune --trials", "compact"}) {
        const Answer r = run("db " + words + " --db new/tune.db");
        EXPECT_EQ(r.code, 0) << words << r.err;
        EXPECT_EQ(r.out, "nothing is stored yet\n") << words;
        EXPECT_FALSE(std::filesystem::exists(folder / "new")) << words;
    }
    for (const auto& [words, message] :
         {std::pair{"check", "error: there is no file to check\nhelp: name one: autotune db check FILE\n"},
          {"compact", "error: there is no file to compact\nhelp: name a database with --db\n"}}) {
        const Answer r = run(std::string{"db "} + words + " --db none");
        EXPECT_EQ(r.code, 1) << words;
        EXPECT_EQ(r.err, message);
    }
}

TEST_F(DbCommandLine, CompactGivesBackWhatPruningFreed) {
    ASSERT_EQ(run("db prune --trials").code, 0);
    const Answer r = run("db compact --json");
    EXPECT_EQ(r.code, 0) << r.err;
    const json line = json::parse(r.out);
    EXPECT_LE(line["bytes_after"], line["bytes_before"]);
    const json stats = json::parse(run("db stats --json").out);
    EXPECT_EQ(stats["unused_bytes"], 0);
    EXPECT_EQ(stats["unused_trials_bytes"], 0);
    EXPECT_EQ(run("db export").out, read(folder / "all.jsonl"));
}

}  // namespace
}  // namespace autotune
