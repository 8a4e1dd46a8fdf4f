// Goal: whatever state the file is in, a search goes on, nothing that was committed is lost, and a file that is not
// ours or was named by somebody is left as it is. Method: real files in a folder of their own, damaged byte by byte.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include "autotune/error.h"
#include "cache/store/database_file.h"
#include "cache/store/foreign_database.h"
#include "cache/store/location.h"
#include "cache/store/miss_list.h"
#include "cache/store/schema.h"
#include "cache/store/spool.h"
#include "cache/store/store.h"
#include "cache/store/upkeep.h"
#include "cache/store/writer_lock.h"
#include "tests/cache/samples.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;
using namespace samples;

std::string bytes_of(const fs::path& path) {
    std::ifstream in{path, std::ios::binary};
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

void write_bytes(const fs::path& path, const std::string& bytes) { std::ofstream{path, std::ios::binary} << bytes; }

void execute(const fs::path& path, const char* sql) {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(connection, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(connection);
    sqlite3_close(connection);
}

std::string text_of(const fs::path& path, const char* sql) {
    sqlite3* connection = nullptr;
    std::string text;
    sqlite3_open(path.c_str(), &connection);
    sqlite3_exec(
        connection, sql,
        [](void* out, int, char** values, char**) {
            *static_cast<std::string*>(out) += std::string{values[0] ? values[0] : "NULL"} + "\n";
            return 0;
        },
        &text, nullptr);
    sqlite3_close(connection);
    return text;
}

/// The default place, moved into a folder of the test's own.
class OwnPlace : public testing::Test {
protected:
    void SetUp() override {
        ::unsetenv("AUTOTUNE_DB");
        ::setenv("AUTOTUNE_CACHE_DIR", folder_.path().c_str(), 1);
        path_ = Store::default_path();
    }
    void TearDown() override { ::unsetenv("AUTOTUNE_CACHE_DIR"); }
    Store open(Store::Mode mode = Store::Mode::write) {
        return Store::open(
            {.mode = mode, .warn = [this](const std::string& sentence) { warnings_.push_back(sentence); }});
    }
    std::size_t files_like(const std::string& part) const {
        std::size_t count = 0;
        for (const auto& entry : fs::recursive_directory_iterator{folder_.path()})
            count += entry.path().filename().string().find(part) != std::string::npos ? 1 : 0;
        return count;
    }

    Folder folder_;
    fs::path path_;
    std::vector<std::string> warnings_;
};

TEST_F(OwnPlace, IsMadePrivateAndNamedByTheSchema) {
    Store store = open();
    EXPECT_EQ(store.path(), folder_ / "1/tune.db");
    struct stat status {};
    ASSERT_EQ(::stat((folder_ / "1").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    EXPECT_TRUE(warnings_.empty());
    EXPECT_EQ(store.state().find("memory"), std::string::npos) << store.state();
}

TEST_F(OwnPlace, OpeningACurrentFileWritesNothing) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    const std::string before = bytes_of(path_), trials_before = bytes_of(trials_path(path_));
    const auto changed = fs::last_write_time(path_);
    const std::size_t files = files_like("");
    {
        Store store = open();
        EXPECT_EQ(store.records({}, today()).size(), 1u);
    }
    {
        Store store = open(Store::Mode::read);
        EXPECT_EQ(store.records({}, today()).size(), 1u);
    }
    EXPECT_EQ(bytes_of(path_), before);
    EXPECT_EQ(bytes_of(trials_path(path_)), trials_before);
    EXPECT_EQ(fs::last_write_time(path_), changed);
    EXPECT_EQ(files_like(""), files);
}

TEST_F(OwnPlace, AReaderOfNothingMakesNothing) {
    Store store = open(Store::Mode::read);
    EXPECT_TRUE(store.records({}, today()).empty());
    EXPECT_FALSE(fs::exists(folder_ / "1"));
    EXPECT_TRUE(warnings_.empty());
}

TEST_F(OwnPlace, ADamagedFileIsSetAsideOnceAndTheSearchGoesOn) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    write_bytes(path_,
                "this is no database, but it is longer than a header of SQLite, which has a hundred bytes, so that it "
                "is read whole");
    Store store = open();
    EXPECT_EQ(warnings_.size(), 1u);
    EXPECT_EQ(files_like("tune.db.broken"), 1u);
    search(store, start(), {{config(512), 40.0}});
    EXPECT_EQ(open().records({}, today()).size(), 1u);
    EXPECT_EQ(warnings_.size(), 1u) << warnings_.back();
}

// Goal: a process that has no descriptor left takes a sound database for no damaged one.
// Method: the limit of descriptors is lowered to those that are open.
TEST_F(OwnPlace, AFileThatCannotBeOpenedIsNotSetAside) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = ::dup(0);
    ::close(next);
    const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    std::string state;
    try {
        state = open().state();
    } catch (const std::exception& e) {
        state = e.what();
    }
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(files_like("broken"), 0u);
    ASSERT_EQ(warnings_.size(), 1u) << state;
    EXPECT_NE(warnings_[0].find("tune.db' cannot be read: Too many open files"), std::string::npos) << warnings_[0];
    EXPECT_EQ(open(Store::Mode::read).records({}, today()).size(), 1u);
}

TEST_F(OwnPlace, ATruncatedFileIsSetAside) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    fs::resize_file(path_, fs::file_size(path_) / 2);
    EXPECT_TRUE(open().records({}, today()).empty());
    EXPECT_EQ(files_like("tune.db.broken"), 1u);
}

TEST_F(OwnPlace, DamageThatShowsDuringASearchDoesNotStopIt) {
    Store store = open();
    const RunId run = store.begin_run(start());
    std::string bytes = bytes_of(path_);
    std::fill(bytes.begin() + 4096, bytes.end(), '\x55');
    write_bytes(path_, bytes);
    const RunSummary summary =
        store.finish_run(run, {.finalists = {finalist(config(256), 50.0)}, .evaluated = 9, .space_size = 64});
    EXPECT_EQ(summary.records, 1u);
    EXPECT_EQ(files_like("tune.db.broken"), 1u);
    EXPECT_EQ(open().records({}, today()).size(), 1u);
}

TEST_F(OwnPlace, DamageThatTwoWritersMeetIsSetAsideOnce) {
    Store first = open(), second = open();
    const RunId one = first.begin_run(start()), two = second.begin_run(start(2048));
    std::string bytes = bytes_of(path_);
    std::fill(bytes.begin() + 4096, bytes.end(), '\x55');
    write_bytes(path_, bytes);
    const auto finish = [](Store& store, RunId run, const Config& best) {
        store.record_trial(run, config(1024), failed(Ending::race));
        return store.finish_run(run, {.finalists = {finalist(best, 50.0)}, .evaluated = 9, .space_size = 64});
    };
    EXPECT_EQ(finish(first, one, config(256)).records, 1u);
    const RunSummary summary = finish(second, two, config(128));
    EXPECT_EQ(summary.records, 1u);
    EXPECT_EQ(summary.negatives, 1u);
    EXPECT_EQ(files_like("tune.db.broken"), 1u) << "what the first had stored anew was set aside by the second";
    Store store = open();
    EXPECT_EQ(store.records({}, today()).size(), 2u);
    for (const StoredRun& run : store.runs()) EXPECT_TRUE(run.finished) << run.problem.text();
    EXPECT_TRUE(store.check().empty());
}

TEST_F(OwnPlace, AFlippedByteIsAMissAndTheNextWriteRemovesIt) {
    {
        search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
        search(*std::make_unique<Store>(open()), start(2048), {{config(64), 5.0}});
    }
    execute(path_, "UPDATE config SET body_json = replace(body_json, '256', '928')");
    Store store = open();
    EXPECT_EQ(text_of(path_, "PRAGMA integrity_check"), "ok\n") << "SQLite does not see it";
    const auto records = store.records({}, today());
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records.front().config, config(64));
    EXPECT_EQ(store.check().size(), 2u) << "the config's row, and the record of it";
    search(store, start(4096), {{config(128), 5.0}});
    EXPECT_EQ(text_of(path_, "SELECT count(*) FROM record"), "2\n");
}

TEST_F(OwnPlace, EveryColumnOfARecordIsCovered) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    const std::string sound = bytes_of(path_);
    for (const char* column : {"time_ns", "lo_ns", "hi_ns", "samples", "default_ns", "evaluated", "space_size",
                               "setting", "verified", "max_err", "tuned_at", "nvrtc_minor", "rank"}) {
        execute(path_, ("UPDATE record SET " + std::string{column} + " = " + column + " + 1").c_str());
        EXPECT_TRUE(open(Store::Mode::read).records({}, today()).empty()) << column;
        write_bytes(path_, sound);
    }
    EXPECT_EQ(open(Store::Mode::read).records({}, today()).size(), 1u);
}

TEST_F(OwnPlace, NumbersOfAProblemThatAreDamagedCostItsRecordAndNothingElse) {
    {
        Store store = open();
        search(store, start(1024), {{config(256), 50.0}});
        search(store, start(2048), {{config(128), 60.0}});
    }
    const std::string sound = bytes_of(path_);
    for (const char* numbers : {"x''", "x'ff'", "x'f300'", "x'f31000'", "x'fa000400'"}) {
        execute(path_, ("UPDATE record SET numbers = " + std::string{numbers} + " WHERE time_ns = 50000").c_str());
        Store store = open();
        const std::vector<Record> left = store.records({}, today());
        ASSERT_EQ(left.size(), 1u) << numbers;
        EXPECT_EQ(left[0].problem.fields, problem(2048).fields) << numbers;
        EXPECT_EQ(store.check().size(), 1u) << numbers;
        search(store, start(4096), {{config(64), 5.0}});
        EXPECT_EQ(text_of(path_, "SELECT count(*) FROM record"), "2\n") << "the damaged one was not removed";
        write_bytes(path_, sound);
    }
}

// Goal: what the keys of many problems have in common may be damaged like all else: its records are misses, the damage
// is found, and the next search of such a problem mends it.
TEST_F(OwnPlace, ADamagedFormIsFoundAndTheNextSearchMendsIt) {
    const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
    for (const std::string& names : {std::string{"[\"n\""}, std::string{"[]"}, std::string{"{}"}, deep}) {
        fs::remove_all(folder_ / "1");
        {
            Store store = open();
            search(store, start(1024), {{config(256), 50.0}});
            search(store, start(2048), {{config(64), 5.0}});
            RunStart emulated = start(1024);
            emulated.device.emulated = true;
            search(store, emulated, {{config(256), 50.0}});
        }
        execute(path_, ("UPDATE form SET names_json = '" + names + "'").c_str());
        {
            const Store store = open(Store::Mode::read);
            EXPECT_TRUE(store.records({}, today()).empty());
            EXPECT_TRUE(store.records({.predicted = true}, today()).empty());
            const auto faults = store.check();
            EXPECT_NE(std::ranges::find(faults, "row 1 of 'form' fails its checksum"), faults.end());
        }
        Store store = open();
        EXPECT_EQ(search(store, start(), {{config(128), 40.0}}).records, 1u);
        EXPECT_EQ(store.records({}, today()).size(), 2u);
        EXPECT_EQ(store.records({.predicted = true}, today()).size(), 1u);
        EXPECT_TRUE(store.check().empty());
    }
}

TEST_F(OwnPlace, ADamagedRunIsFoundAndCostsItsRecordsProvenance) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    execute(path_, "UPDATE run SET seed = seed + 1");
    Store store = open();
    EXPECT_TRUE(store.records({}, today()).empty());
    EXPECT_EQ(store.check().size(), 2u) << "the run's row, and the record of it";
}

TEST_F(OwnPlace, DamagedRowsThatRecordsShareAreMendedByTheNextSearch) {
    for (const char* damage :
         {"UPDATE config SET body_json = replace(body_json, '256', '928')",
          "UPDATE device SET attrs_json = '{\"uuid\":'", "UPDATE env SET os = 'Minix'", "UPDATE device SET sm = 1",
          "UPDATE setting SET budget = '1s'", "UPDATE template SET source_hash = 'ab' WHERE source_hash = 'aa'"}) {
        fs::remove_all(folder_ / "1");
        { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
        execute(path_, damage);
        Store store = open();
        EXPECT_TRUE(store.records({}, today()).empty()) << damage;
        EXPECT_FALSE(store.check().empty()) << damage;
        search(store, start(), {{config(256), 40.0}});
        ASSERT_EQ(store.records({}, today()).size(), 1u) << damage;
        EXPECT_TRUE(store.check().empty()) << damage;
    }
}

TEST_F(OwnPlace, AFolderThatCannotBeWrittenMeansMemoryAndOneWarning) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
    fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
    Store store = open();
    EXPECT_EQ(search(store, start(), {{config(256), 50.0}}).records, 1u);
    EXPECT_EQ(store.records({}, today()).size(), 1u);
    EXPECT_EQ(warnings_.size(), 1u);
    EXPECT_TRUE(store.path().empty());
}

TEST_F(OwnPlace, AFileInPlaceOfTheFolderMeansMemoryAndOneWarning) {
    write_bytes(folder_ / "1", "");
    Store store = open();
    EXPECT_EQ(search(store, start(), {{config(256), 50.0}}).records, 1u);
    EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(OwnPlace, WithoutAHomeTheStoreIsInMemory) {
    const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
    ::unsetenv("AUTOTUNE_CACHE_DIR");
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("HOME");
    EXPECT_TRUE(Store::default_path().empty());
    EXPECT_EQ(search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}).records, 1u);
    EXPECT_EQ(warnings_.size(), 1u);
    ::setenv("HOME", home.c_str(), 1);
}

TEST_F(OwnPlace, AFolderThatOthersMayWriteToIsRefused) {
    fs::create_directory(folder_ / "1");
    fs::permissions(folder_ / "1", fs::perms::all);
    Store store = open();
    EXPECT_TRUE(store.path().empty());
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_.front().find("may be written to by others"), std::string::npos) << warnings_.front();
}

TEST_F(OwnPlace, AFolderThatAGroupMayWriteToIsRefusedUnlessNobodyElseIsInTheGroup) {
    fs::create_directory(folder_ / "1");
    std::array<gid_t, 64> groups{};
    const int count = ::geteuid() == 0 ? 0 : ::getgroups(groups.size(), groups.data());
    gid_t other = ::geteuid() == 0 ? 1 : ::getegid();
    for (int i = 0; i < count; ++i)
        if (groups[static_cast<std::size_t>(i)] != ::getegid()) other = groups[static_cast<std::size_t>(i)];
    if (other == ::getegid()) GTEST_SKIP() << "this user is in one group only";
    ASSERT_EQ(::chown((folder_ / "1").c_str(), static_cast<uid_t>(-1), other), 0);
    ASSERT_EQ(::chmod((folder_ / "1").c_str(), 0775), 0);
    EXPECT_TRUE(open().path().empty());
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_.front().find("may be written to by its group"), std::string::npos) << warnings_.front();

    const passwd* user = ::getpwuid(::geteuid());
    const group* own = user ? ::getgrgid(user->pw_gid) : nullptr;
    if (!own || std::string_view{own->gr_name} != user->pw_name || *own->gr_mem) return;
    ASSERT_EQ(::chown((folder_ / "1").c_str(), static_cast<uid_t>(-1), user->pw_gid), 0);
    EXPECT_EQ(open().path(), path_) << "the group is the user's own";
}

TEST_F(OwnPlace, AFolderThatOthersMayWriteToIsUsedWhereThatIsAskedFor) {
    fs::create_directory(folder_ / "1");
    fs::permissions(folder_ / "1", fs::perms::all);
    ::setenv("AUTOTUNE_ALLOW_SHARED", "1", 1);
    const fs::path used = open().path();
    ::unsetenv("AUTOTUNE_ALLOW_SHARED");
    EXPECT_EQ(used, path_);
    EXPECT_TRUE(warnings_.empty());
}

TEST_F(OwnPlace, TrialsThatOthersMayWriteToAreNotUsed) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    ASSERT_EQ(::chmod(trials_path(path_).c_str(), 0666), 0);
    Store store = open();
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_.front().find("may be written to by others, so trials"), std::string::npos) << warnings_.front();
    EXPECT_TRUE(store.known_outcomes(start()).empty());
    EXPECT_EQ(store.records({}, today()).size(), 1u);
}

TEST_F(OwnPlace, WhatAKilledProcessLeftBesideTheDatabaseIsSweptOnceItIsOld) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    const std::vector<std::string> ours{"tune.db.new-7-0123abcd", "tune.db.new-7-0123abcd-journal"};
    const std::vector<std::string> others{"mine.new-7-1", "tune.db.new-draft", "tune.db.new-7-0123abcd.txt"};
    for (const auto* names : {&ours, &others})
        for (const std::string& name : *names) {
            write_bytes(path_.parent_path() / name, "half a file");
            fs::last_write_time(path_.parent_path() / name, fs::file_time_type::clock::now() - std::chrono::hours{48});
        }
    search(*std::make_unique<Store>(open()), start(2048), {{config(256), 50.0}});
    for (const std::string& name : ours) EXPECT_FALSE(fs::exists(path_.parent_path() / name)) << name;
    for (const std::string& name : others) EXPECT_TRUE(fs::exists(path_.parent_path() / name)) << name;
}

TEST_F(OwnPlace, TheCopyOfAMigrationThatWasKilledOnceItWasDoneGoesWithTheNextSearch) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    const std::vector<std::string> copies{"tune.db.schema-1", "tune.db.schema-2", "tune.db.schema-2.new",
                                          "tune.db.schema-2.new-journal", "trials.db.schema-2"};
    const std::vector<std::string> others{"tune.db.schema-9", "tune.db.schema-2.txt"};
    for (const auto* names : {&copies, &others})
        for (const std::string& name : *names) write_bytes(path_.parent_path() / name, "a copy");
    search(*std::make_unique<Store>(open()), start(2048), {{config(256), 50.0}});
    for (const std::string& name : copies) EXPECT_FALSE(fs::exists(path_.parent_path() / name)) << name;
    for (const std::string& name : others) EXPECT_TRUE(fs::exists(path_.parent_path() / name)) << name;
}

// Goal: in a folder where anybody may make files, those of others are not read as ours.
TEST_F(OwnPlace, SpoolFilesThatOthersMayHaveWrittenWait) {
    {
        Store store = Store::open({.warn = {}, .spool_only = true});
        search(store, start(), {{config(256), 50.0}});
    }
    const fs::path spool = folder_ / "1/spool";
    const fs::path file = fs::directory_iterator { spool } -> path();
    { search(*std::make_unique<Store>(Store::open({.path = folder_ / "1/own.db"})), start(2048), {{config(64), 5.0}}); }
    ASSERT_FALSE(fs::exists(file)) << "its own are taken along";

    for (const bool folder_too : {false, true}) {
        const Record one = record(1024, 20.0);
        const fs::path theirs = write_spool(spool, {&one, 1});
        ASSERT_EQ(::chmod(folder_too ? spool.c_str() : theirs.c_str(), 0777), 0);
        warnings_.clear();
        Store store = open();
        EXPECT_EQ(store.fold_spools(), 0u);
        EXPECT_TRUE(store.records({}, today()).empty());
        EXPECT_TRUE(open(Store::Mode::read).records({}, today()).empty());
        ASSERT_EQ(warnings_.size(), 2u) << "of the writer and of the reader";
        EXPECT_NE(warnings_.front().find("may be written to by others"), std::string::npos) << warnings_.front();
        EXPECT_TRUE(fs::exists(theirs));
        fs::remove(theirs);
    }
}

TEST_F(OwnPlace, ALineOfASpoolFileThatIsTooLongIsNoRecord) {
    const Record one = record(1024, 20.0);
    fs::create_directory(folder_ / "1");
    const fs::path file = write_spool(folder_ / "1/spool", {&one, 1});
    std::string line = bytes_of(file);
    line.insert(line.size() - 2, std::string(longest_spool_line, ' '));
    write_bytes(file, line + bytes_of(file));
    const auto contents = read_spool(file, Writers::trusted);
    ASSERT_TRUE(contents.has_value());
    EXPECT_EQ(contents->records.size(), 1u);
    EXPECT_EQ(contents->refused, 1u);
    fs::resize_file(file, most_spool_bytes + 1);  // of zeros that take no place
    EXPECT_FALSE(read_spool(file, Writers::trusted).has_value());
}

// Goal: a lock is written to, so it is no link that somebody put in its place.
TEST_F(OwnPlace, ALockFileThatIsALinkIsNotWrittenThrough) {
    fs::create_directory(folder_ / "1");
    const fs::path precious = folder_ / "precious", lock = path_.string() + "-lock";
    write_bytes(precious, "something else of the user's");
    for (const bool symbolic : {true, false}) {
        fs::remove(lock);
        if (symbolic)
            fs::create_symlink(precious, lock);
        else
            fs::create_hard_link(precious, lock);
        WriterLock writer{path_};
        EXPECT_TRUE(writer.acquire(std::chrono::milliseconds{0})) << "SQLite's own lock still guards the file";
        EXPECT_EQ(bytes_of(precious), "something else of the user's");
        EXPECT_EQ(writer.holder(), "");
    }
}

// Goal: nothing is lost where records go to spool files. Method: what other processes read, after each kind of write.
TEST_F(OwnPlace, WhatCannotBeSpooledIsRefusedAndTheRestIsSpooled) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    Store store = Store::open({.warn = {}, .spool_only = true});
    const std::vector<Record> records{record(2048, 20.0), record(4096, 20.0)};
    store.put(records);
    EXPECT_EQ(open(Store::Mode::read).records({}, today()).size(), 3u);

    const Negative negative{.device_fp = device().fp,
                            .source = templates().front(),
                            .problem_key = problem().key,
                            .config = config(256),
                            .ending = Ending::wrong_result,
                            .environment = environment()};
    EXPECT_THROW(store.put_negative(negative, environment()), Error);
    EXPECT_THROW(store.put_alias(device("h200"), device("other")), Error);
    EXPECT_THROW(store.remove_alias("h200", "other"), Error);
    EXPECT_TRUE(store.aliases().empty());
    open().put_negative(negative, environment());
    Store spooling = Store::open({.warn = {}, .spool_only = true});
    EXPECT_THROW(spooling.strike_negative(negative), Error);
}

TEST_F(OwnPlace, OnSharedFileSystemsRecordsGoToSpoolFilesThatReadersMerge) {
    const auto shared = [this](Store::Mode mode) {
        return Store::open(
            {.mode = mode, .warn = [this](const std::string& s) { warnings_.push_back(s); }, .spool_only = true});
    };
    {
        Store store = shared(Store::Mode::write);
        search(store, start(), {{config(256), 50.0}});
        EXPECT_EQ(store.records({}, today()).size(), 1u);
    }
    EXPECT_FALSE(fs::exists(path_)) << "SQLite wrote to a shared file system";
    EXPECT_EQ(files_like(".jsonl"), 1u);
    EXPECT_EQ(shared(Store::Mode::write).records({}, today()).size(), 1u);
    {
        Store local = open();
        EXPECT_EQ(local.fold_spools(), 1u);
        EXPECT_EQ(local.records({}, today()).size(), 1u);
    }
    EXPECT_EQ(files_like(".jsonl"), 0u);
}

// Goal: a spool file is never written over by one of the same process id and second, as after a clock was set back.
// Method: the name tells more than both, and a later one sorts anywhere without harm.
TEST_F(OwnPlace, SpoolFilesOfOneSecondAndProcessAreTold) {
    const fs::path folder = folder_ / "spool";
    const Record one = record(1024, 20.0);
    std::set<std::string> names;
    for (int i = 0; i < 8; ++i) names.insert(write_spool(folder, {&one, 1}).filename().string());
    EXPECT_EQ(names.size(), 8u);
    EXPECT_EQ(spool_files(folder).size(), 8u);
    std::set<std::string> random_parts;
    for (const std::string& name : names) random_parts.insert(name.substr(name.rfind('-')));
    EXPECT_EQ(random_parts.size(), 8u) << "nothing but time, process and count tells them apart";
}

TEST_F(OwnPlace, SpooledLinesThatNobodyHereCanReadAreKept) {
    {
        Store store = Store::open({.warn = {}, .spool_only = true});
        search(store, start(), {{config(256), 50.0}});
    }
    const fs::path spool = folder_ / "1/spool";
    const fs::path file = fs::directory_iterator { spool } -> path();
    write_bytes(file, bytes_of(file) + "{\"v\":2,\"kind\":\"of a newer program\"}\n");
    Store store = open();
    EXPECT_EQ(store.fold_spools(), 1u);
    EXPECT_EQ(store.records({}, today()).size(), 1u);
    EXPECT_EQ(files_like(".jsonl"), 1u);
    EXPECT_NE(bytes_of(file.string() + ".refused").find("of a newer program"), std::string::npos);
    EXPECT_EQ(warnings_.size(), 1u);
    EXPECT_EQ(store.fold_spools(), 0u) << "it was read again";
}

TEST_F(OwnPlace, ASpoolFileThatCannotBeReadWaits) {
    fs::create_directories(folder_ / "1/spool/host-1-2-3.jsonl");                  // a folder cannot be read as a file
    ASSERT_EQ(::mkfifo((folder_ / "1/spool/host-1-2-4.jsonl").c_str(), 0600), 0);  // nor can a pipe, and nobody waits
    fs::permissions(folder_ / "1", fs::perms::owner_all);
    Store store = open();
    EXPECT_EQ(store.fold_spools(), 0u);
    EXPECT_TRUE(fs::exists(folder_ / "1/spool/host-1-2-3.jsonl"));
    EXPECT_EQ(warnings_.size(), 2u);
}

TEST_F(OwnPlace, AReaderWithSpoolFilesStillSeesThatTheDatabaseChanges) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    {
        Store store = Store::open({.warn = {}, .spool_only = true});
        search(store, start(2048), {{config(256), 50.0}});
    }
    const Store reader = open(Store::Mode::read);
    EXPECT_EQ(reader.records({}, today()).size(), 2u);
    const std::int64_t before = reader.generation();
    const Record another = record(4096, 20.0);
    open().put({&another, 1});
    EXPECT_NE(reader.generation(), before);
}

TEST_F(OwnPlace, AReaderSeesThatSpoolFilesCome) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    const Record another = record(4096, 20.0);
    for (const bool file_is_there : {true, false}) {
        if (!file_is_there) fs::remove(path_);
        std::set<std::int64_t> seen;
        for (int files = 0; files < 3; ++files) {
            const Store reader = open(Store::Mode::read);
            const std::int64_t before = reader.generation();
            EXPECT_TRUE(seen.insert(before).second);
            EXPECT_EQ(reader.generation(), before) << "nothing has changed";
            write_spool(folder_ / "1/spool", {&another, 1});
            EXPECT_NE(reader.generation(), before);
        }
    }
}

TEST_F(OwnPlace, AReaderSeesThatAnotherFileTookOver) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    const Store reader = open(Store::Mode::read);
    EXPECT_GE(reader.generation(), 0);
    fs::rename(path_, folder_ / "1/tune.db.broken");
    EXPECT_EQ(reader.generation(), -1);
}

TEST_F(OwnPlace, TrialsOfADatabaseThatIsGoneAreSetAside) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    fs::remove(path_);
    Store store = open();
    EXPECT_TRUE(store.known_outcomes(start()).empty());
    EXPECT_EQ(files_like("trials.db.broken"), 1u);
}

TEST_F(OwnPlace, WhatLiesInThePlaceOfTrialsIsSetAsideAndNamed) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    const fs::path trials = path_.parent_path() / "trials.db";
    for (const bool folder : {true, false}) {
        fs::remove_all(trials);
        if (folder)
            fs::create_directory(trials);
        else
            write_bytes(trials, std::string(200, 'x'));
        warnings_.clear();
        const Store store = open();
        ASSERT_EQ(warnings_.size(), 1u);
        EXPECT_NE(warnings_[0].find("trials.db' does not belong to '"), std::string::npos) << warnings_[0];
        EXPECT_NE(warnings_[0].find("set aside as 'trials.db.broken-"), std::string::npos) << warnings_[0];
        EXPECT_TRUE(fs::is_regular_file(trials));
    }
    EXPECT_EQ(files_like("trials.db.broken"), 2u);
}

TEST_F(OwnPlace, TrialsThatCannotBeReadAreNotCalledAnothersAndStayWhereTheyAre) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    const fs::path trials = path_.parent_path() / "trials.db";
    fs::remove(trials);
    fs::create_symlink("trials.db", trials);  // a loop: no user may open it
    warnings_.clear();
    Store store = open();
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("trials.db' cannot be read: "), std::string::npos) << warnings_[0];
    EXPECT_TRUE(fs::is_symlink(trials));
    EXPECT_EQ(files_like("trials.db.broken"), 0u);
}

/// A process dies in the middle of a transaction whose pages have reached the file.
void kill_a_writer(const fs::path& path) {
    const pid_t child = ::fork();
    if (child == 0) {
        sqlite3* connection = nullptr;
        sqlite3_open(path.c_str(), &connection);
        sqlite3_exec(
            connection,
            "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; UPDATE record SET time_ns = 1; "
            "CREATE TABLE filler(x); INSERT INTO filler WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c "
            "WHERE i < 3000) SELECT zeroblob(1000) FROM c",
            nullptr, nullptr, nullptr);
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_GT(fs::file_size(path.string() + "-journal"), 0u);
}

TEST_F(OwnPlace, AReaderRollsBackWhatAKilledWriterLeftWhereOthersMayWriteAndAreTrusted) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    fs::permissions(path_.parent_path(), fs::perms::all);
    kill_a_writer(path_);
    ASSERT_TRUE(untrusted(path_));
    const Store store = Store::open({.path = path_, .mode = Store::Mode::read, .allow_shared_folder = true});
    const auto records = store.records({}, today());
    ASSERT_EQ(records.size(), 1u);
    EXPECT_DOUBLE_EQ(records.front().time_us, 50.0);
}

TEST_F(OwnPlace, AReaderRollsBackWhatAKilledWriterLeft) {
    { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
    kill_a_writer(path_);
    const auto records = open(Store::Mode::read).records({}, today());
    ASSERT_EQ(records.size(), 1u);
    EXPECT_DOUBLE_EQ(records.front().time_us, 50.0);
}

TEST_F(OwnPlace, AFullDiskSpoolsTheResult) {
    Store store = open();
    const RunId run = store.begin_run(start());
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        // A store of its own: one process may not use another's.
        ::signal(SIGXFSZ, SIG_IGN);
        int result = 1;
        try {
            Store small = open();
            const RunId mine = small.begin_run(start(4096));
            const rlimit limit{6000, RLIM_INFINITY};
            ::setrlimit(RLIMIT_FSIZE, &limit);
            small.finish_run(mine, {.finalists = {finalist(config(256), 50.0)}, .evaluated = 9, .space_size = 64});
        } catch (const Error& error) {
            const bool named = std::string{error.what()}.find("spool") != std::string::npos;
            result = error.kind() == Error::Kind::store && named ? 0 : 2;
        }
        ::_exit(result);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(files_like(".jsonl"), 1u);
    store.finish_run(run, {.finalists = {finalist(config(64), 20.0)}, .evaluated = 9, .space_size = 64});
    EXPECT_EQ(store.fold_spools(), 1u);
    EXPECT_EQ(store.records({}, today()).size(), 2u);
}

TEST_F(OwnPlace, ALockHeldTooLongSpoolsTheResultAndNamesTheHolder) {
    Store store = Store::open({.warn = {}, .patience = std::chrono::milliseconds{100}});
    const RunId run = store.begin_run(start());
    WriterLock other{path_};
    ASSERT_TRUE(other.acquire(std::chrono::milliseconds{0}));
    try {
        store.finish_run(run, {.finalists = {finalist(config(256), 50.0)}, .evaluated = 9, .space_size = 64});
        FAIL() << "it wrote though another held the lock";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::store);
        EXPECT_NE(std::string{error.what()}.find("process " + std::to_string(::getpid())), std::string::npos)
            << error.what();
        EXPECT_NE(std::string{error.what()}.find("1 record waits"), std::string::npos) << error.what();
        EXPECT_EQ(error.help(), "the next run that writes here takes them along");
    }
    other.release();
    EXPECT_EQ(store.fold_spools(), 1u);
}

TEST_F(OwnPlace, AFileThatAnotherProgramLocksIsNotBlamedOnUs) {
    Store store = Store::open({.warn = {}, .patience = std::chrono::milliseconds{100}});
    const RunId run = store.begin_run(start());
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    try {
        store.finish_run(run, {.finalists = {finalist(config(256), 50.0)}, .evaluated = 9, .space_size = 64});
        ADD_FAILURE() << "it wrote though another held the lock";
    } catch (const Error& error) {
        EXPECT_NE(std::string{error.what()}.find("by a process that is not autotune"), std::string::npos)
            << error.what();
    }
    sqlite3_close(other);
    EXPECT_EQ(store.fold_spools(), 1u);
}

// Goal: one long wait a run is enough, whoever holds the file.
TEST_F(OwnPlace, AFileThatAnotherProgramKeepsIsWaitedForOnce) {
    using Clock = std::chrono::steady_clock;
    Store store = Store::open({.warn = {}, .patience = std::chrono::milliseconds{1500}});
    const RunId run = store.begin_run(start());
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(trials_path(path_).c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    EXPECT_THROW(store.record_trial(run, config(256), timed(50.0)), Error);
    const auto begun = Clock::now();
    for (int i = 0; i < 3; ++i) EXPECT_THROW(store.record_trial(run, config(256), timed(50.0)), Error);
    EXPECT_LT(Clock::now() - begun, std::chrono::milliseconds{1500});
    sqlite3_close(other);
    store.record_trial(run, config(256), timed(50.0));
    EXPECT_EQ(store.trials(run).size(), 1u);
}

// -- files that were named

class NamedFile : public testing::Test {
protected:
    Store open(Store::Mode mode = Store::Mode::write) { return Store::open({.path = path_, .mode = mode}); }
    Error::Kind refusal(Store::Mode mode = Store::Mode::write) {
        try {
            open(mode);
        } catch (const Error& error) {
            return error.kind();
        }
        return Error::Kind::internal;
    }
    Folder folder_;
    fs::path path_ = folder_ / "mine.db";
};

TEST_F(NamedFile, IsMadeWithItsTrialsBesideIt) {
    search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
    EXPECT_TRUE(fs::exists(folder_ / "mine.trials.db"));
    EXPECT_EQ(open(Store::Mode::read).records({}, today()).size(), 1u);
}

TEST_F(NamedFile, OfAnotherProgramIsNeverTouched) {
    execute(path_, "CREATE TABLE theirs(x); INSERT INTO theirs VALUES (1)");
    const std::string before = bytes_of(path_);
    EXPECT_EQ(refusal(), Error::Kind::usage);
    EXPECT_EQ(refusal(Store::Mode::read), Error::Kind::usage);
    EXPECT_EQ(bytes_of(path_), before);
    write_bytes(path_, "");
    EXPECT_EQ(refusal(), Error::Kind::usage);
    EXPECT_EQ(fs::file_size(path_), 0u);
    EXPECT_EQ(std::distance(fs::directory_iterator{folder_.path()}, {}), 1) << "something was left beside it";
}

// Goal: what cannot be looked at is neither waited for nor taken for damaged.
TEST_F(NamedFile, ThatIsAPipeOrAFolderIsRefusedAtOnce) {
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    EXPECT_EQ(refusal(), Error::Kind::usage);
    EXPECT_EQ(refusal(Store::Mode::read), Error::Kind::usage);
    fs::remove(path_);
    fs::create_directory(path_);
    EXPECT_EQ(refusal(), Error::Kind::usage);
    EXPECT_EQ(refusal(Store::Mode::read), Error::Kind::usage);
}

TEST_F(NamedFile, ThatLacksATableIsReportedAsDamaged) {
    search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
    execute(path_, "DROP TABLE record");
    EXPECT_EQ(refusal(), Error::Kind::store);
    EXPECT_EQ(refusal(Store::Mode::read), Error::Kind::store);
}

// Goal: a question that the file cannot answer is the file's fault in words, not a fault of ours.
// Method: a table goes after the store was opened.
// Goal: what somebody put into a schema never runs, and a file that has it is no database of ours, whoever opens it.
// Method: each kind of thing that SQLite can hold beside plain tables, in a database of records.
constexpr const char* additions[] = {
    "CREATE TRIGGER t AFTER INSERT ON record BEGIN DELETE FROM meta; END",
    "CREATE VIEW v AS SELECT 1",
    "CREATE TABLE more (x)",
    "CREATE VIRTUAL TABLE words USING fts5(x)",
    "CREATE INDEX more ON record (abs(time_ns))",
    "ALTER TABLE record ADD COLUMN twice INTEGER GENERATED ALWAYS AS (time_ns * 2) VIRTUAL",
    "ALTER TABLE meta ADD COLUMN more TEXT",
    "ALTER TABLE import_log ADD COLUMN more TEXT CHECK (length(more) < 9)",
    "ALTER TABLE import_log RENAME COLUMN policy TO politeness",
    "DROP INDEX run_by_problem",
    "DROP TABLE negative; CREATE VIEW negative AS SELECT * FROM record",
    "DROP TABLE import_log; CREATE TABLE import_log (id INTEGER PRIMARY KEY, source_uuid TEXT NOT NULL COLLATE NOCASE, "
    "sha256 TEXT NOT NULL, \"when\" INTEGER NOT NULL, policy TEXT NOT NULL, rows_in INTEGER NOT NULL, accepted INTEGER "
    "NOT NULL, rejected_json TEXT NOT NULL) STRICT",
    "DROP TABLE import_log; CREATE TABLE import_log (id INTEGER PRIMARY KEY, source_uuid TEXT NOT NULL, sha256 TEXT "
    "NOT "
    "NULL, \"when\" INTEGER NOT NULL, policy TEXT NOT NULL, rows_in INTEGER NOT NULL, accepted INTEGER NOT NULL, "
    "rejected_json TEXT NOT NULL)",
};

TEST_F(NamedFile, WithMoreThanOurSchemaIsRefusedByReadersAndWritersAndKept) {
    const std::string plain = [&] {
        search(*std::make_unique<Store>(Store::open({.path = path_})), start(), {{config(256), 50.0}});
        return bytes_of(path_);
    }();
    for (const char* sql : additions) {
        write_bytes(path_, plain);
        execute(path_, sql);
        const std::string before = bytes_of(path_);
        for (const Store::Mode mode : {Store::Mode::read, Store::Mode::write}) {
            for (const bool immutable : {false, true}) {
                try {
                    Store::open({.path = path_, .mode = mode, .immutable = immutable});
                    ADD_FAILURE() << sql;
                } catch (const Error& error) {
                    EXPECT_EQ(error.kind(), Error::Kind::store) << sql;
                    EXPECT_NE(std::string{error.what()}.find("' is damaged: "), std::string::npos) << error.what();
                }
            }
        }
        EXPECT_EQ(bytes_of(path_), before) << sql;
    }
    write_bytes(path_, plain);
    execute(path_, "ANALYZE");
    EXPECT_EQ(Store::open({.path = path_}).records({}, today()).size(), 1u) << "statistics decide nothing";
}

TEST_F(OwnPlace, AFileWithMoreThanOurSchemaIsSetAside) {
    for (const char* sql : additions) {
        fs::remove_all(folder_ / "1");
        { search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}}); }
        execute(path_, sql);
        warnings_.clear();
        search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
        EXPECT_EQ(files_like("tune.db.broken"), 1u) << sql;
        EXPECT_FALSE(warnings_.empty()) << sql;
        EXPECT_EQ(open().records({}, today()).size(), 1u) << sql;
    }
}

// Goal: no trigger runs even in a file that gains it while it is open.
TEST_F(NamedFile, ATriggerThatComesWhileTheFileIsOpenDoesNotRun) {
    Store store = Store::open({.path = path_});
    search(store, start(), {{config(256), 50.0}});
    execute(path_, "CREATE TRIGGER t AFTER INSERT ON record BEGIN DELETE FROM meta; END");
    search(store, start(2048), {{config(256), 50.0}});
    EXPECT_NE(text_of(path_, "SELECT count(*) FROM meta"), "0\n");
}

TEST_F(NamedFile, ThatBreaksWhileItIsReadIsAnErrorOfTheStore) {
    search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
    const Store store = open(Store::Mode::read);
    execute(path_, "DROP TABLE record");
    try {
        store.records({}, today());
        FAIL() << "it was read";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::store);
        EXPECT_NE(std::string{error.what()}.find("mine.db' could not be read: no such table: record"),
                  std::string::npos)
            << error.what();
    }
}

TEST_F(NamedFile, ThatIsALinkToNothingIsNamedAsThat) {
    fs::create_symlink("/nowhere/x.db", path_);
    for (const Store::Mode mode : {Store::Mode::read, Store::Mode::write}) {
        try {
            open(mode);
            ADD_FAILURE() << "it was opened";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), Error::Kind::usage);
            EXPECT_NE(std::string{error.what()}.find("mine.db' is a link to '/nowhere/x.db', where nothing is"),
                      std::string::npos)
                << error.what();
        }
    }
}

// Goal: whichever name a database is opened by, what lies beside its file is one and the same: journal, locks, trials,
// spool files, lists. Method: links, one to the other, from other folders.
TEST_F(NamedFile, ThatIsReachedByALinkKeepsAllBesideItsFile) {
    search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
    const Folder elsewhere;
    fs::create_symlink(path_, elsewhere / "far.db");
    fs::create_symlink("far.db", elsewhere / "link.db");
    const fs::path link = elsewhere / "link.db";
    {
        Store store = Store::open({.path = link});
        EXPECT_EQ(store.path(), path_);
        EXPECT_EQ(store.known_outcomes(start()).size(), 1u) << "the trials are those beside the file";
        search(store, start(2048), {{config(128), 50.0}});
    }
    EXPECT_EQ(std::distance(fs::directory_iterator{elsewhere.path()}, {}), 2) << "nothing lies beside the links";
    EXPECT_EQ(open(Store::Mode::read).known_outcomes(start(2048)).size(), 1u);
    EXPECT_EQ(faults_of(link), std::vector<std::string>{});
    {
        Store store = Store::open({.path = link, .spool_only = true});
        search(store, start(4096), {{config(64), 50.0}});
        Upkeep{store}.compact();
    }
    EXPECT_TRUE(fs::is_symlink(link)) << "a fold replaces the file, not the link";
    EXPECT_EQ(open(Store::Mode::read).records({.winners_only = true}, today()).size(), 3u);
    EXPECT_EQ(MissList{link}.path(), MissList{path_}.path());
}

TEST_F(NamedFile, WhoseFileLiesWhereOthersMayWriteIsRefusedWhicheverLinkLeadsThere) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may give a file to another user";
    search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
    const Folder own;
    const fs::path link = own / "link.db";
    fs::create_symlink(path_, link);
    const auto refused = [&](Store::Mode mode) {
        try {
            Store::open({.path = link, .mode = mode});
        } catch (const Error& error) {
            return error.kind() == Error::Kind::usage;
        }
        return false;
    };
    const auto expect_refused = [&](bool wanted) {
        for (const Store::Mode mode : {Store::Mode::read, Store::Mode::write}) EXPECT_EQ(refused(mode), wanted);
    };
    expect_refused(false);
    fs::permissions(folder_.path(), fs::perms::all);
    expect_refused(true);
    fs::permissions(folder_.path(), fs::perms::all | fs::perms::sticky_bit);
    expect_refused(false);
    fs::remove(path_.string() + "-journal");
    write_bytes(path_.string() + "-journal", "");
    ASSERT_EQ(::lchown((path_.string() + "-journal").c_str(), 65534, 65534), 0);
    expect_refused(true);
}

int without_locks(int file, int command, ...) {
    if (command == F_SETLK || command == F_SETLKW || command == F_GETLK) {
        errno = ENOLCK;
        return -1;
    }
    va_list more;
    va_start(more, command);
    const long argument = va_arg(more, long);
    va_end(more);
    return ::fcntl(file, command, argument);
}

/// SQLite's locks are refused as long as this lives.
class NoLocks {
public:
    NoLocks() { vfs_->xSetSystemCall(vfs_, "fcntl", reinterpret_cast<sqlite3_syscall_ptr>(without_locks)); }
    NoLocks(const NoLocks&) = delete;
    NoLocks& operator=(const NoLocks&) = delete;
    ~NoLocks() { vfs_->xSetSystemCall(vfs_, "fcntl", nullptr); }

private:
    sqlite3_vfs* vfs_ = sqlite3_vfs_find("unix");
};

// Goal: where nothing can be locked, nobody is told to wait for another process.
TEST_F(NamedFile, OnAFileSystemWithoutLocksIsToldAsThat) {
    search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
    const NoLocks none;
    const auto said = [](const std::function<void()>& deed) -> std::string {
        try {
            deed();
        } catch (const Error& error) {
            return std::string{error.what()} + " / " + error.help();
        }
        return "nothing";
    };
    for (const Store::Mode mode : {Store::Mode::read, Store::Mode::write})
        EXPECT_NE(said([&] {
                      Store::open({.path = path_, .mode = mode, .patience = std::chrono::milliseconds{0}});
                  }).find("mine.db' cannot be opened: its file system has no locks / name a database on a local disk"),
                  std::string::npos);
    EXPECT_NE(said([&] {
                  Store::open({.path = folder_ / "new.db"});
              }).find("new.db' cannot be made: No locks available / name another place with --db"),
              std::string::npos);
}

TEST_F(NamedFile, ThatCannotBeOpenedSaysNothingOfLocks) {
    const DatabaseFile file{folder_ / "none.db"};
    EXPECT_EQ(file.error(), ENOENT);
    EXPECT_TRUE(file.may_be_locked());
}

TEST_F(NamedFile, ThatIsBeingWrittenIsWaitedForByASalvage) {
    search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
    sqlite3* writer = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &writer), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(writer, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
    std::thread ending{[&] {
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
        sqlite3_exec(writer, "COMMIT", nullptr, nullptr, nullptr);
    }};
    EXPECT_EQ(salvage(path_, folder_ / "new.db").records, 1u);
    ending.join();
    sqlite3_close(writer);
}

// Goal: a look at a database, whatever for, leaves this process the locks that it has: another thread may be writing.
// Method: a write that is not done, and another process that asks whether the file is locked.
TEST_F(NamedFile, IsLookedAtWithoutGivingUpTheLocksOfThisProcess) {
    search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
    const auto locked = [&](const fs::path& file) {
        const pid_t child = ::fork();
        if (child == 0) {
            struct flock range {};
            range.l_type = F_WRLCK;
            const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
            ::_exit(::fcntl(descriptor, F_GETLK, &range) == 0 && range.l_type != F_UNLCK ? 0 : 1);
        }
        int status = 1;
        ::waitpid(child, &status, 0);
        return status == 0;
    };
    for (const fs::path& file : {path_, trials_path(path_)}) {
        sqlite3* writer = nullptr;
        ASSERT_EQ(sqlite3_open(file.c_str(), &writer), SQLITE_OK);
        ASSERT_EQ(sqlite3_exec(writer, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
        ASSERT_TRUE(locked(file));
        EXPECT_EQ(probe(file).kind, FileKind::ours);
        EXPECT_TRUE(locked(file)) << "after a look at its head";
        const auto read = [&] {
            Store::open({.path = path_, .mode = Store::Mode::read, .patience = std::chrono::milliseconds{0}});
        };
        if (probe(file).write_ahead_log)
            EXPECT_NO_THROW(read());
        else
            EXPECT_THROW(read(), Error);
        EXPECT_TRUE(locked(file)) << "after it was opened to be read";
        EXPECT_FALSE(read_foreign_file(file, std::size_t{1} << 30).empty());
        EXPECT_TRUE(locked(file)) << "after it was read as a file to import";
        sqlite3_close(writer);
    }
}

// Goal: in a folder such as /tmp nobody puts anything beside a database that is taken for its own.
// Method: what belongs to another user, of each name; and the journal's name is taken before anybody else can.
TEST_F(NamedFile, BesideWhichAnotherUserPutSomethingIsRefused) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may give a file to another user";
    fs::permissions(folder_.path(), fs::perms::all | fs::perms::sticky_bit);
    search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
    for (const char* companion : {"-journal", "-wal", "-lock", "-queue"}) {
        const fs::path planted = path_.string() + companion;
        for (const bool link : {false, true}) {
            fs::remove(planted);
            if (link)
                fs::create_symlink(path_, planted);
            else
                write_bytes(planted, "");
            ASSERT_EQ(::lchown(planted.c_str(), 65534, 65534), 0);
            EXPECT_EQ(refusal(), Error::Kind::usage) << planted;
            EXPECT_EQ(refusal(Store::Mode::read), Error::Kind::usage) << planted;
        }
        fs::remove(planted);
    }
    EXPECT_EQ(open(Store::Mode::read).records({}, today()).size(), 1u);
    EXPECT_FALSE(fs::exists(path_.string() + "-journal"));
    const Store store = open();
    for (const fs::path& file : {path_, trials_path(path_)})
        EXPECT_TRUE(fs::exists(file.string() + "-journal")) << "its name is free for others";
}

// Goal: a journal of trials that comes after the first look at the folder is not rolled in.
// Method: a link of this user's own in its place, which that look lets pass, as it does one that is not there yet.
TEST_F(NamedFile, WhoseTrialsHaveAJournalThatIsNotItsOwnKeepsThemInMemory) {
    search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
    const fs::path trials = trials_path(path_), journal = trials.string() + "-journal";
    const std::string before = bytes_of(trials);
    fs::remove(journal);
    write_bytes(folder_ / "planted", "");
    fs::create_symlink(folder_ / "planted", journal);
    fs::permissions(folder_.path(), fs::perms::all | fs::perms::sticky_bit);
    ASSERT_EQ(untrusted(trials), std::nullopt);
    std::vector<std::string> warnings;
    Store store = Store::open({.path = path_, .warn = [&](const std::string& one) { warnings.push_back(one); }});
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("mine.trials.db-journal' is another user's, so trials are kept in memory only"),
              std::string::npos)
        << warnings[0];
    search(store, start(2048), {{config(128), 50.0}});
    EXPECT_EQ(bytes_of(trials), before);
    EXPECT_EQ(open(Store::Mode::read).records({}, today()).size(), 2u) << "the records are kept all the same";
}

TEST_F(NamedFile, ThatIsDamagedIsReportedAndKept) {
    search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
    fs::resize_file(path_, fs::file_size(path_) / 2);
    const std::string before = bytes_of(path_);
    EXPECT_EQ(refusal(), Error::Kind::store);
    EXPECT_EQ(bytes_of(path_), before);
}

TEST_F(NamedFile, OfANewerSchemaIsNotWritten) {
    search(*std::make_unique<Store>(open()), start(), {{config(256), 50.0}});
    execute(path_, "PRAGMA user_version = 4");
    EXPECT_EQ(refusal(), Error::Kind::usage);
    EXPECT_EQ(open(Store::Mode::read).records({}, today()).size(), 1u) << "its min_reader allows us to read";
    execute(path_, "UPDATE meta SET value = '4' WHERE key = 'min_reader'");
    EXPECT_TRUE(open(Store::Mode::read).records({}, today()).empty()) << "a file for newer readers is a miss";
}

TEST_F(NamedFile, WritersInOneProcessDoNotLoseEachOthersRows) {
    Store a = open(), b = open();
    for (std::int64_t n = 1; n <= 5; ++n) {
        search(a, start(n), {{config(256), 50.0}});
        search(b, start(100 + n), {{config(128), 60.0}});
    }
    EXPECT_EQ(open(Store::Mode::read).records({}, today()).size(), 10u);
    EXPECT_GT(a.generation(), 0);
    EXPECT_EQ(a.generation(), b.generation());
}

// -- the schema

TEST(Schema, IsTheOneThatWasReleased) {
    Folder folder;
    const fs::path path = folder / "tune.db";
    Store::open({.path = path});
    const char* dump = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    std::string schema = "-- tune.db\n" + text_of(path, dump) + "-- trials.db\n" + text_of(trials_path(path), dump);
    const fs::path golden = fs::path{AUTOTUNE_SOURCE_DIR} / "tests/cache/golden/schema_3.txt";
    if (std::getenv("AUTOTUNE_WRITE_GOLDEN")) write_bytes(golden, schema);
    EXPECT_EQ(schema, bytes_of(golden)) << "a change needs a new user_version and a migration, or it is additive";
    EXPECT_EQ(text_of(path, "PRAGMA application_id"), "1096045902\n");
    EXPECT_EQ(text_of(path, "PRAGMA user_version"), "3\n");
}

TEST(Schema, EveryTableIsStrictAndNothingRunsByItself) {
    Folder folder;
    const fs::path path = folder / "tune.db";
    Store::open({.path = path});
    for (const fs::path& file : {path, trials_path(path)}) {
        EXPECT_EQ(text_of(file, "SELECT name FROM pragma_table_list WHERE NOT strict AND name NOT LIKE 'sqlite_%'"),
                  "");
        EXPECT_EQ(text_of(file, "SELECT name FROM sqlite_schema WHERE type NOT IN ('table', 'index')"), "");
    }
}

TEST(Schema, AFileOfEachReleasedSchemaIsStillRead) {
    for (int schema = 1; schema <= schema_version; ++schema) {
        Folder folder;
        const fs::path path = folder / "tune.db";
        const fs::path golden =
            fs::path{AUTOTUNE_SOURCE_DIR} / "tests/cache/golden" / ("tune_" + std::to_string(schema) + ".db");
        if (schema == schema_version && std::getenv("AUTOTUNE_WRITE_GOLDEN")) {
            Store store = Store::open({.path = path, .now = [] { return std::int64_t{1'764'000'000}; }});
            search(store, start(), {{config(256, 4), 50.0}, {config(128, 4), 50.5}});
            fs::copy_file(path, golden, fs::copy_options::overwrite_existing);
        } else {
            fs::copy_file(golden, path);
        }
        const Store store = Store::open({.path = path, .mode = Store::Mode::read});
        const auto records = store.records({}, today());
        ASSERT_EQ(records.size(), 2u);
        EXPECT_EQ(records.front().config, config(256, 4));
        EXPECT_DOUBLE_EQ(records.front().time_us, 50.0);
        EXPECT_TRUE(records.front().fresh()) << records.front().stale;
    }
}

}  // namespace
}  // namespace autotune
