// Goal: writers never meet, whatever becomes of those who wait and of the queue's file.
#include "cache/store/writer_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/cache/samples.h"

namespace autotune {
namespace {

using namespace samples;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(WriterLock, OneAtATimeAndAllOfThem) {
    const Folder folder;
    int inside = 0, turns = 0;  // unguarded: the lock is what keeps the threads apart
    std::atomic<int> meetings{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            WriterLock lock{folder / "tune.db"};
            for (int i = 0; i < 50; ++i) {
                const WriterTurn turn{lock, seconds{60}};
                if (!turn.held() || ++inside != 1) ++meetings;
                ++turns;
                --inside;
            }
        });
    threads.clear();
    EXPECT_EQ(meetings, 0);
    EXPECT_EQ(turns, 200);
}

TEST(WriterLock, TheWaitEndsWithItsPatienceAndTheHolderIsNamed) {
    const Folder folder;
    WriterLock holder{folder / "tune.db"}, other{folder / "tune.db"};
    const WriterTurn held{holder, milliseconds{100}};
    ASSERT_TRUE(held.held());
    EXPECT_FALSE((WriterTurn{other, milliseconds{50}}.held()));
    EXPECT_EQ(other.holder(), "process " + std::to_string(::getpid()) + " on this host");
}

// Method: a child that waits in the queue is stopped there, as by Ctrl-Z, and never goes on.
TEST(WriterLock, AStoppedWaiterHoldsUpNobody) {
    const Folder folder;
    WriterLock first{folder / "tune.db"};
    ASSERT_TRUE(first.acquire(seconds{1}));
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        WriterLock waiting{folder / "tune.db"};
        ::_exit(waiting.acquire(seconds{60}) ? 0 : 1);
    }
    std::this_thread::sleep_for(milliseconds{100});
    ::kill(child, SIGSTOP);
    first.release();
    WriterLock last{folder / "tune.db"};
    EXPECT_TRUE(last.acquire(seconds{10}));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
}

TEST(WriterLock, WhatTheQueueSaysMayBeAnything) {
    for (const std::string& bytes :
         {std::string(8, '\xff'), std::string(8, '\x7f'), std::string("abc"), std::string(64, '\0')}) {
        const Folder folder;
        std::ofstream{folder / "tune.db-queue"} << bytes;
        for (int i = 0; i < 3; ++i) {
            WriterLock lock{folder / "tune.db"};
            EXPECT_TRUE((WriterTurn{lock, seconds{1}}.held()));
        }
    }
}

// Method: the queue's file says which was the last number that somebody drew.
TEST(WriterLock, AWriterDrawsOneNumberATurn) {
    const Folder folder;
    WriterLock lock{folder / "tune.db"};
    const auto write = [&] { return WriterTurn{lock, seconds{1}}.held(); };
    const auto last_drawn = [&] {
        std::int64_t number = 0;
        std::ifstream{folder / "tune.db-queue"}.read(reinterpret_cast<char*>(&number), sizeof number);
        return number;
    };
    ASSERT_TRUE(write());
    EXPECT_EQ(last_drawn(), 1);
    std::int64_t writes = 0;
    for (const auto began = WriterLock::Clock::now(); WriterLock::Clock::now() < began + milliseconds{50}; ++writes)
        ASSERT_TRUE(write());
    EXPECT_GT(last_drawn(), 1) << "one turn went on for ever";
    EXPECT_LT(last_drawn(), writes);
}

// Method: writers that never pause.
TEST(WriterLock, NobodyIsLeftWaiting) {
    const Folder folder;
    std::atomic<int> had_turns{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&](const std::stop_token& stopped) {
            WriterLock lock{folder / "tune.db"};
            if (WriterTurn{lock, seconds{60}}.held()) ++had_turns;
            while (!stopped.stop_requested()) const WriterTurn turn{lock, seconds{60}};
        });
    for (int waited = 0; had_turns < 4 && waited < 6000; ++waited) std::this_thread::sleep_for(milliseconds{10});
    EXPECT_EQ(had_turns, 4);
}

}  // namespace
}  // namespace autotune
