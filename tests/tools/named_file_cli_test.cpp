// Goal: a result goes where the user says and harms nothing that stands there: no database, link, pipe or device.
// Method: the programs, on files, links and pipes of a folder of the test's own.
#include <sys/stat.h>

#include <array>

#include "tests/tools/command_line.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

class NamedFileCommandLine : public CommandLine {
protected:
    void SetUp() override {
        CommandLine::SetUp();
        const Answer r = scripted("tune softmax rows=64,cols=4096,dtype=f32 --budget 12 --db s.db");
        ASSERT_EQ(r.code, 0) << r.err;
    }
    static constexpr std::array<const char*, 6> writers{"db export --as lines", "db export --as csv",
                                                        "db export --as cpp",   "db export --as db",
                                                        "db bundle softmax",    "query softmax --as json"};
};

TEST_F(NamedFileCommandLine, NoResultGoesOverTheDatabaseInUseOrWhatBelongsToIt) {
    const std::string before = read(folder / "s.db"), trials = read(folder / "s.trials.db");
    fs::create_symlink("s.db", folder / "link.db");
    fs::create_hard_link(folder / "s.db", folder / "hard.db");
    fs::create_directory(folder / "spool");
    fs::create_directory(folder / "binaries");
    fs::create_directory(folder / "trusted_keys");
    for (const std::string command : writers)
        for (const std::string name : {"s.db", "./s.db", "link.db", "hard.db", "s.trials.db", "s.db-lock", "s.db-queue",
                                       "s.db-journal", "s.db-fold", "s.db-wal", "s.db-shm", "s.trials.db-journal",
                                       "s.misses.jsonl", "spool/x.jsonl", "binaries/x", "trusted_keys/x.pub"}) {
            const bool was = fs::exists(folder / name);
            const Answer r = run(command + " --db s.db -o " + name);
            EXPECT_EQ(r.code, 1) << command << " " << name << r.err;
            EXPECT_NE(r.err.find("'" + name + "' belongs to the database"), std::string::npos) << name << r.err;
            EXPECT_EQ(fs::exists(folder / name), was) << command << " " << name;
        }
    EXPECT_EQ(read(folder / "s.db"), before);
    EXPECT_EQ(read(folder / "s.trials.db"), trials);
}

TEST_F(NamedFileCommandLine, NoResultGoesOverAnotherDatabase) {
    fs::copy_file(folder / "s.db", folder / "other.db");
    const Answer r = run("query softmax --db s.db --as json -o other.db");
    EXPECT_EQ(r.code, 1);
    EXPECT_NE(r.err.find("'other.db' is a database"), std::string::npos) << r.err;
    EXPECT_EQ(read(folder / "other.db"), read(folder / "s.db"));
}

TEST_F(NamedFileCommandLine, ALinkStaysAndItsTargetIsReplacedWithItsMode) {
    fs::create_directory(folder / "there");
    for (const std::string command : writers) {
        if (command.ends_with("as db")) continue;  // makes new files only
        write("there/target", "before");
        ASSERT_EQ(chmod((folder / "there/target").c_str(), 0640), 0);
        fs::remove(folder / "link");
        fs::create_symlink("there/target", folder / "link");
        fs::remove(folder / "dangling");
        fs::remove(folder / "there/new");
        fs::create_symlink("there/new", folder / "dangling");
        for (const std::string name : {"link", "dangling"}) {
            const Answer r = run(command + " --db s.db -o " + name);
            EXPECT_EQ(r.code, 0) << command << r.err;
            EXPECT_TRUE(fs::is_symlink(folder / name)) << command;
        }
        EXPECT_NE(read(folder / "there/target"), "before") << command;
        EXPECT_FALSE(read(folder / "there/new").empty()) << command;
        struct stat status {};
        ASSERT_EQ(stat((folder / "there/target").c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777U, 0640U) << command;
    }
}

TEST_F(NamedFileCommandLine, APipeTakesAResultAndStaysAPipe) {
    ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
    for (const std::string command : writers) {
        if (command.ends_with("as db")) continue;
        const Answer r = shell("cat pipe >took & '" AUTOTUNE_BINARY_DIR "/bin/autotune' " + command +
                               " --db s.db -o pipe; code=$?; wait; exit $code");
        EXPECT_EQ(r.code, 0) << command << r.err;
        EXPECT_FALSE(read(folder / "took").empty()) << command;
        EXPECT_TRUE(fs::is_fifo(folder / "pipe")) << command;
    }
}

TEST_F(NamedFileCommandLine, StdoutByItsNameIsWrittenToAndNotReplaced) {
    const std::string expected = run("db export --db s.db").out;
    for (const std::string name : {"/dev/stdout", "/dev/fd/1"}) {
        const Answer r = shell("echo before >kept; '" AUTOTUNE_BINARY_DIR "/bin/autotune' db export --db s.db -o " +
                               name + " >>kept");
        EXPECT_EQ(r.code, 0) << r.err;
        EXPECT_EQ(read(folder / "kept"), "before\n" + expected) << name;
    }
    EXPECT_EQ(shell("'" AUTOTUNE_BINARY_DIR "/bin/autotune' db export --db s.db -o /dev/stdout | cat").out, expected);
}

TEST_F(NamedFileCommandLine, WhatCannotBeWrittenIsSaidWithItsCause) {
    fs::create_directory(folder / "folder");
    for (const std::string command : writers) {
        if (command.ends_with("as db")) continue;
        const Answer over = run(command + " --db s.db -o folder");
        EXPECT_EQ(over.code, 1) << command;
        EXPECT_NE(over.err.find("'folder' is a folder"), std::string::npos) << over.err;
        const Answer nowhere = run(command + " --db s.db -o no/where");
        EXPECT_EQ(nowhere.code, 1) << command;
        EXPECT_NE(nowhere.err.find("'no/where' could not be written: No such file or directory\nhelp: "),
                  std::string::npos)
            << nowhere.err;
    }
}

TEST_F(NamedFileCommandLine, AnInterruptEndsTheWaitForAPipesOtherEnd) {
    ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
    for (const std::string command :
         {"query softmax --db s.db --as json -o pipe", "db export --db s.db -o pipe", "space --problems pipe"}) {
        const Answer r = shell(
            "timeout --foreground -k 20 -s TERM --preserve-status 1 '" AUTOTUNE_BINARY_DIR "/bin/autotune' " + command);
        EXPECT_EQ(r.code, 143) << command << r.err;
        EXPECT_NE(r.err.find("interrupted while 'pipe' was waited for"), std::string::npos) << command << r.err;
        EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
    }
}

TEST_F(NamedFileCommandLine, ANameWithALineEndForgesNoLine) {
    write("a\nerror: forged.jsonl", "no record\n");
    const Answer r = run("db import 'a\nerror: forged.jsonl' --db t.db || true; '" AUTOTUNE_BINARY_DIR
                         "/bin/autotune' query softmax --db s.db --as json -o 'no\nerror: forged/x'");
    EXPECT_EQ(r.err.find("\nerror: forged"), std::string::npos) << r.err;
    EXPECT_EQ(r.out.find("\nerror: forged"), std::string::npos) << r.out;
}

TEST_F(NamedFileCommandLine, APruneOfWhatCannotBeWrittenRemovesNothingAndSaysSo) {
    // Root may write anywhere, so another user runs it then.
    const std::string user = geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups '" AUTOTUNE_BINARY_DIR
                                              "/bin/autotune' "
                                            : "'" AUTOTUNE_BINARY_DIR "/bin/autotune' ";
    for (const char* name : {"s.db", "s.trials.db"}) ASSERT_EQ(chmod((folder / name).c_str(), 0444), 0);
    ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
    const Answer r = shell(user + "db prune --trials --db s.db");
    EXPECT_EQ(r.code, 5) << r.out << r.err;
    EXPECT_NE(r.err.find("error: s.db is not writable, so nothing was removed"), std::string::npos) << r.err;
    EXPECT_EQ(r.out.find("removed "), std::string::npos) << r.out;
}

// Goal: a place that takes no database is named with what is in the way, and the help is one that helps.
TEST_F(NamedFileCommandLine, WhatKeepsADatabaseFromBeingMadeIsNamed) {
    struct Case {
        std::string words, error, help;
    };
    fs::create_symlink("/nowhere/x.db", folder / "nothing.db");
    fs::create_symlink("nowhere", folder / "nothing");
    const std::string long_name(250, 'a');
    const Case cases[] = {
        {"db merge s.db --into s.db/x.db", "the database 's.db/x.db' cannot be made: 's.db' is no folder",
         "name another place with --db"},
        {"db merge s.db --into s.db/deep/x.db", "cannot be made: 's.db' is no folder", "name another place with --db"},
        {"db merge s.db --into " + long_name + ".db", ".db' cannot be made: File name too long",
         "name another place with --db"},
        {"db check --db nothing.db", "'nothing.db' is a link to '/nowhere/x.db', where nothing is",
         "name one with --db"},
        {"db salvage s.db s.db/x.db", "cannot be made: 's.db' is no folder", "name another place\n"},
        {"db merge s.db --into nothing/x.db", "cannot be made: 'nothing' is a link to 'nowhere', where nothing is",
         "name another place with --db"},
        {"db salvage none.db new.db", "there is no 'none.db'", "name a broken database"},
    };
    for (const Case& each : cases) {
        const Answer r = run(each.words);
        EXPECT_EQ(r.code, 1) << each.words;
        EXPECT_NE(r.err.find(each.error), std::string::npos) << each.words << '\n' << r.err;
        EXPECT_NE(r.err.find("help: " + each.help), std::string::npos) << each.words << '\n' << r.err;
        EXPECT_EQ(r.err.find("''"), std::string::npos) << r.err;
    }
}

TEST_F(NamedFileCommandLine, OfFoldersThatCannotBeMadeTheOneThatIsThereIsNamed) {
    const std::string user = geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups '" AUTOTUNE_BINARY_DIR
                                              "/bin/autotune' "
                                            : "'" AUTOTUNE_BINARY_DIR "/bin/autotune' ";
    for (const char* name : {"s.db", "s.trials.db"}) ASSERT_EQ(chmod((folder / name).c_str(), 0444), 0);
    ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
    const Answer r = shell(user + "db merge s.db --into deep/er/x.db");
    ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
    EXPECT_EQ(r.code, 1) << r.err;
    EXPECT_NE(r.err.find("the database 'deep/er/x.db' cannot be made: '.' is not writable\n"), std::string::npos)
        << r.err;
}

TEST_F(NamedFileCommandLine, WhatCannotBeChangedIsToldWithoutTheWordsOfASearch) {
    const std::string user = geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups '" AUTOTUNE_BINARY_DIR
                                              "/bin/autotune' "
                                            : "'" AUTOTUNE_BINARY_DIR "/bin/autotune' ";
    ASSERT_EQ(run("db export --db s.db -o s.jsonl").code, 0);
    for (const char* name : {"s.db", "s.trials.db", "s.jsonl"}) ASSERT_EQ(chmod((folder / name).c_str(), 0444), 0);
    ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
    for (const std::string words :
         {"db import s.jsonl --db s.db", "db revert-import 1 --db s.db", "db compact --db s.db"}) {
        const Answer r = shell(user + words);
        EXPECT_EQ(r.code, 5) << words << r.err;
        EXPECT_NE(r.err.find("ed: s.db is not writable\nhelp: name a database that you may write to with --db"),
                  std::string::npos)
            << words << '\n'
            << r.err;
    }
}

TEST_F(NamedFileCommandLine, AHelpCanBePastedWhateverAFileIsCalled) {
    fs::rename(folder / "s.db", folder / "it's; mine.db");
    ASSERT_EQ(shell("printf x | dd of=\"it's; mine.db\" bs=1 seek=60000 conv=notrunc 2>/dev/null").code, 0);
    ASSERT_EQ(shell("truncate -s -4096 \"it's; mine.db\"").code, 0);
    const Answer r = run("db check \"it's; mine.db\"");
    EXPECT_EQ(r.code, 4) << r.err;
    EXPECT_NE(r.err.find("help: autotune db salvage 'it'\\''s; mine.db' NEW.db copies"), std::string::npos) << r.err;
}

TEST_F(NamedFileCommandLine, ProblemsMayComeThroughAPipe) {
    const Answer r = shell("echo softmax rows=64,cols=4096 | '" AUTOTUNE_BINARY_DIR
                           "/bin/autotune' space --gpu sm_80 --problems /dev/stdin");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("softmax"), std::string::npos) << r.out;
    ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
    const Answer named = shell("(sleep 0.2; echo softmax rows=64,cols=4096 >pipe) & '" AUTOTUNE_BINARY_DIR
                               "/bin/autotune' space --gpu sm_80 --problems pipe");
    EXPECT_EQ(named.code, 0) << named.err;
    const auto counts = [](const std::string& out) { return out.substr(0, out.find("built in")); };
    EXPECT_EQ(counts(named.out), counts(r.out));
}

}  // namespace
}  // namespace autotune
