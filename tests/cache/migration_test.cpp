// Goal: a file of another schema or another journal mode loses nothing, whoever meets it and whatever stops them.
// Method: a schema 0 that never was, with the step from it to 1, and one to today's that changes nothing; real files,
// forked processes, a limit of file sizes.
#include "cache/store/migration.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "autotune/error.h"
#include "cache/store/location.h"
#include "cache/store/opening.h"
#include "cache/store/store.h"
#include "tests/cache/samples.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;
using namespace samples;

constexpr std::chrono::milliseconds patient{10'000};
std::string steps_file;  ///< a byte for each step that is taken, of whatever process

void note_step() {
    const int file = ::open(steps_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    EXPECT_EQ(::write(file, "x", 1), 1);
    ::close(file);
}

void complete_tune(Database& database) {
    note_step();
    database.execute(
        "ALTER TABLE negative ADD COLUMN run INTEGER;"
        "CREATE TABLE import_log (id INTEGER PRIMARY KEY, source_uuid TEXT NOT NULL, sha256 TEXT NOT NULL, "
        "\"when\" INTEGER NOT NULL, policy TEXT NOT NULL, rows_in INTEGER NOT NULL, accepted INTEGER NOT NULL, "
        "rejected_json TEXT NOT NULL) STRICT");
}
void complete_trials(Database& database) { database.execute("ALTER TABLE old_config RENAME TO config"); }

/// Its pages have reached the file when it dies.
void die_halfway(Database& database) {
    complete_tune(database);
    database.execute(
        "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; UPDATE record SET time_ns = 1; CREATE TABLE filler(x); "
        "INSERT INTO filler WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 3000) SELECT "
        "zeroblob(1000) FROM c");
    ::kill(::getpid(), SIGKILL);
}
void grow(Database& database) {
    complete_tune(database);
    database.execute("CREATE TABLE filler(x); INSERT INTO filler VALUES (zeroblob(4000000)); DROP TABLE filler");
}
void fall_over(Database& database) {
    database.execute("DELETE FROM record");
    database.execute("INSERT INTO no_such_table VALUES (1)");
}

constexpr Migration steps[] = {{.from = 0, .tune = complete_tune, .trials = complete_trials}, {.from = 1}, {.from = 2}};

class MigrationTest : public testing::Test {
protected:
    void SetUp() override {
        ::unsetenv("AUTOTUNE_DB");
        ::setenv("AUTOTUNE_CACHE_DIR", folder_.path().c_str(), 1);
        path_ = Store::default_path();
        steps_file = (folder_ / "steps").string();
        search(*std::make_unique<Store>(Store::open({})), start(), {{config(256), 50.0}});
    }
    void TearDown() override { ::unsetenv("AUTOTUNE_CACHE_DIR"); }

    /// What was stored becomes a file of schema 0.
    void age() const {
        execute(path_,
                "DROP TABLE import_log; ALTER TABLE negative DROP COLUMN run; UPDATE meta SET value = '0' WHERE key = "
                "'min_reader'; PRAGMA user_version = 0");
        execute(trials_path(path_), "ALTER TABLE config RENAME TO old_config; PRAGMA user_version = 0");
    }
    static void execute(const fs::path& path, const char* sql) {
        Database::open(path, Database::Access::write, patient).execute(sql);
    }
    std::string text_of(const char* sql) const {
        return Database::open(path_, Database::Access::read, patient).text_of(sql);
    }
    std::string bytes() const {
        std::ifstream in{path_, std::ios::binary};
        return {std::istreambuf_iterator<char>{in}, {}};
    }
    Store::Options options(Store::Mode mode = Store::Mode::write, bool named = false) {
        return {.path = named ? path_ : fs::path{}, .mode = mode, .warn = [this](const std::string& sentence) {
                    warnings_.push_back(sentence);
                }};
    }
    Opened open(Store::Mode mode = Store::Mode::write, std::span<const Migration> by = steps) {
        return open_databases(options(mode), by);
    }
    std::size_t files_like(const std::string& part) const {
        std::size_t count = 0;
        for (const auto& entry : fs::recursive_directory_iterator{folder_.path()})
            count += entry.path().filename().string().find(part) != std::string::npos ? 1 : 0;
        return count;
    }
    std::size_t steps_taken() const { return fs::exists(steps_file) ? fs::file_size(steps_file) : 0; }
    void expect_whole() {
        EXPECT_EQ(text_of("PRAGMA user_version"), std::to_string(schema_version));
        EXPECT_EQ(text_of("PRAGMA integrity_check"), "ok");
        const Store store = Store::open({.mode = Store::Mode::read});
        const auto records = store.records({}, today());
        ASSERT_EQ(records.size(), 1u);
        EXPECT_DOUBLE_EQ(records.front().time_us, 50.0);
        EXPECT_TRUE(store.check().empty());
        ASSERT_EQ(store.runs().size(), 1u);
        EXPECT_FALSE(store.trials(store.runs().front().id).empty());
        EXPECT_EQ(files_like("schema-"), 0u) << "a copy was left";
        EXPECT_EQ(files_like("broken"), 0u);
    }
    /// How a process of its own ends: what `body` answers, or 128 + the signal.
    template <class Body>
    static int in_a_process(const Body& body) {
        const pid_t child = ::fork();
        if (child == 0) {
            int result = 99;
            try {
                result = body();
            } catch (const std::exception& e) {
                std::fprintf(stderr, "%s\n", e.what());
            }
            ::_exit(result);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

    Folder folder_;
    fs::path path_;
    std::vector<std::string> warnings_;
};

TEST_F(MigrationTest, AWriterBringsAnOlderFileToTodaysSchemaAndKeepsItsRows) {
    age();
    const std::int64_t before = std::stoll(text_of("SELECT value FROM meta WHERE key = 'generation'"));
    EXPECT_TRUE(open().may_write);
    EXPECT_TRUE(warnings_.empty()) << warnings_[0];
    expect_whole();
    EXPECT_EQ(text_of("SELECT value FROM meta WHERE key = 'min_reader'"), "1");
    EXPECT_GT(std::stoll(text_of("SELECT value FROM meta WHERE key = 'generation'")), before) << "readers see nothing";
    const std::string migrated = bytes();
    EXPECT_TRUE(open().may_write);
    EXPECT_EQ(bytes(), migrated) << "opening a current file wrote to it";
    EXPECT_EQ(steps_taken(), 1u);
}

TEST_F(MigrationTest, AReaderOfAnOlderFileWritesNothingAndSeesThatItChanges) {
    age();
    const std::string before = bytes();
    const std::size_t files = files_like("");
    {
        Opened opened = open(Store::Mode::read);
        EXPECT_EQ(opened.tune.text_of("SELECT count(*) FROM record"), "1");
        EXPECT_EQ(opened.tune.text_of("SELECT count(*) FROM import_log"), "0") << "the copy is not of today's schema";
        EXPECT_GT(opened.trials.integer_of("SELECT count(*) FROM trial").value_or(0), 0);
        ASSERT_TRUE(opened.on_disk) << "it would see no change";
    }
    EXPECT_EQ(bytes(), before);
    EXPECT_EQ(files_like(""), files + 1) << "more than the test's own list of steps";
}

TEST_F(MigrationTest, StepsAreTakenInOrderInOneTransaction) {
    age();
    const Migration three[] = {{.from = 0, .tune = complete_tune},
                               {.from = 2, .min_reader = 3, .tune = [](Database& d) { d.execute("DROP TABLE later"); }},
                               {.from = 1, .tune = [](Database& d) { d.execute("CREATE TABLE later(x)"); }}};
    migrate_file(path_, false, patient, three, 3);
    EXPECT_EQ(text_of("PRAGMA user_version"), "3");
    EXPECT_EQ(text_of("SELECT value FROM meta WHERE key = 'min_reader'"), "3");
    EXPECT_EQ(text_of("SELECT count(*) FROM record"), "1");
}

// Goal: a process that is killed between two steps loses nothing, and the next one begins anew.
TEST_F(MigrationTest, AKillBetweenTheStepsLeavesTheFileAndACopy) {
    age();
    const Migration deadly[] = {{.from = 0, .tune = die_halfway}, {.from = 1}, {.from = 2}};
    EXPECT_EQ(in_a_process([&] {
                  open(Store::Mode::write, deadly);
                  return 0;
              }),
              128 + SIGKILL);
    ASSERT_EQ(files_like("tune.db.schema-0"), 1u);
    ASSERT_EQ(files_like("tune.db-journal"), 1u) << "nothing had reached the file, so nothing was tried";
    {
        Database copy = Database::open(path_.string() + ".schema-0", Database::Access::read, patient);
        EXPECT_EQ(copy.text_of("PRAGMA integrity_check"), "ok");
        EXPECT_EQ(copy.text_of("SELECT time_ns FROM record"), "50000");
        EXPECT_EQ(copy.text_of("PRAGMA user_version"), "0");
    }
    EXPECT_EQ(open(Store::Mode::read).tune.text_of("SELECT time_ns FROM record"), "50000");
    EXPECT_TRUE(open().may_write);
    expect_whole();
}

TEST_F(MigrationTest, AKillWhileTheCopyIsMadeLeavesNothingInTheWay) {
    age();
    std::ofstream{path_.string() + ".schema-0.new"} << "half a copy";
    std::ofstream{path_.string() + ".schema-0"} << "an older copy";
    EXPECT_TRUE(open().may_write);
    expect_whole();
}

// Method: files of this process cannot grow beyond what the copy takes, or not even that far.
TEST_F(MigrationTest, AFullDiskLeavesTheFileAndTheSearchGoesOnWithItsRows) {
    age();
    const std::string before = bytes();
    const Migration growing[] = {{.from = 0, .tune = grow, .trials = complete_trials}, {.from = 1}, {.from = 2}};
    for (const rlim_t most : {rlim_t{6000}, static_cast<rlim_t>(fs::file_size(path_) + 65536)}) {
        EXPECT_EQ(in_a_process([&] {
                      ::signal(SIGXFSZ, SIG_IGN);
                      const rlimit limit{most, RLIM_INFINITY};
                      ::setrlimit(RLIMIT_FSIZE, &limit);
                      Opened opened = open(Store::Mode::write, growing);
                      if (opened.may_write || opened.where != Opened::Where::memory) return 1;
                      if (opened.tune.text_of("SELECT count(*) FROM record") != "1") return 2;
                      if (warnings_.empty() ||
                          warnings_[0].find("has schema 0 and cannot be brought to 3") == std::string::npos)
                          return 3;
                      return 0;
                  }),
                  0);
        EXPECT_EQ(bytes(), before);
        EXPECT_EQ(files_like(".new"), 0u);
    }
    EXPECT_TRUE(open().may_write);
    expect_whole();
}

TEST_F(MigrationTest, AStepThatFailsIsNoDamage) {
    age();
    const Migration wrong[] = {{.from = 0, .tune = fall_over}, {.from = 1}, {.from = 2}};
    EXPECT_FALSE(open(Store::Mode::write, wrong).may_write);
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("cannot be brought to 3: no such table: no_such_table"), std::string::npos)
        << warnings_[0];
    EXPECT_EQ(files_like("broken"), 0u) << "a sound file was set aside";
    try {
        open_databases(options(Store::Mode::write, true), wrong);
        ADD_FAILURE() << "a named file was opened";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::store);
        EXPECT_NE(std::string{error.what()}.find("and the file is left as it is"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(open().may_write);
    expect_whole();
}

// Method: many rounds, since what a process reads of a file just when another has brought it up to date is chance.
TEST_F(MigrationTest, OfManyProcessesOneTakesTheSteps) {
    for (std::size_t round = 1; round <= 100 && !HasFailure(); ++round) {
        age();
        std::vector<pid_t> children;
        for (int i = 0; i < 6; ++i) {
            const pid_t child = ::fork();
            if (child == 0) {
                int result = 9;
                try {
                    result = open().may_write && warnings_.empty() ? 0 : 1;
                } catch (...) {
                }
                ::_exit(result);
            }
            children.push_back(child);
        }
        for (const pid_t child : children) {
            int status = 0;
            ::waitpid(child, &status, 0);
            EXPECT_EQ(WEXITSTATUS(status), 0);
        }
        EXPECT_EQ(steps_taken(), round);
        expect_whole();
    }
}

TEST_F(MigrationTest, ADamagedFileIsFoundBeforeItsCopyIsReplaced) {
    age();
    std::ofstream{path_.string() + ".schema-0"} << "a sound copy";
    std::string damaged = bytes();
    std::fill(damaged.begin() + 8192, damaged.end(), '\x55');
    std::ofstream{path_, std::ios::binary} << damaged;
    EXPECT_THROW(migrate_file(path_, false, patient, steps), DatabaseFailure);
    std::ifstream copy{path_.string() + ".schema-0"};
    EXPECT_EQ((std::string{std::istreambuf_iterator<char>{copy}, {}}), "a sound copy");
}

// -- newer than this program

TEST_F(MigrationTest, ANewerFileAtOurOwnPlaceStaysAndIsReadWhereItMayBe) {
    execute(path_, "PRAGMA user_version = 4");
    const std::string before = bytes();
    for (const Store::Mode mode : {Store::Mode::write, Store::Mode::read}) {
        warnings_.clear();
        Store store = Store::open(options(mode));
        EXPECT_EQ(store.records({}, today()).size(), 1u);
        EXPECT_EQ(warnings_.size(), mode == Store::Mode::write ? 1u : 0u);
        if (mode == Store::Mode::write) {
            search(store, start(2048), {{config(64), 9.0}});
            EXPECT_EQ(store.records({}, today()).size(), 2u);
        }
    }
    execute(path_, "UPDATE meta SET value = '4' WHERE key = 'min_reader'");
    for (const Store::Mode mode : {Store::Mode::write, Store::Mode::read}) {
        warnings_.clear();
        EXPECT_TRUE(Store::open(options(mode)).records({}, today()).empty());
        ASSERT_EQ(warnings_.size(), 1u);
        EXPECT_NE(warnings_[0].find("has schema 4, this program knows 3, so the file is ignored"), std::string::npos)
            << warnings_[0];
    }
    EXPECT_EQ(files_like("broken"), 0u) << "it was taken from a newer program";
    EXPECT_EQ(bytes().size(), before.size());
}

// -- files of each released schema

TEST(Schemas, EachThatWasReleasedIsReadAndBecomesToday) {
    const fs::path golden = fs::path{AUTOTUNE_SOURCE_DIR} / "tests/cache/golden";
    Folder folder;
    Store::open({.path = folder / "fresh.db"});
    const auto columns = [](const fs::path& path) {
        Database database = Database::open(path, Database::Access::read, patient);
        return database.text_of(
            "SELECT group_concat(t.name || '.' || c.name || ' ' || c.type || c.pk || c.\"notnull\", ', ') FROM (SELECT "
            "name FROM sqlite_schema WHERE type = 'table' ORDER BY name) t, pragma_table_xinfo(t.name) c");
    };
    for (int schema = 1; schema <= schema_version; ++schema) {
        const fs::path path = folder / ("tune_" + std::to_string(schema) + ".db");
        ASSERT_TRUE(fs::exists(golden / path.filename())) << "keep a file of schema " << schema;
        fs::copy_file(golden / path.filename(), path);
        Database released = Database::open(path, Database::Access::read, patient);
        EXPECT_EQ(schema_rows(released), tune_schema_rows(schema)) << path << ": files of it are refused by an import";
        Store::open({.path = path});
        EXPECT_EQ(columns(path), columns(folder / "fresh.db")) << path;
        EXPECT_EQ(Store::open({.path = path, .mode = Store::Mode::read}).records({}, today()).size(), 2u) << path;
    }
}

/// The file that was kept of schema 1, with an import.
void put_schema_1(const fs::path& path) {
    fs::copy_file(fs::path{AUTOTUNE_SOURCE_DIR} / "tests/cache/golden/tune_1.db", path);
    Database::open(path, Database::Access::write, patient)
        .execute(
            "INSERT INTO import_log VALUES (1, '', 'aa', 1, 'import', 2, 2, '{}');"
            "UPDATE run SET origin = 'import:1' WHERE id = (SELECT min(run) FROM record)");
}

void expect_todays_schema(const fs::path& path) {
    Database database = Database::open(path, Database::Access::read, patient);
    EXPECT_EQ(database.integer_of("PRAGMA user_version"), schema_version);
    EXPECT_EQ(database.text_of("SELECT value FROM meta WHERE key = 'min_reader'"), std::to_string(min_reader));
    EXPECT_EQ(database.text_of("PRAGMA integrity_check"), "ok");
    EXPECT_EQ(database.text_of("SELECT count(*) FROM record"), "2");
    EXPECT_GT(database.integer_of("SELECT count(*) FROM record WHERE import = 1").value_or(0), 0);
    EXPECT_EQ(database.text_of("SELECT count(*) FROM device_beside"), "1");
}

void die_after_the_released_step(Database& database) {
    migrations().front().tune(database);
    database.execute(
        "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; CREATE TABLE filler(x); INSERT INTO filler WITH RECURSIVE c(i) "
        "AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 3000) SELECT zeroblob(1000) FROM c");
    ::kill(::getpid(), SIGKILL);
}

int in_another_process(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Goal: the step that was released loses nothing where its process is killed or the disk is full.
// Method: it dies with the step's pages in the file; files cannot grow beyond the copy and some pages, page by page.
TEST(Schemas, AKillAfterTheReleasedStepLosesNothing) {
    const Folder folder;
    const fs::path path = folder / "tune.db";
    put_schema_1(path);
    constexpr Migration deadly[] = {{.from = 1, .min_reader = 1, .tune = die_after_the_released_step}};
    EXPECT_EQ(in_another_process([&] { return migrate_file(path, false, patient, deadly), 0; }), 128 + SIGKILL);
    ASSERT_GT(fs::file_size(path.string() + "-journal"), 0u) << "nothing had reached the file";
    Store::open({.path = path});
    expect_todays_schema(path);
}

void die_after_the_second_step(Database& database) {
    migrations()[1].tune(database);
    database.execute(
        "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; CREATE TABLE filler(x); INSERT INTO filler WITH "
        "RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 3000) SELECT zeroblob(1000) "
        "FROM c");
    ::kill(::getpid(), SIGKILL);
}

TEST(Schemas, AKillAfterTheLastStepLosesNothing) {
    const Folder folder;
    const fs::path path = folder / "tune.db";
    put_schema_1(path);
    const Migration deadly[] = {migrations()[0], {.from = 2, .min_reader = 3, .tune = die_after_the_second_step}};
    EXPECT_EQ(in_another_process([&] { return migrate_file(path, false, patient, deadly), 0; }), 128 + SIGKILL);
    ASSERT_GT(fs::file_size(path.string() + "-journal"), 0u) << "nothing had reached the file";
    Store::open({.path = path});
    expect_todays_schema(path);
}

TEST(Schemas, AFullDiskAtTheReleasedStepLosesNothing) {
    const Folder folder;
    const fs::path path = folder / "tune.db";
    put_schema_1(path);
    const auto size = fs::file_size(path);
    int failed = 0;
    for (rlim_t most = size / 2; most < 3 * size; most += 4096) {
        const int result = in_another_process([&] {
            ::signal(SIGXFSZ, SIG_IGN);
            const rlimit limit{most, RLIM_INFINITY};
            ::setrlimit(RLIMIT_FSIZE, &limit);
            try {
                migrate_file(path, false, patient, migrations());
            } catch (const DatabaseFailure&) {
                return 1;
            }
            return 0;
        });
        if (result == 0) break;
        ASSERT_EQ(result, 1);
        ++failed;
        Database database = Database::open(path, Database::Access::write, patient);
        ASSERT_EQ(database.text_of("PRAGMA user_version"), "1") << most;
        ASSERT_EQ(database.text_of("PRAGMA integrity_check"), "ok") << most;
        ASSERT_EQ(database.text_of("SELECT count(*) FROM record"), "2") << most;
    }
    EXPECT_GT(failed, 2);
    Store::open({.path = path});
    expect_todays_schema(path);
}

// -- write-ahead-log mode

TEST(WriteAheadLog, IsUsedOnlyWhereTheLibraryIsFreeOfItsRace) {
    for (const int version : {3040001, 3051002, 3052000}) EXPECT_FALSE(write_ahead_log_is_safe(version)) << version;
    for (const int version : {3051003, 3052001, 3053000}) EXPECT_TRUE(write_ahead_log_is_safe(version)) << version;
    EXPECT_EQ(write_ahead_log_is_safe(), write_ahead_log_is_safe(sqlite3_libversion_number()));
}

TEST_F(MigrationTest, AWriterWithAnOlderLibraryEndsTheWriteAheadLogThatANewerOneLeft) {
    if (write_ahead_log_is_safe()) GTEST_SKIP() << "this library writes in that mode";
    for (const fs::path& file : {path_, trials_path(path_)}) execute(file, "PRAGMA journal_mode = WAL");
    ASSERT_TRUE(probe(path_).write_ahead_log);
    EXPECT_EQ(Store::open(options(Store::Mode::read)).records({}, today()).size(), 1u);
    EXPECT_TRUE(probe(path_).write_ahead_log) << "a reader changed it";
    Store store = Store::open(options());
    EXPECT_NE(store.state().find("in rollback mode"), std::string::npos) << store.state();
    EXPECT_FALSE(probe(path_).write_ahead_log);
    EXPECT_FALSE(probe(trials_path(path_)).write_ahead_log);
    search(store, start(2048), {{config(64), 9.0}});
    EXPECT_EQ(Store::open(options(Store::Mode::read)).records({}, today()).size(), 2u);
    EXPECT_TRUE(warnings_.empty());
}

TEST_F(MigrationTest, WhileANewerLibraryLogsAheadAnOlderOneSpools) {
    if (write_ahead_log_is_safe()) GTEST_SKIP() << "this library writes in that mode";
    Database other = Database::open(path_, Database::Access::write, patient);
    other.query("PRAGMA journal_mode = WAL").run();
    other.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'");
    Store::Options impatient = options();
    impatient.patience = std::chrono::milliseconds{50};
    Store store = Store::open(impatient);
    EXPECT_TRUE(probe(path_).write_ahead_log);
    search(store, start(2048), {{config(64), 9.0}});
    EXPECT_EQ(files_like(".jsonl"), 1u) << store.state();
    EXPECT_EQ(warnings_.size(), 1u);
    EXPECT_EQ(Store::open(options(Store::Mode::read)).records({}, today()).size(), 2u) << "the spool is not seen";
}

TEST_F(MigrationTest, AnOlderFileInThatModeIsMigratedOutsideIt) {
    if (write_ahead_log_is_safe()) GTEST_SKIP() << "this library writes in that mode";
    age();
    execute(path_, "PRAGMA journal_mode = WAL");
    EXPECT_TRUE(open().may_write);
    EXPECT_FALSE(probe(path_).write_ahead_log);
    expect_whole();
}

// Goal: media that cannot be written to hold a file in that mode: it is read.
// Method: as a user who owns nothing there, since root may write anywhere.
TEST_F(MigrationTest, OnReadOnlyMediaAFileInThatModeIsReadWhereItsLogIsFolded) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
    execute(path_, "PRAGMA journal_mode = WAL");
    execute(trials_path(path_), "PRAGMA journal_mode = WAL");
    ASSERT_EQ(files_like("-wal"), 0u);
    fs::permissions(folder_.path(), fs::perms{0755});
    fs::permissions(path_.parent_path(), fs::perms{0755});
    fs::permissions(path_, fs::perms{0644});
    fs::permissions(trials_path(path_), fs::perms{0644});
    const auto as_nobody = [&](Store::Mode mode) {
        return in_a_process([&] {
            if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
            Store store = Store::open(options(mode));
            if (store.records({}, today()).size() != 1) return 2;
            if (store.trials(store.runs().front().id).empty()) return 3;
            return warnings_.size() == (mode == Store::Mode::read ? 0u : 1u) ? 0 : 4;
        });
    };
    EXPECT_EQ(as_nobody(Store::Mode::read), 0);
    EXPECT_EQ(as_nobody(Store::Mode::write), 0);
    std::ofstream{path_.string() + "-wal"} << "frames that nobody has folded";
    fs::permissions(path_.string() + "-wal", fs::perms{0600});
    EXPECT_EQ(in_a_process([&] {
                  if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
                  try {
                      Store::open(options(Store::Mode::read, true));
                      return 2;
                  } catch (const Error& error) {
                      const std::string what = error.what();
                      return what.find("its last writes are still in 'tune.db-wal'") != std::string::npos ? 0 : 3;
                  }
              }),
              0);
}

}  // namespace
}  // namespace autotune
