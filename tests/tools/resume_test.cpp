// Goal: a search that is killed loses nothing that was committed, and the next one resumes.
// Method: searches on a made-up GPU run as processes of their own, are killed at random moments (seed below) and after
// the n-th commit, and the database is read after each.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "cache/store/store.h"

extern char** environ;

namespace autotune {
namespace {

namespace fs = std::filesystem;

class Resume : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "autotune-resume-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder = pattern;
        db = folder / "tune.db";
    }
    void TearDown() override { fs::remove_all(folder); }

    pid_t start(const std::string& pause_ms, const std::vector<std::string>& more = {},
                const std::string& kill_after = {}) const {
        std::vector<std::string> words{AUTOTUNE_BINARY_DIR "/bin/scripted_autotune",
                                       pause_ms,
                                       "tune",
                                       "softmax",
                                       "rows=4096,cols=4096,dtype=bf16",
                                       "--db",
                                       db.string(),
                                       "--strategy",
                                       "random",
                                       "--budget",
                                       "60",
                                       "--progress",
                                       "none",
                                       "-q",
                                       "--json"};
        words.insert(words.end(), more.begin(), more.end());
        std::vector<char*> pointers;
        for (std::string& word : words) pointers.push_back(word.data());
        pointers.push_back(nullptr);
        std::vector<std::string> variables;
        for (char** v = environ; *v; ++v) variables.emplace_back(*v);
        if (!kill_after.empty()) variables.push_back("AUTOTUNE_TEST_KILL_AFTER=" + kill_after);
        std::vector<char*> environment;
        for (std::string& v : variables) environment.push_back(v.data());
        environment.push_back(nullptr);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 1, (folder / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        pid_t pid = -1;
        EXPECT_EQ(posix_spawn(&pid, pointers[0], &actions, nullptr, pointers.data(), environment.data()), 0);
        posix_spawn_file_actions_destroy(&actions);
        return pid;
    }

    static int wait_for(pid_t pid) {
        int status = 0;
        waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

    /// Configs that the database knows the outcome of, over all runs.
    std::set<std::string> known() const {
        const Store store = Store::open({.path = db, .mode = Store::Mode::read});
        EXPECT_TRUE(store.check().empty()) << store.check().front();
        std::set<std::string> configs;
        for (const StoredRun& run : store.runs("softmax"))
            for (const StoredTrial& trial : store.trials(run.id)) configs.insert(trial.config.text());
        return configs;
    }

    std::string out() const {
        std::ifstream stream{folder / "out"};
        return {std::istreambuf_iterator<char>{stream}, {}};
    }

    fs::path folder, db;
};

/// Trials whose lines were printed: their commits came first.
std::set<std::string> printed_trials(const std::string& out) {
    std::set<std::string> configs;
    const std::string mark = R"("text":")";
    for (std::size_t at = 0; at < out.size();) {
        const std::size_t end = std::min(out.find('\n', at), out.size());
        const std::string line = out.substr(at, end - at);
        at = end + 1;
        if (line.find(R"("event":"trial")") == std::string::npos || line.back() != '}') continue;
        const std::size_t begin = line.find(mark) + mark.size();
        configs.insert(line.substr(begin, line.find('"', begin) - begin));
    }
    return configs;
}

TEST_F(Resume, KilledAtRandomMomentsNothingPrintedIsLost) {
    std::mt19937 random{20241127};
    std::set<std::string> must_hold;
    for (int round = 0; round < 12; ++round) {
        const pid_t pid = start("3");
        std::this_thread::sleep_for(std::chrono::milliseconds{20 + random() % 250});
        kill(pid, SIGKILL);
        wait_for(pid);
        must_hold.merge(printed_trials(out()));
        const std::set<std::string> held = known();
        for (const std::string& config : must_hold)
            EXPECT_TRUE(held.contains(config)) << "round " << round << ": " << config;
    }
    EXPECT_EQ(wait_for(start("0")), 0);
    EXPECT_NE(out().find(R"("event":"summary")"), std::string::npos);
}

TEST_F(Resume, KilledAfterTheNthCommitExactlySoManyAreHeldAndTheNextRunTriesTheRest) {
    EXPECT_EQ(wait_for(start("0", {}, "5")), 128 + SIGKILL);
    EXPECT_EQ(known().size(), 5u);
    for (int round = 2; round <= 8; ++round) {
        EXPECT_EQ(wait_for(start("0", {}, "5")), 128 + SIGKILL);
        EXPECT_EQ(known().size(), 5u * static_cast<std::size_t>(round)) << "a resumed run tried again what was known";
    }
    EXPECT_EQ(wait_for(start("0")), 0);
    EXPECT_NE(out().find(R"("resumed":40)"), std::string::npos);
}

TEST_F(Resume, FreshTriesAllAgain) {
    EXPECT_EQ(wait_for(start("0")), 0);
    EXPECT_EQ(wait_for(start("0", {"--fresh"})), 0);
    EXPECT_NE(out().find(R"("resumed":0)"), std::string::npos);
}

TEST_F(Resume, AnInterruptedSearchStoresWhatItFoundAndSaysSo) {
    const pid_t pid = start("20");
    while (printed_trials(out()).size() < 3) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    kill(pid, SIGINT);
    EXPECT_EQ(wait_for(pid), 130);
    EXPECT_NE(out().find(R"("interrupted":true)"), std::string::npos);
    const Store store = Store::open({.path = db, .mode = Store::Mode::read});
    EXPECT_FALSE(store.records({.op = "softmax"}, {}).empty());
}

}  // namespace
}  // namespace autotune
