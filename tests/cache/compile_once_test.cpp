#include "cache/dispatch/compile_once.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "cache/store/key_lock.h"
#include "tests/cache/samples.h"

namespace autotune {
namespace {

using std::chrono::milliseconds;

const std::string key = std::string(64, 'a') + "-13.0";

Binary compiled_now() {
    std::this_thread::sleep_for(milliseconds{50});
    Binary binary{.key = key, .artefact = {}, .source = "scale.cu", .nvrtc_major = 13};
    binary.artefact.cubin.assign(1000, std::byte{7});
    return binary;
}

// Goal: processes that want the same binary at the same moment compile it once.
// Method: each child writes a byte into a pipe when it compiles; none waits for another to start.
TEST(CompileOnce, OneOfManyProcessesCompiles) {
    samples::Folder folder;
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            BinaryStore store{folder / "binaries"};
            const Binary got = compile_once(key, &store, [&] {
                [[maybe_unused]] const auto wrote = ::write(ends[1], "c", 1);
                return compiled_now();
            });
            ::_exit(got.artefact.cubin == std::vector<std::byte>(1000, std::byte{7}) ? 0 : 1);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    ::close(ends[1]);
    char compiles[8];
    EXPECT_EQ(::read(ends[0], compiles, sizeof compiles), 1);
    ::close(ends[0]);
}

TEST(CompileOnce, OneOfManyThreadsCompilesAlsoWithoutAFolder) {
    std::atomic<int> compiles{0}, begun{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            ++begun;
            const Binary got = compile_once(key, nullptr, [&] {
                ++compiles;
                while (begun < 4) std::this_thread::yield();
                return compiled_now();
            });
            EXPECT_EQ(got.artefact.cubin.size(), 1000u);
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(compiles, 1);
}

TEST(CompileOnce, WhoHasWaitedLongEnoughCompilesACopy) {
    samples::Folder folder;
    BinaryStore store{folder.path()};
    const KeyLock stuck{folder.path(), key, milliseconds{0}};
    ASSERT_EQ(stuck.got(), KeyLock::Got::held);
    int compiles = 0;
    const auto compile = [&] {
        ++compiles;
        return compiled_now();
    };
    EXPECT_EQ(compile_once(key, &store, compile, milliseconds{20}).key, key);
    EXPECT_EQ(compiles, 1);
    EXPECT_TRUE(store.get(key));
}

TEST(CompileOnce, WhatFailsForOneIsTriedByTheNext) {
    EXPECT_THROW(compile_once(key, nullptr, []() -> Binary { throw std::runtime_error{"no memory"}; }),
                 std::runtime_error);
    EXPECT_EQ(compile_once(key, nullptr, compiled_now).key, key);
}

TEST(CompileOnce, AFolderThatTakesNothingIsNoObstacle) {
    BinaryStore store{"/proc/none"};
    EXPECT_EQ(compile_once(key, &store, compiled_now).key, key);
}

}  // namespace
}  // namespace autotune
