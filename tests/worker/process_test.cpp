#include "tuner/worker/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "tuner/worker/frame.h"

namespace autotune {
namespace {

Process start(const std::string& task) {
    return Process::start(
        {.program = std::filesystem::path{AUTOTUNE_BINARY_DIR} / "bin/process_child", .arguments = {task}});
}

/// Whether a process is gone, waiting up to 10 s: a killed grandchild is reaped by init, not by us.
bool gone(pid_t pid) {
    for (int i = 0; i < 1000; ++i) {
        if (kill(pid, 0) != 0) return true;
        std::string state;
        if (FILE* file = std::fopen(fmt::format("/proc/{}/stat", pid).c_str(), "r")) {
            char buffer[256] = {};
            if (std::fgets(buffer, sizeof buffer, file)) state = buffer;
            std::fclose(file);
        }
        if (state.find(") Z") != std::string::npos) return true;
        usleep(10'000);
    }
    return false;
}

TEST(Process, SaysHowItEnded) {
    EXPECT_EQ(start("exit").stop(std::chrono::seconds{20}).text(), "exit code 3");
    const Exit crash = start("crash").stop(std::chrono::seconds{20});
    EXPECT_TRUE(crash.signalled);
    EXPECT_EQ(crash.code, SIGABRT);
}

TEST(Process, AHangingOneIsKilledAndGoneWhenStopReturns) {
    Process process = start("hang");
    const pid_t pid = process.pid();
    EXPECT_FALSE(process.ended());
    EXPECT_EQ(process.stop().code, SIGKILL);
    EXPECT_NE(kill(pid, 0), 0);
}

TEST(Process, TheWholeGroupIsKilled) {
    Process process = start("stubborn");
    FrameReader reader;
    const auto child = reader.wait(process.socket()).json()["child"].get<pid_t>();
    process.stop();
    EXPECT_TRUE(gone(child));
}

TEST(Process, EndsWhenItsSocketIsClosed) {
    Process process = start("hang");
    const pid_t pid = process.pid();
    {
        Process closing = std::move(process);
        shutdown(closing.socket(), SHUT_RDWR);
        EXPECT_FALSE(closing.stop(std::chrono::seconds{20}).signalled);
    }
    EXPECT_TRUE(gone(pid));
}

TEST(Process, KeepsTheLastWordsOfWhatItWrote) {
    Process process = start("shout");
    pollfd watched{.fd = process.output(), .events = POLLIN, .revents = 0};
    while (process.text().find("last words") == std::string::npos) {
        ASSERT_GT(poll(&watched, 1, 20'000), 0);
        process.drain();
    }
    EXPECT_LE(process.text().size(), 64u * 1024);
}

TEST(Process, CannotTakeMoreMemoryThanItsLimit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's shadow memory counts as data";
#endif
    Process process = start("memory");
    FrameReader reader;
    EXPECT_LT(reader.wait(process.socket()).json()["blocks"].get<int>(), 8);
}

TEST(Process, InheritsNoDescriptorOfOurs) {
    const int ours = open("/proc/self/exe", O_RDONLY);  // not close-on-exec, as a library's database may be
    Process process = start("descriptors");
    FrameReader reader;
    EXPECT_EQ(reader.wait(process.socket()).json()["seekable"].get<std::vector<int>>(), std::vector<int>{0});
    close(ours);
}

TEST(Process, AProgramThatIsNotThereIsAnError) {
    EXPECT_THROW(Process::start({.program = "/nowhere/autotune-worker", .arguments = {}}), Error);
}

TEST(FindWorker, TheEnvironmentNamesIt) {
    setenv("AUTOTUNE_WORKER", "/bin/true", 1);
    EXPECT_EQ(find_worker({}), "/bin/true");
    setenv("AUTOTUNE_WORKER", "/nowhere/worker", 1);
    EXPECT_THROW(find_worker({}), Error);
    unsetenv("AUTOTUNE_WORKER");
    EXPECT_EQ(find_worker("/bin/true"), "/bin/true");
}

// Goal: what keeps a named worker from being run is bad use, and is told with the path and what to do.
TEST(FindWorker, OneThatCannotBeRunIsNamedWithItsTroubleAndARemedy) {
    const std::filesystem::path plain = std::filesystem::temp_directory_path() / "autotune-plain-worker";
    { std::ofstream{plain} << "no program"; }
    for (const auto& [named, why] : {std::pair<std::string, std::string>{"/nowhere/worker", "is not there"},
                                     {"/tmp", "is no file"},
                                     {plain.string(), "may not be run"}}) {
        setenv("AUTOTUNE_WORKER", named.c_str(), 1);
        try {
            find_worker({});
            ADD_FAILURE() << named;
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), Error::Kind::usage);
            EXPECT_NE(std::string{error.what()}.find("'" + named + "', which " + why), std::string::npos)
                << error.what();
            EXPECT_FALSE(error.help().empty());
        }
        unsetenv("AUTOTUNE_WORKER");
    }
    std::filesystem::permissions(plain, std::filesystem::perms::owner_all);
    try {
        Process::start({.program = plain, .arguments = {}});
        ADD_FAILURE() << "a text was started";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::device) << error.what();
    }
    std::filesystem::remove(plain);
}

}  // namespace
}  // namespace autotune
