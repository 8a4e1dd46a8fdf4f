// Goal: a commit waits for no sync of the folder, unless the journal's name may not be on the disk.
// Method: SQLite's own VFS tells which folders it opens, which it does to sync them; whatever else syncs a folder in
// this program calls the fsync of this file.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cache/store/database.h"
#include "tests/cache/samples.h"

namespace {
int fsyncs_of_folders = 0;
}

extern "C" [[gnu::visibility("default")]] int fsync(int file) {
    struct stat status {};
    if (::fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) ++fsyncs_of_folders;
    return static_cast<int>(::syscall(SYS_fsync, file));
}

namespace autotune {
namespace {

using namespace samples;
using OpenFolder = int (*)(const char* file, int* folder);

OpenFolder own_call = nullptr;
int folders_synced = 0;

int counted(const char* file, int* folder) {
    ++folders_synced;
    return own_call(file, folder);
}

class WritersVfs : public testing::Test {
protected:
    void SetUp() override {
        sqlite3_vfs* vfs = sqlite3_vfs_find("unix");
        ASSERT_NE(vfs, nullptr);
        own_call = reinterpret_cast<OpenFolder>(vfs->xGetSystemCall(vfs, "openDirectory"));
        vfs->xSetSystemCall(vfs, "openDirectory", reinterpret_cast<sqlite3_syscall_ptr>(counted));
        {
            Database file = open();
            file.execute("CREATE TABLE t (n)");
        }
        folders_synced = 0;
    }
    void TearDown() override {
        sqlite3_vfs* vfs = sqlite3_vfs_find("unix");
        vfs->xSetSystemCall(vfs, "openDirectory", nullptr);
    }

    Database open() {
        { std::ofstream{path_, std::ios::app}; }
        Database file = Database::open(path_, Database::Access::write, std::chrono::milliseconds{0});
        file.execute("PRAGMA journal_mode = TRUNCATE");
        return file;
    }
    std::filesystem::path journal() const { return path_.string() + "-journal"; }

    const Folder folder_;
    const std::filesystem::path path_ = folder_ / "tune.db";
};

TEST_F(WritersVfs, CommitsWaitForNoSyncOfTheFolder) {
    Database file = open();
    for (int i = 0; i < 10; ++i) file.execute("INSERT INTO t VALUES (1)");
    EXPECT_EQ(folders_synced, 0);
    EXPECT_TRUE(std::filesystem::exists(journal()));
}

TEST_F(WritersVfs, AJournalThatIsMadeAnewHasItsNameSynced) {
    Database file = open();
    file.execute("INSERT INTO t VALUES (1)");
    std::filesystem::remove(journal());
    file.execute("INSERT INTO t VALUES (2)");
    EXPECT_EQ(folders_synced, 1);
    file.execute("INSERT INTO t VALUES (3)");
    EXPECT_EQ(folders_synced, 1);
    EXPECT_EQ(file.integer_of("SELECT count(*) FROM t"), 3);
}

// What another program does that removes its journals.
TEST_F(WritersVfs, AnotherJournalOfTheNameIsSyncedOnce) {
    Database file = open();
    file.execute("INSERT INTO t VALUES (1)");
    const std::filesystem::path elsewhere = folder_ / "kept";
    std::filesystem::rename(journal(), elsewhere);
    { std::ofstream{journal()}; }
    fsyncs_of_folders = 0;
    file.execute("INSERT INTO t VALUES (2)");
    EXPECT_EQ(fsyncs_of_folders, 1);
    file.execute("INSERT INTO t VALUES (3)");
    EXPECT_EQ(fsyncs_of_folders, 1);
    EXPECT_EQ(folders_synced, 0) << "the folder is synced before SQLite opens the journal, and once";
    EXPECT_EQ(file.integer_of("SELECT count(*) FROM t"), 3);
    EXPECT_EQ(std::filesystem::file_size(elsewhere), 0u) << "the journal of that name is the one that is written";
}

std::size_t descriptors() {
    const std::filesystem::directory_iterator open{"/proc/self/fd"};
    return static_cast<std::size_t>(std::distance(begin(open), end(open)));
}

TEST_F(WritersVfs, NoFileStaysOpenAfterAStoreIsClosed) {
    Store::open({.path = folder_ / "first" / "tune.db"}).put(std::vector{record(1, 50.0)});
    const std::size_t before = descriptors();
    for (int i = 0; i < 40; ++i) {
        const std::filesystem::path path = folder_ / std::to_string(i) / "tune.db";
        {
            Store store = Store::open({.path = path});
            search(store, start(1), {{config(256, 4), 50.0}});  // writes to both files
            Store second = Store::open({.path = path});
            second.put(std::vector{record(2, 50.0)});
        }
        Store::open({.path = path, .mode = Store::Mode::read}).records({}, today());
    }
    for (int i = 0; i < 1000; ++i) {
        Store memory = Store::in_memory();
        if (i % 100 == 0) memory.put(std::vector{record(1, 50.0)});
    }
    EXPECT_EQ(descriptors(), before);
}

TEST_F(WritersVfs, AConnectionWritesOnAfterAnotherOfItsFileWasClosed) {
    Database file = open();
    file.execute("INSERT INTO t VALUES (1)");
    { open().execute("INSERT INTO t VALUES (2)"); }
    file.execute("INSERT INTO t VALUES (3)");
    EXPECT_EQ(file.integer_of("SELECT count(*) FROM t"), 3);
    EXPECT_EQ(file.text_of("PRAGMA integrity_check"), "ok");
}

TEST_F(WritersVfs, TransactionsRollBackAndHotJournalsAreRolledIn) {
    Database file = open();
    file.execute("INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2); ROLLBACK");
    EXPECT_EQ(file.integer_of("SELECT count(*) FROM t"), 1);
    // A copy of the files in the middle of a transaction that has reached the file is what a killed writer leaves.
    file.execute("PRAGMA cache_size = 1; BEGIN; UPDATE t SET n = 9; CREATE TABLE u (n)");
    for (int i = 0; i < 40; ++i) file.execute("INSERT INTO u VALUES (zeroblob(3000))");
    const Folder other;
    std::filesystem::copy_file(path_, other / "tune.db");
    std::filesystem::copy_file(journal(), other / "tune.db-journal");
    file.execute("ROLLBACK");
    ASSERT_GT(std::filesystem::file_size(other / "tune.db-journal"), 0u);
    Database left = Database::open(other / "tune.db", Database::Access::write, std::chrono::milliseconds{0});
    EXPECT_EQ(left.integer_of("SELECT n FROM t"), 1);
    EXPECT_EQ(left.text_of("PRAGMA integrity_check"), "ok");
}

}  // namespace
}  // namespace autotune
