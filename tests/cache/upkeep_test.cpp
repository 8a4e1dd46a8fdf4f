// Goal: upkeep removes what it was told to and nothing else, tells what is wrong with a file, and saves what is sound
// of a broken one. Method: small databases, damaged by SQL or byte by byte. The functions by which files come to their
// place and onto the disk are of this file: what is in the program itself comes before what its libraries have.
#include "cache/store/upkeep.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "autotune/error.h"
#include "cache/store/fold_lock.h"
#include "cache/store/location.h"
#include "cache/store/schema.h"
#include "cache/store/spool.h"
#include "cache/store/writer_lock.h"
#include "tests/cache/samples.h"

namespace {

std::vector<std::string> moves_and_syncs;  ///< "sync NAME" and "move NAME", in order
int dies_at_move = 0;                      ///< the one before which this process is killed; 0: none

}  // namespace

extern "C" [[gnu::visibility("default")]] int fsync(int file) {
    const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file));
    struct stat status {};
    const bool folder = ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
    moves_and_syncs.push_back("sync " + (folder ? std::string{"the folder"} : path.filename().string()));
    return static_cast<int>(::syscall(SYS_fsync, file));
}

extern "C" [[gnu::visibility("default")]] int renameat2(int from_folder, const char* from, int to_folder,
                                                        const char* to, unsigned flags) noexcept {
    if (dies_at_move > 0 && --dies_at_move == 0) ::kill(::getpid(), SIGKILL);
    moves_and_syncs.push_back("move " + std::filesystem::path{to}.filename().string());
    return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

namespace autotune {
namespace {

namespace fs = std::filesystem;
using namespace samples;

constexpr std::int64_t today_s = 1'764'000'000, day_s = 24 * 3600;

std::string file_bytes(const fs::path& path) {
    std::ifstream in{path, std::ios::binary};
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

void put_bytes(const fs::path& path, const std::string& bytes) { std::ofstream{path, std::ios::binary} << bytes; }

void change(const fs::path& path, const char* sql) {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(connection, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(connection);
    sqlite3_close(connection);
}

class UpkeepOfAFile : public testing::Test {
protected:
    fs::path path() const { return folder_ / "tune.db"; }
    Store open(std::int64_t now = today_s, bool shared = false) const {
        return Store::open(
            {.path = path(), .warn = [](const std::string&) {}, .spool_only = shared, .now = [now] { return now; }});
    }
    Store read() const { return Store::open({.path = path(), .mode = Store::Mode::read}); }
    void searched(std::int64_t n, std::int64_t when = today_s) const {
        Store store = open(when);
        search(store, start(n), {{config(256, 4), 50.0}, {config(128, 4), 50.5}});
    }
    std::size_t count(const char* table) const { return static_cast<std::size_t>(read().row_counts().at(table)); }
    static Today changed_sources() {
        Today changed = today();
        for (TemplateIdentity& t : changed.templates) t.source_hash += "x";
        return changed;
    }

    Folder folder_;
};

// -- stats

TEST_F(UpkeepOfAFile, StatisticsTellOfEachOpAndDeviceHowMuchIsStale) {
    searched(1024, today_s - day_s);
    searched(2048);
    Store store = open();
    const Statistics fresh = Upkeep{store}.statistics(today());
    ASSERT_EQ(fresh.groups.size(), 1u);
    EXPECT_EQ(fresh.groups[0].op, "scale");
    EXPECT_EQ(fresh.groups[0].device_name, "NVIDIA H200");
    EXPECT_EQ(fresh.groups[0].problems, 2u);
    EXPECT_EQ(fresh.groups[0].records, 4u);
    EXPECT_EQ(fresh.groups[0].stale, 0u);
    EXPECT_EQ(fresh.groups[0].oldest, today_s - day_s);
    EXPECT_EQ(fresh.groups[0].newest, today_s);
    EXPECT_EQ(fresh.bytes, fs::file_size(path()));
    EXPECT_EQ(fresh.rows.at("trial"), 4);
    EXPECT_EQ(fresh.schema, schema_version);
    EXPECT_EQ(Upkeep{store}.statistics(changed_sources()).groups[0].stale, 4u);
}

TEST_F(UpkeepOfAFile, StatisticsOfNothingAreEmpty) {
    Store store = read();
    EXPECT_TRUE(Upkeep{store}.statistics(today()).groups.empty());
    EXPECT_FALSE(fs::exists(path()));
}

// -- check

TEST_F(UpkeepOfAFile, ASoundFileHasNoFaults) {
    searched(1024);
    EXPECT_EQ(faults_of(path()), std::vector<std::string>{});
}

TEST_F(UpkeepOfAFile, AChangedFigureIsFoundThoughSqliteSeesNothing) {
    searched(1024);
    change(path(), "UPDATE record SET time_ns = time_ns + 1 WHERE rank = 1");
    const auto faults = faults_of(path());
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_NE(faults[0].find("the checksum of record"), std::string::npos) << faults[0];
}

TEST_F(UpkeepOfAFile, AChangedTrialConfigOrReferenceIsFound) {
    searched(1024);
    change(trials_path(path()), "UPDATE trial SET outcome = 'crashed' WHERE ordinal = 1");
    auto faults = faults_of(path());
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0], "the checksum of trial 1 of run 1 fails");
    change(path(), "UPDATE config SET body_json = replace(body_json, '256', '928')");
    faults = faults_of(path());
    EXPECT_NE(std::find(faults.begin(), faults.end(), "row 1 of 'config' does not fit its hash"), faults.end());
    change(path(), "DELETE FROM form");
    faults = faults_of(path());
    EXPECT_NE(std::find(faults.begin(), faults.end(), "2 rows of 'record' speak of rows of 'form' that are not there"),
              faults.end());
}

TEST_F(UpkeepOfAFile, ATruncatedFileIsAFaultAndAForeignOneAnError) {
    searched(1024);
    const std::string whole = file_bytes(path());
    put_bytes(path(), whole.substr(0, whole.size() / 2));
    EXPECT_EQ(faults_of(path()).size(), 1u);
    put_bytes(path(), "a shopping list");
    EXPECT_THROW(faults_of(path()), Error);
    EXPECT_THROW(faults_of(folder_ / "none.db"), Error);
    EXPECT_EQ(file_bytes(path()), "a shopping list");
}

TEST_F(UpkeepOfAFile, APageOfZerosIsFoundWhereverItIs) {
    searched(1024);
    const std::string whole = file_bytes(path());
    const std::size_t page = 4096;
    ASSERT_EQ(whole.size() % page, 0u);
    for (std::size_t at = page; at < whole.size(); at += page) {
        std::string broken = whole;
        std::fill_n(broken.begin() + static_cast<std::ptrdiff_t>(at), page, '\0');
        put_bytes(path(), broken);
        EXPECT_FALSE(faults_of(path()).empty()) << at / page;
    }
}

// -- prune

TEST_F(UpkeepOfAFile, PruningTrialsKeepsTheRecords) {
    searched(1024);
    Store store = open();
    const Pruned gone = Upkeep{store}.prune({.trials = true}, today(), false);
    EXPECT_EQ(gone.trials, 2u);
    EXPECT_EQ(gone.records, 0u);
    EXPECT_EQ(count("trial"), 0u);
    EXPECT_EQ(count("record"), 2u);
    EXPECT_EQ(faults_of(path()), std::vector<std::string>{});
}

TEST_F(UpkeepOfAFile, PruningLeavesASearchUnderWayAlone) {
    Store searching = open();
    const RunId run = searching.begin_run(start());
    searching.record_trial(run, config(256, 4), timed(50.0));
    searching.record_trial(run, config(128, 4), timed(60.0));
    {
        Store store = open();
        const Pruned gone = Upkeep{store}.prune({.trials = true, .stale = true}, changed_sources(), false);
        EXPECT_EQ(gone.trials, 0u);
        EXPECT_EQ(gone.runs, 0u);
    }
    searching.finish_run(run, {.evaluated = 9, .space_size = 64});
    EXPECT_EQ(count("record"), 1u);
    EXPECT_EQ(faults_of(path()), std::vector<std::string>{});
}

// Goal: what is under way when the trials go is left alone, not what was when somebody asked.
// Method: pruning waits for its turn to write while a run goes on that had ended.
TEST_F(UpkeepOfAFile, PruningLeavesASearchAloneThatBeganWhileItWaited) {
    searched(1024);
    Store store = open();
    WriterLock other{trials_path(path())};
    ASSERT_TRUE(other.acquire(std::chrono::milliseconds{0}));
    Pruned gone;
    std::thread pruning{[&] { gone = Upkeep{store}.prune({.trials = true}, today(), false); }};
    std::this_thread::sleep_for(std::chrono::milliseconds{300});
    change(path(), "UPDATE run SET ended = 0");
    other.release();
    pruning.join();
    EXPECT_EQ(gone.trials, 0u);
    EXPECT_EQ(count("trial"), 2u);
}

TEST_F(UpkeepOfAFile, PruningStaleRecordsTakesWhatOnlyTheyNeeded) {
    searched(1024);
    Store store = open();
    EXPECT_EQ(Upkeep{store}.prune({.stale = true}, today(), false).records, 0u);
    const Pruned gone = Upkeep{store}.prune({.trials = true, .stale = true}, changed_sources(), false);
    EXPECT_EQ(gone.records, 2u);
    EXPECT_EQ(gone.runs, 1u);
    EXPECT_EQ(gone.configs, 2u);
    EXPECT_EQ(count("record") + count("run") + count("form") + count("setting") + count("config"), 0u);
    searched(1024);  // ids of rows that went are given out anew
    EXPECT_EQ(count("record"), 2u);
    EXPECT_EQ(faults_of(path()), std::vector<std::string>{});
}

/// The two records that an import brought 90 days ago wait behind those of a search of today.
const char* const as_imported =
    "INSERT INTO import_log VALUES (7, '', '', 0, 'import', 2, 2, '{}'); INSERT INTO record_beside SELECT * FROM "
    "record; "
    "UPDATE record_beside SET import = 7; DELETE FROM record; UPDATE run SET import = 7";

TEST_F(UpkeepOfAFile, WhatWaitsBehindARecordOfHereGoesForItsAgeAlone) {
    searched(1, today_s - 90 * day_s);
    change(path(), as_imported);
    searched(1);
    ASSERT_EQ(count("record"), 2u);
    const PruneRules rules{.older_than = 30 * day_s};
    for (const bool dry_run : {true, false}) {
        Store store = open();
        const Pruned gone = Upkeep{store}.prune(rules, today(), dry_run);
        EXPECT_EQ(gone.waiting, 2u) << dry_run;
        EXPECT_EQ(gone.records, 0u) << dry_run;
        EXPECT_EQ(gone.runs, 1u) << dry_run;
        std::size_t waiting = 0;
        store.scan({.waiting = true}, today(), [&](const RecordView&) { ++waiting; });
        EXPECT_EQ(waiting, dry_run ? 2u : 0u);
    }
    EXPECT_EQ(count("record"), 2u);
    EXPECT_EQ(count("import_log"), 1u) << "what was imported is told on";
    EXPECT_TRUE(faults_of(path()).empty());
}

TEST_F(UpkeepOfAFile, WhatWaitsAndIsStaleGoesAndWhatIsFreshStays) {
    searched(1, today_s - 90 * day_s);
    change(path(), as_imported);
    searched(1);
    Store store = open();
    EXPECT_EQ(Upkeep{store}.prune({.stale = true}, today(), false).waiting, 0u);
    const Pruned gone = Upkeep{store}.prune({.stale = true}, changed_sources(), false);
    EXPECT_EQ(gone.waiting, 2u);
    EXPECT_EQ(gone.records, 2u);
    EXPECT_EQ(count("record"), 0u);
}

TEST_F(UpkeepOfAFile, RecordsOfAnOpThatIsNotLoadedAreNotTakenForStale) {
    searched(1024);
    Store store = open();
    EXPECT_EQ(Upkeep{store}.prune({.stale = true}, Today{}, false).records, 0u);
}

TEST_F(UpkeepOfAFile, AgeIsCountedFromTheClockAndTheFutureStays) {
    searched(1024, today_s - 100 * day_s);
    searched(2048, today_s - day_s);
    searched(4096, today_s + 1000 * day_s);  // a clock was ahead then
    Store store = open();
    const Pruned gone = Upkeep{store}.prune({.older_than = 90 * day_s}, today(), false);
    EXPECT_EQ(gone.records, 2u);
    EXPECT_EQ(gone.trials, 2u);
    EXPECT_EQ(count("record"), 4u);
}

TEST_F(UpkeepOfAFile, AnAgeNarrowsWhatTheOtherRulesName) {
    searched(1024, today_s - 100 * day_s);
    searched(2048, today_s - day_s);
    Store store = open();
    const auto would_go = [&](PruneRules rules) {
        rules.older_than = 90 * day_s;
        const Pruned gone = Upkeep{store}.prune(rules, changed_sources(), true);
        return std::pair{gone.records, gone.trials};
    };
    EXPECT_EQ(would_go({.trials = true}), (std::pair<std::size_t, std::size_t>{0, 2}));
    EXPECT_EQ(would_go({.stale = true}), (std::pair<std::size_t, std::size_t>{2, 0}));
    EXPECT_EQ(would_go({.trials = true, .stale = true}), (std::pair<std::size_t, std::size_t>{2, 2}));
    EXPECT_EQ(would_go({}), (std::pair<std::size_t, std::size_t>{2, 2}));
}

TEST_F(UpkeepOfAFile, AClockSetBackMakesNothingOld) {
    searched(1024);
    Store store = open(1000);
    EXPECT_EQ(Upkeep{store}.prune({.older_than = day_s}, today(), false).records, 0u);
}

TEST_F(UpkeepOfAFile, AClockFarAheadRemovesNothingForItsAge) {
    searched(1024);
    Store store = open(today_s + 40 * 365 * day_s);
    try {
        Upkeep{store}.prune({.older_than = day_s}, today(), false);
        FAIL() << "it was taken for old";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage);
        EXPECT_NE(std::string{error.what()}.find("clock is 40 years after"), std::string::npos) << error.what();
    }
    EXPECT_EQ(count("record"), 2u);
}

TEST_F(UpkeepOfAFile, ADryRunTellsTheSameAndChangesNothing) {
    searched(1024);
    Store store = open();
    const std::string before = file_bytes(path()), trials_before = file_bytes(trials_path(path()));
    const std::int64_t generation = store.generation();
    const PruneRules rules{.trials = true, .stale = true};
    const Pruned would = Upkeep{store}.prune(rules, changed_sources(), true);
    EXPECT_EQ(file_bytes(path()), before);
    EXPECT_EQ(file_bytes(trials_path(path())), trials_before);
    EXPECT_EQ(store.generation(), generation);
    const Pruned gone = Upkeep{store}.prune(rules, changed_sources(), false);
    EXPECT_EQ(would.records, gone.records);
    EXPECT_EQ(would.trials, gone.trials);
    EXPECT_EQ(would.configs, gone.configs);
    EXPECT_GT(gone.records, 0u);
}

TEST_F(UpkeepOfAFile, RefusalsOfTemplatesThatAreGoneGo) {
    Store store = open();
    const RunId run = store.begin_run(start());
    store.record_trial(run, config(256, 4), timed(50.0));
    store.record_trial(run, config(512, 4), failed(Ending::wrong_result));
    store.finish_run(run, {.evaluated = 9, .space_size = 64});
    ASSERT_EQ(count("negative"), 1u);
    EXPECT_EQ(Upkeep{store}.prune({.trials = true}, today(), false).negatives, 0u);
    EXPECT_EQ(Upkeep{store}.prune({.trials = true}, changed_sources(), false).negatives, 1u);
    EXPECT_EQ(count("negative"), 0u);
}

// Goal: a record whose key is damaged neither keeps pruning busy for ever nor costs the sound one that it names.
// Method: one bit of the number of a record's problem is flipped where it lies in its page, so that it names another.
TEST_F(UpkeepOfAFile, ADamagedKeyEndsThePruningAndCostsNoSoundRecord) {
    {
        Store store = open();
        std::vector<Record> many;
        for (std::int64_t n = 0; n < 100; ++n) many.push_back(record(n, 10.0));
        store.put(many);
    }
    std::string bytes = file_bytes(path());
    const std::string row_5{"\x05\x0d\x27\x10\x27\x10"};  // the problem, the compiler's major version, 10,000 ns
    const std::size_t at = bytes.find(row_5);
    ASSERT_NE(at, std::string::npos);
    ASSERT_EQ(bytes.find(row_5, at + 1), std::string::npos);
    bytes[at] = 69;
    put_bytes(path(), bytes);
    ASSERT_FALSE(faults_of(path()).empty());
    const auto sound = [&] { return read().records({}, today()).size(); };
    ASSERT_EQ(sound(), 99u);
    Store store = open();
    const Pruned gone = Upkeep{store}.prune({.trials = true}, today(), false);
    EXPECT_EQ(gone.records, 0u);
    EXPECT_EQ(gone.not_removed, 1u);
    EXPECT_EQ(sound(), 99u);
    const Salvaged saved = salvage(path(), folder_ / "new.db");
    EXPECT_EQ(saved.records, 99u);
    EXPECT_EQ(faults_of(folder_ / "new.db"), std::vector<std::string>{});
}

TEST_F(UpkeepOfAFile, PruningRemovesADamagedRecord) {
    searched(1024);
    change(path(), "UPDATE record SET time_ns = time_ns + 1 WHERE rank = 1");
    Store store = open();
    const Pruned gone = Upkeep{store}.prune({.trials = true}, today(), false);
    EXPECT_EQ(gone.records, 1u);
    EXPECT_EQ(gone.not_removed, 0u);
    EXPECT_EQ(faults_of(path()), std::vector<std::string>{});
}

// -- compact

TEST_F(UpkeepOfAFile, CompactingGivesBackWhatPruningFreed) {
    {
        Store store = open();
        std::vector<Record> many;
        for (std::int64_t n = 0; n < 6000; ++n) {
            many.push_back(record(n, 50.0));
            many.back().run.ended = today_s;
        }
        store.put(many);
        Upkeep{store}.prune({.stale = true}, changed_sources(), false);
        const Compacted done = Upkeep{store}.compact();
        EXPECT_LT(done.bytes_after, done.bytes_before / 4);
    }
    EXPECT_EQ(faults_of(path()), std::vector<std::string>{});
    searched(1024);
    EXPECT_EQ(count("record"), 2u);
}

TEST_F(UpkeepOfAFile, CompactingTakesSpoolFilesIn) {
    const std::vector<Record> waiting{record(1, 50.0), record(2, 60.0)};
    write_spool(folder_ / "spool", waiting);
    Store store = open();
    EXPECT_EQ(Upkeep{store}.compact().folded, 2u);
    EXPECT_TRUE(spool_files(folder_ / "spool").empty());
    EXPECT_EQ(count("record"), 2u);
}

TEST_F(UpkeepOfAFile, WhereHostsShareTheFolderANewFileTakesThePlaceOfTheOld) {
    searched(1024);
    Store reader = read();
    {
        Store sharing = open(today_s, true);
        search(sharing, start(2048), {{config(256, 4), 50.0}});
        EXPECT_EQ(spool_files(folder_ / "spool").size(), 1u);
        EXPECT_EQ(Upkeep{sharing}.compact().folded, 1u);
    }
    EXPECT_TRUE(spool_files(folder_ / "spool").empty());
    EXPECT_EQ(reader.generation(), -1) << "a reader learns that another file stands there";
    EXPECT_EQ(count("record"), 3u);
    EXPECT_EQ(faults_of(path()), std::vector<std::string>{});
    EXPECT_FALSE(fs::exists(path().string() + "-fold"));
}

TEST_F(UpkeepOfAFile, WhereHostsShareTheFolderTheFirstFileIsMadeByACompact) {
    {
        Store sharing = open(today_s, true);
        search(sharing, start(2048), {{config(256, 4), 50.0}});
        Upkeep{sharing}.compact();
    }
    EXPECT_EQ(count("record"), 1u);
}

TEST_F(UpkeepOfAFile, OneProcessFoldsAtATime) {
    searched(1024);
    Store sharing = open(today_s, true);
    search(sharing, start(2048), {{config(256, 4), 50.0}});
    {
        const FoldLock held{path()};
        try {
            Upkeep{sharing}.compact();
            FAIL() << "two fold at once";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), Error::Kind::store);
            EXPECT_NE(error.help().find("tune.db-fold"), std::string::npos) << error.help();
        }
    }
    EXPECT_EQ(Upkeep{sharing}.compact().folded, 1u);
}

TEST_F(UpkeepOfAFile, ALockOfAProcessThatDiedHereIsPassedOver) {
    searched(1024);
    put_bytes(path().string() + "-fold", host_hash().substr(0, 16) + " 999999999\n");
    { const FoldLock mine{path()}; }
    put_bytes(path().string() + "-fold", "0123456789abcdef 999999999\n");  // another host's may be alive
    EXPECT_THROW(FoldLock{path()}, Error);
}

// -- salvage

TEST_F(UpkeepOfAFile, SalvagingASoundFileCopiesAllOfIt) {
    searched(1024);
    searched(2048);
    const fs::path to = folder_ / "new.db";
    const std::string before = file_bytes(path());
    const Salvaged s = salvage(path(), to);
    EXPECT_EQ(s.records, 4u);
    EXPECT_EQ(s.runs, 2u);
    EXPECT_EQ(s.trials, 4u);
    EXPECT_EQ(s.unreadable, 0u);
    EXPECT_FALSE(s.cut_off);
    EXPECT_EQ(file_bytes(path()), before);
    EXPECT_EQ(faults_of(to), std::vector<std::string>{});
    const Store store = Store::open({.path = to, .mode = Store::Mode::read});
    EXPECT_EQ(store.records({.winners_only = true}, today()).size(), 2u);
    EXPECT_EQ(store.known_outcomes(start(2048)).size(), 2u) << "a resumed search knows what was tried";
}

// Goal: a power cut at any moment leaves what has a name whole, and what was said to be done has its name.
TEST_F(UpkeepOfAFile, ASalvagedFileIsOnTheDiskBeforeItHasItsNameAndTheNameBeforeItIsSaid) {
    searched(1024);
    moves_and_syncs.clear();
    salvage(path(), folder_ / "new.db");
    ASSERT_GE(moves_and_syncs.size(), 6u);
    EXPECT_EQ((std::vector<std::string>{moves_and_syncs.end() - 6, moves_and_syncs.end()}),
              (std::vector<std::string>{"sync new.trials.db", "sync new.db", "move new.trials.db", "sync the folder",
                                        "move new.db", "sync the folder"}));
}

/// A salvage of the one to the other in a process of its own, which is killed when the trials are in their place.
void salvage_half(const fs::path& from, const fs::path& to) {
    const pid_t child = ::fork();
    if (child == 0) {
        dies_at_move = 2;
        salvage(from, to);
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_TRUE(fs::exists(trials_path(to)));
    ASSERT_FALSE(fs::exists(to));
}

TEST_F(UpkeepOfAFile, ASalvageThatDiesBetweenItsTwoFilesLosesNoneAndTheNextSaysWhichIsWhere) {
    searched(1024);
    const fs::path to = folder_ / "new.db";
    salvage_half(path(), to);
    try {
        salvage(path(), to);
        ADD_FAILURE() << "the trials of another went";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage);
        EXPECT_NE(std::string{error.what()}.find("new.trials.db' is there already: a salvage ended when its trials "
                                                 "were there and its records still in '"),
                  std::string::npos)
            << error.what();
        const std::string finish = error.help().substr(0, error.help().find(" finishes it"));
        ASSERT_EQ(finish.find("mv "), 0u) << error.help();
        ASSERT_EQ(std::system(finish.c_str()), 0) << finish;
    }
    EXPECT_EQ(faults_of(to), std::vector<std::string>{});
    const Store store = Store::open({.path = to, .mode = Store::Mode::read});
    EXPECT_EQ(store.records({}, today()).size(), 2u);
    EXPECT_EQ(store.known_outcomes(start(1024)).size(), 2u);
}

TEST_F(UpkeepOfAFile, WhatAnotherUserPutBesideTrialsIsNotNamedAsTheirDatabase) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may give a file to another user";
    searched(1024);
    const fs::path to = folder_ / "new.db";
    salvage_half(path(), to);
    for (const fs::directory_entry& entry : fs::directory_iterator{folder_.path()})
        if (entry.is_directory()) ASSERT_EQ(::chown(entry.path().c_str(), 65534, 65534), 0);
    try {
        salvage(path(), to);
        ADD_FAILURE() << "the trials of another went";
    } catch (const Error& error) {
        EXPECT_TRUE(std::string_view{error.what()}.ends_with("new.trials.db' is there already")) << error.what();
        EXPECT_EQ(error.help(), "name a new file");
    }
}

TEST_F(UpkeepOfAFile, WhatAKilledSalvageLeftIsSweptOnceItIsOld) {
    searched(1024);
    for (const char* name : {"new.db.new-7-0123abcd", "new.db.new-8-0123abcd", "mine.new-draft"}) {
        fs::create_directory(folder_ / name);
        put_bytes(folder_ / name / "new.db", "half a file");
        if (std::string_view{name} != "new.db.new-8-0123abcd")
            fs::last_write_time(folder_ / name, fs::file_time_type::clock::now() - std::chrono::hours{48});
    }
    salvage(path(), folder_ / "new.db");
    EXPECT_FALSE(fs::exists(folder_ / "new.db.new-7-0123abcd"));
    EXPECT_TRUE(fs::exists(folder_ / "new.db.new-8-0123abcd")) << "it may be at work";
    EXPECT_TRUE(fs::exists(folder_ / "mine.new-draft"));
}

TEST_F(UpkeepOfAFile, AFoldedFileHasItsNameOnTheDiskBeforeASpoolFileGoes) {
    {
        Store store = open(today_s, true);
        search(store, start(2048), {{config(256), 50.0}});
    }
    Store store = open(today_s, true);
    moves_and_syncs.clear();
    EXPECT_EQ(Upkeep{store}.compact().folded, 1u);
    ASSERT_FALSE(moves_and_syncs.empty());
    EXPECT_EQ(moves_and_syncs.back(), "sync the folder");
}

TEST_F(UpkeepOfAFile, RowsWhoseChecksumFailsAreLeftOutAndCounted) {
    searched(1024);
    change(path(), "UPDATE record SET time_ns = time_ns + 1 WHERE rank = 1");
    const Salvaged s = salvage(path(), folder_ / "new.db");
    EXPECT_EQ(s.records, 1u);
    EXPECT_EQ(s.unreadable, 1u);
}

TEST_F(UpkeepOfAFile, WhateverPageIsBrokenTheRestIsSavedAndSound) {
    {
        Store store = open();
        std::vector<Record> many;
        for (std::int64_t n = 0; n < 600; ++n) {
            many.push_back(record(n, 50.0));
            many.back().run.uuid = "one run";
        }
        store.put(many);
    }
    const std::string whole = file_bytes(path());
    const std::size_t page = 4096;
    std::size_t best = 0;
    for (std::size_t at = page, step = 0; at < whole.size(); at += 2 * page, ++step) {
        std::string broken = whole;
        std::fill_n(broken.begin() + static_cast<std::ptrdiff_t>(at), page, static_cast<char>(step % 2 ? 0 : 0xa5));
        const fs::path from = folder_ / "broken.db", to = folder_ / "saved.db";
        put_bytes(from, broken);
        try {
            const Salvaged s = salvage(from, to);
            best = std::max(best, s.records);
            EXPECT_LE(s.records, 600u);
            EXPECT_EQ(faults_of(to), std::vector<std::string>{}) << at / page;
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), Error::Kind::store) << error.what();
        }
        fs::remove(to);
        fs::remove(trials_path(to));
    }
    EXPECT_GT(best, 400u);
}

TEST_F(UpkeepOfAFile, ACutOffFileGivesWhatStandsBeforeTheCut) {
    {
        Store store = open();
        std::vector<Record> many;
        // As many as the pages above the first rows need to lie before the cut.
        for (std::int64_t n = 0; n < 12'000; ++n) {
            many.push_back(record(n, 50.0));
            many.back().run.uuid = "one run";
        }
        store.put(many);
    }
    const std::string whole = file_bytes(path());
    put_bytes(path(), whole.substr(0, whole.size() * 3 / 4));
    const Salvaged s = salvage(path(), folder_ / "new.db");
    EXPECT_TRUE(s.cut_off);
    EXPECT_GT(s.records, 0u) << s.runs << " runs, " << s.unreadable << " rows that fail";
    EXPECT_EQ(faults_of(folder_ / "new.db"), std::vector<std::string>{});
}

TEST_F(UpkeepOfAFile, NothingIsSalvagedFromAForeignFileOrOverAnother) {
    searched(1024);
    put_bytes(folder_ / "list", "a shopping list");
    EXPECT_THROW(salvage(folder_ / "list", folder_ / "new.db"), Error);
    EXPECT_FALSE(fs::exists(folder_ / "new.db"));
    EXPECT_THROW(salvage(path(), folder_ / "list"), Error);
    EXPECT_EQ(file_bytes(folder_ / "list"), "a shopping list");
}

TEST_F(UpkeepOfAFile, TheSchemaThatIsToldIsTheFilesAndNotThatOfTheCopyThatIsRead) {
    for (const int schema : {1, 2, schema_version}) {
        const fs::path old = folder_ / ("old_" + std::to_string(schema) + ".db");
        fs::copy_file(fs::path{AUTOTUNE_SOURCE_DIR} / "tests/cache/golden" / ("tune_" + std::to_string(schema) + ".db"),
                      old);
        Store store = Store::open({.path = old, .mode = Store::Mode::read});
        EXPECT_EQ(Upkeep{store}.statistics(today()).schema, schema);
        EXPECT_EQ(Upkeep{store}.statistics(today()).rows.at("record"), 2);
    }
}

// Goal: of a broken file of an earlier schema as much is saved as of one of today's.
TEST_F(UpkeepOfAFile, AnOlderFileIsSavedAsFarAsItCanBeRead) {
    for (const int schema : {1, 2}) {
        const fs::path golden =
            fs::path{AUTOTUNE_SOURCE_DIR} / "tests/cache/golden" / ("tune_" + std::to_string(schema) + ".db");
        const std::string whole = file_bytes(golden);
        std::size_t best = 0, cut_off = 0;
        for (std::size_t at = 4096; at < whole.size(); at += 4096) {
            std::string broken = whole;
            std::fill_n(broken.begin() + static_cast<std::ptrdiff_t>(at), 4096, '\xa5');
            const fs::path from = folder_ / "broken.db", to = folder_ / "saved.db";
            put_bytes(from, broken);
            try {
                const Salvaged s = salvage(from, to);
                best = std::max(best, s.records);
                cut_off += s.cut_off ? 1 : 0;
                EXPECT_EQ(faults_of(to), std::vector<std::string>{}) << at / 4096;
            } catch (const Error& error) {
                EXPECT_EQ(error.kind(), Error::Kind::store) << error.what();
            }
            fs::remove(to);
            fs::remove(trials_path(to));
        }
        EXPECT_EQ(best, 2u) << schema;
        EXPECT_GT(cut_off, 0u) << schema;
    }
}

TEST_F(UpkeepOfAFile, AFileWithAViewIsNotSalvaged) {
    searched(1024);
    change(path(), "CREATE VIEW v AS SELECT 1");
    EXPECT_THROW(salvage(path(), folder_ / "new.db"), Error);
}

}  // namespace
}  // namespace autotune
