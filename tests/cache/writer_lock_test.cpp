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
        WriterLock lock{folder / "tune.db"};
        for (int i = 0; i < 3; ++i) EXPECT_TRUE((WriterTurn{lock, seconds{1}}.held()));
    }
}

}  // namespace
}  // namespace autotune
