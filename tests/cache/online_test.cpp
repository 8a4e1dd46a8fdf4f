// Goal: an op is tuned by the calls of its application, which get what they asked for, soon, and lose next to nothing.
// Method: a driver with a clock that launches move on and memory that holds one number a tensor; the thread sanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "autotune/dispatcher.h"
#include "autotune/error.h"
#include "device/identity.h"
#include "tests/cache/dispatch_samples.h"

namespace autotune {
namespace {

using namespace samples;
using namespace std::chrono_literals;

class Online : public testing::Test, protected DispatchSetting {
protected:
    void SetUp() override {
        for (const Config& config : {vector_config(4), naive_config(), vector_config(8, 128), vector_config(2, 64)})
            put_binary(config, 1024);
        // What won other problems here. The first may run where nothing is decided, as may the default: they are alike.
        tuned(4096, {{vector_config(8, 128), 40.0}});
        tuned(8192, {{vector_config(8, 128), 40.0}});
        tuned(16384, {{vector_config(2, 64), 40.0}});
        times_ = {{vector_config(4).text(), 100.0},
                  {vector_config(8, 128).text(), 100.0},
                  {vector_config(2, 64).text(), 60.0},
                  {naive_config().text(), 80.0}};
        driver.time_us = [this](const std::string& binary) { return times_.at(binary); };
    }
    Dispatcher::Options online(double share = 0.5) {
        Dispatcher::Options o = options();
        o.log = [this](const std::string& sentence) {
            const std::lock_guard lock{said_mutex_};
            said_.push_back(sentence);
        };
        o.online = {"scale"};
        o.online_share = share;
        return o;
    }
    bool was_said(std::string_view part) {
        const std::lock_guard lock{said_mutex_};
        return std::ranges::any_of(said_, [&](const std::string& s) { return s.find(part) != std::string::npos; });
    }
    /// Calls until the config runs as decided; the number of calls, 0 when it never does.
    int calls_until(Dispatcher& dispatcher, const Handle& handle, const Config& config, int most = 3000) {
        for (int i = 1; i <= most; ++i) {
            const Decision decision = launch(dispatcher, handle, 1024, stream);
            EXPECT_TRUE(decision.launched) << decision.why;
            if (decision.config == config.text() && decision.why != "a trial of online tuning") return i;
            std::this_thread::sleep_for(200us);
        }
        return 0;
    }
    /// As many calls as give the tuner's thread every chance.
    void many_calls(Dispatcher& dispatcher, const Handle& handle, int count = 600) {
        for (int i = 0; i < count; ++i) {
            EXPECT_TRUE(launch(dispatcher, handle, 1024, stream).launched);
            std::this_thread::sleep_for(200us);
        }
    }
    /// Launches of each binary that wrote to the caller's tensor.
    std::map<std::string, int> launches_on_y() const {
        std::map<std::string, int> counts;
        for (const fake::SeenLaunch& seen : driver.launches)
            if (seen.arguments.at(1) == 0x200000u) ++counts[seen.binary];
        return counts;
    }

    std::map<std::string, double> times_;
    std::mutex said_mutex_;
    std::vector<std::string> said_;
    CUstream stream = reinterpret_cast<CUstream>(std::uintptr_t{5});
};

TEST_F(Online, WhatIsFasterTakesOver) {
    Dispatcher dispatcher{online()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_GT(calls_until(dispatcher, handle, vector_config(2, 64)), 20);
    const Decision decision = launch(dispatcher, handle, 1024, stream);
    EXPECT_EQ(decision.rung, Rung::exact);
    EXPECT_EQ(decision.why, "measured by this process, in its own calls");
    EXPECT_TRUE(was_said("takes 60.0 us with 'vector VEC=2 THREADS=64 SPLIT=1' and took 100.0"));
}

TEST_F(Online, TheFirstCallsRunAsDecidedAndEachCandidateRunsOnScratchFirst) {
    Dispatcher dispatcher{online()};
    const Handle handle = dispatcher.prepare("scale");
    calls_until(dispatcher, handle, vector_config(2, 64));
    ASSERT_GT(driver.launches.size(), 20u);
    const std::string decided = driver.launches.front().binary;
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(driver.launches[i].binary, decided);
    std::map<std::string, bool> checked;
    for (const fake::SeenLaunch& seen : driver.launches) {
        if (seen.arguments[1] != 0x200000u)
            checked[seen.binary] = true;
        else if (seen.binary != decided)
            EXPECT_TRUE(checked[seen.binary]) << seen.binary << " wrote to the caller's memory unchecked";
    }
}

TEST_F(Online, TheCallersThreadNeverWaits) {
    {
        Dispatcher dispatcher{online()};
        const Handle handle = dispatcher.prepare("scale");
        calls_until(dispatcher, handle, vector_config(2, 64));
    }
    EXPECT_FALSE(driver.threads_that_waited.empty());
    EXPECT_FALSE(driver.threads_that_waited.contains(std::this_thread::get_id()));
    EXPECT_TRUE(driver.held.empty()) << "memory was kept";
    EXPECT_TRUE(driver.events.empty());
}

TEST_F(Online, TrialsKeepToTheirShareOfTheGpu) {
    Dispatcher dispatcher{online(0.1)};
    const Handle handle = dispatcher.prepare("scale");
    times_[vector_config(2, 64).text()] = 99.0;  // no gain worth it, so that trials go through all candidates
    times_[naive_config().text()] = 5000.0;
    double before_us = 0;
    int calls = 0;
    for (; calls < 1500; ++calls) {
        launch(dispatcher, handle, 1024, stream);
        std::this_thread::sleep_for(200us);
        const double extra_us = driver.clock_us - 100.0 * (calls + 1);
        // One candidate's first run costs what it costs; all later ones wait for it.
        EXPECT_LE(extra_us, 0.1 * 100.0 * calls + 5100.0) << "after " << calls << " calls";
        before_us = extra_us;
    }
    EXPECT_GT(before_us, 100.0) << "nothing was tried";
    EXPECT_EQ(launches_on_y()[vector_config(2, 64).text()], 7);
    EXPECT_LE(launches_on_y()[naive_config().text()], 1) << "a hopeless candidate was tried again";
}

TEST_F(Online, NoMoreThanEightCandidatesAreTried) {
    std::int64_t n = 1 << 20;
    for (const std::int64_t vec : {1, 2, 4, 8})
        for (const std::int64_t threads : {64, 128, 512}) {
            const Config config = vector_config(vec, threads);
            put_binary(config, 1024);
            tuned(n += 1024, {{config, 40.0}});
            times_[config.text()] = 99.5;  // no gain worth it, so that trials go through all of them
        }
    times_[naive_config().text()] = 99.5;
    Dispatcher dispatcher{online()};
    many_calls(dispatcher, dispatcher.prepare("scale"), 1500);
    std::set<std::string> tried;
    for (const fake::SeenLaunch& seen : driver.launches) tried.insert(seen.binary);
    tried.erase(driver.launches.front().binary);
    EXPECT_EQ(tried.size(), 8u);
}

TEST_F(Online, AWrongCandidateNeverReachesTheCallersMemory) {
    driver.writes = [](const std::string& binary) { return binary == vector_config(2, 64).text() ? 2.0f : 1.0f; };
    Dispatcher::Options o = online();
    o.learn = folder / "learned.db";
    {
        Dispatcher dispatcher{o};
        const Handle handle = dispatcher.prepare("scale");
        EXPECT_GT(calls_until(dispatcher, handle, naive_config()), 0) << "the next best is taken";
        EXPECT_EQ(launches_on_y()[vector_config(2, 64).text()], 0);
        EXPECT_TRUE(was_said("1024 of 1024 elements of 'y' differ"));
    }
    const auto negatives =
        Store::open({.path = folder / "learned.db", .mode = Store::Mode::read}).negatives("scale", identify(0).fp);
    ASSERT_EQ(negatives.size(), 1u);
    EXPECT_EQ(negatives.front().ending, Ending::wrong_result);
    EXPECT_EQ(negatives.front().config, vector_config(2, 64));
}

TEST_F(Online, ADifferenceOfRoundingIsNone) {
    driver.writes = [](const std::string& binary) {
        return binary == vector_config(2, 64).text() ? std::nextafterf(1.0f, 2.0f) : 1.0f;
    };
    Dispatcher dispatcher{online()};
    EXPECT_GT(calls_until(dispatcher, dispatcher.prepare("scale"), vector_config(2, 64)), 0);
}

TEST_F(Online, ACandidateThatDoesNotLaunchCostsNoCall) {
    driver.on_launch = [](const std::string& binary) {
        return binary == vector_config(2, 64).text() ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
    };
    Dispatcher dispatcher{online()};
    EXPECT_GT(calls_until(dispatcher, dispatcher.prepare("scale"), naive_config()), 0);
}

std::atomic<int> copies_to_fail{0}, failed_copies{0};
decltype(DriverCalls::cuMemcpyDtoDAsync) copy_of_driver = nullptr;

// Goal: a problem whose check fails in the call gives back what it holds, or the others would never get any.
TEST_F(Online, CallsThatFailKeepNoMemoryFromOtherProblems) {
    copy_of_driver = driver.calls.cuMemcpyDtoDAsync;
    DriverCalls failing = driver.calls;
    failing.cuMemcpyDtoDAsync = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream on) {
        if (copies_to_fail == 0) return copy_of_driver(to, from, bytes, on);
        ++failed_copies;
        return CUDA_ERROR_INVALID_VALUE;
    };
    copies_to_fail = 1;
    failed_copies = 0;
    const DriverReplacement replacement{failing};
    Dispatcher dispatcher{online()};
    const Handle handle = dispatcher.prepare("scale");
    for (const std::int64_t n : {1536, 2048, 3072, 5120, 6144, 12288})
        for (const int before = failed_copies; failed_copies == before;) {
            EXPECT_TRUE(launch(dispatcher, handle, n, stream).launched);
            std::this_thread::sleep_for(200us);
            if (HasFailure() || driver.launches.size() > 20'000) FAIL() << n << " is not checked";
        }
    copies_to_fail = 0;
    EXPECT_GT(calls_until(dispatcher, handle, vector_config(2, 64)), 0);
}

TEST_F(Online, WhatWasFoundIsStoredAsOnlineAndRunsInTheNextProcess) {
    Dispatcher::Options o = online();
    o.learn = folder / "learned.db";
    {
        Dispatcher dispatcher{o};
        EXPECT_GT(calls_until(dispatcher, dispatcher.prepare("scale"), vector_config(2, 64)), 0);
    }
    const auto records = Store::open({.path = folder / "learned.db", .mode = Store::Mode::read})
                             .records({.op = "scale", .device_fp = identify(0).fp}, {});
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records.front().config, vector_config(2, 64));
    EXPECT_EQ(records.front().run.effort, SearchEffort::online);
    EXPECT_EQ(records.front().environment.nvrtc_major, 13);
    EXPECT_NEAR(records.front().time_us, 60.0, 0.01);
    EXPECT_NEAR(records.front().default_us.value_or(100.0), 100.0, 0.01);
    Dispatcher next{o};
    EXPECT_EQ(launch(next, next.prepare("scale"), 1024, stream).config, vector_config(2, 64).text());
    // A search of whatever effort ranks higher.
    tuned(1024, {{vector_config(8, 128), 70.0}});
    next.refresh();
    EXPECT_EQ(launch(next, next.prepare("scale"), 1024, stream).config, vector_config(8, 128).text());
}

TEST_F(Online, InACaptureAndWhileFrozenNothingIsTried) {
    Dispatcher dispatcher{online()};
    const Handle handle = dispatcher.prepare("scale");
    launch(dispatcher, handle, 1024, stream);
    dispatcher.freeze();
    many_calls(dispatcher, handle, 100);
    EXPECT_EQ(driver.launches.size(), 101u);
    EXPECT_TRUE(driver.events.empty());
    dispatcher.thaw();
    driver.capturing = {stream};
    many_calls(dispatcher, handle, 100);
    EXPECT_TRUE(driver.calls_in_capture.empty());
    EXPECT_TRUE(driver.events.empty());
    driver.capturing.clear();
    EXPECT_GT(calls_until(dispatcher, handle, vector_config(2, 64)), 0);
}

TEST_F(Online, OnlyOpsThatAreNamedAndProblemsWithoutAFreshRecordAreTuned) {
    tuned(1024, {{vector_config(4), 100.0}});
    {
        Dispatcher dispatcher{online()};
        many_calls(dispatcher, dispatcher.prepare("scale"), 100);
        EXPECT_EQ(driver.launches.size(), 100u) << "a fresh record was doubted";
    }
    driver.launches.clear();
    Dispatcher::Options o = online();
    o.online = {};
    Dispatcher dispatcher{o};
    many_calls(dispatcher, dispatcher.prepare("scale"), 100);
    EXPECT_EQ(driver.launches.size(), 100u);
}

TEST_F(Online, AnOpThatAddsToItsOutputsIsRefused) {
    Op adding = scale_op();
    adding.variants.front().idempotent = false;
    ops = OpSet::of({adding});
    EXPECT_THROW(Dispatcher{online()}, Error);
    ops = OpSet::of({scale_op()});
    Dispatcher::Options o = online();
    o.online = {"scael"};
    EXPECT_THROW(Dispatcher{o}, Error);
    for (const double share : {0.0, -1.0, 0.6, std::numeric_limits<double>::quiet_NaN()})
        EXPECT_THROW(Dispatcher{online(share)}, Error);
}

TEST_F(Online, AnInputThatIsChangedIsNeverTried) {
    Op changing = scale_op();
    changing.tensors.back().role = Expression::constant(std::string{"inout"});
    ops = OpSet::of({changing});
    Dispatcher dispatcher{online()};
    many_calls(dispatcher, dispatcher.prepare("scale"), 100);
    EXPECT_EQ(driver.launches.size(), 100u);
}

TEST_F(Online, ThreadsOnSeveralStreamsCallWhileItIsTuned) {
    Dispatcher::Options o = online();
    o.learn = folder / "learned.db";
    Dispatcher dispatcher{o};
    const Handle handle = dispatcher.prepare("scale");
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (std::uintptr_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 300; ++i) {
                const auto n = static_cast<std::int64_t>(1024 + 8 * (static_cast<std::uintptr_t>(i) % 3));
                if (!launch(dispatcher, handle, n, reinterpret_cast<CUstream>(t + 1)).launched) ++failures;
                if (t == 0 && i % 100 == 99) dispatcher.refresh();
                std::this_thread::sleep_for(50us);
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace autotune
