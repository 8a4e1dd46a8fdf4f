// Goal: want of a record is met as the application says, and what calls find out is written down once, by one thread.
// Method: a tuner that is a function of the test, a driver that is a table; all of it runs under the thread sanitizer.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "autotune/dispatcher.h"
#include "autotune/error.h"
#include "cache/store/miss_list.h"
#include "device/identity.h"
#include "tests/cache/dispatch_samples.h"

namespace autotune {
namespace {

using namespace samples;
using namespace std::chrono_literals;

class TuningDispatcher : public testing::Test, protected DispatchSetting {
protected:
    void SetUp() override {
        for (const Config& config : {vector_config(4), naive_config(), vector_config(8, 128), vector_config(2, 64)})
            put_binary(config, 1024);
    }
    /// Options whose log is safe to be called by several threads; tunes to VEC=8 unless told otherwise.
    Dispatcher::Options on_miss(OnMiss policy) {
        Dispatcher::Options o = options();
        o.log = [this](const std::string& sentence) {
            const std::lock_guard lock{log_mutex_};
            said_.push_back(sentence);
        };
        o.on_miss = policy;
        o.tune_budget = 1234ms;
        o.tune = [this](const TuneRequest& request) {
            const std::lock_guard lock{log_mutex_};
            requests_.push_back(request);
            tuned(std::get<std::int64_t>(request.problem.at(0).second), {{vector_config(8, 128), 40.0}});
        };
        return o;
    }
    std::size_t asked() {
        const std::lock_guard lock{log_mutex_};
        return requests_.size();
    }
    bool was_said(std::string_view part) {
        const std::lock_guard lock{log_mutex_};
        for (const std::string& sentence : said_)
            if (sentence.find(part) != std::string::npos) return true;
        return false;
    }
    /// Waits for what a thread of the dispatcher does.
    static bool soon(const std::function<bool()>& happened) {
        for (int i = 0; i < 1000; ++i) {
            if (happened()) return true;
            std::this_thread::sleep_for(10ms);
        }
        return false;
    }

    std::mutex log_mutex_;
    std::vector<std::string> said_;
    std::vector<TuneRequest> requests_;
    CUstream stream = reinterpret_cast<CUstream>(std::uintptr_t{5});
};

// -- policies

TEST_F(TuningDispatcher, TuneNowWaitsAndRunsTheWinner) {
    Dispatcher dispatcher{on_miss(OnMiss::tune_now)};
    const Handle handle = dispatcher.prepare("scale");
    const Decision decision = launch(dispatcher, handle, 1024, stream);
    EXPECT_EQ(decision.rung, Rung::exact) << decision.why;
    EXPECT_TRUE(decision.launched);
    ASSERT_EQ(requests_.size(), 1u);
    EXPECT_EQ(requests_[0].op, "scale");
    EXPECT_EQ(requests_[0].problem, (FieldValues{{"n", std::int64_t{1024}}, {"dtype", std::string{"f32"}}}));
    EXPECT_EQ(requests_[0].budget, 1234ms);
    EXPECT_TRUE(requests_[0].align.empty());
    launch(dispatcher, handle, 1024, stream);
    EXPECT_EQ(asked(), 1u);
    EXPECT_TRUE(dispatcher.misses().empty());
}

TEST_F(TuningDispatcher, AProblemOfUnalignedTensorsIsTunedAsSuch) {
    Dispatcher dispatcher{on_miss(OnMiss::tune_now)};
    launch(dispatcher, dispatcher.prepare("scale"), 1024, stream, 4);
    ASSERT_EQ(requests_.size(), 1u);
    EXPECT_EQ(requests_[0].align, (std::vector<std::pair<std::string, int>>{{"x", 4}, {"y", 4}}));
}

TEST_F(TuningDispatcher, ThreadsThatMissTheSameProblemWaitForOneSearch) {
    Dispatcher::Options o = on_miss(OnMiss::tune_now);
    o.tune = [tune = o.tune](const TuneRequest& request) {
        std::this_thread::sleep_for(50ms);
        tune(request);
    };
    Dispatcher dispatcher{o};
    const Handle handle = dispatcher.prepare("scale");
    std::atomic<int> exact{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            if (launch(dispatcher, handle, t % 2 ? 1024 : 2048, stream).rung == Rung::exact) ++exact;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(exact, 6);
    EXPECT_EQ(asked(), 2u);
}

TEST_F(TuningDispatcher, ACallWaitsNoLongerThanItsPatience) {
    Dispatcher::Options o = on_miss(OnMiss::tune_now);
    std::atomic<bool> go_on{false};
    o.tune_patience = 20ms;
    o.tune = [&, tune = o.tune](const TuneRequest& request) {
        while (!go_on) std::this_thread::sleep_for(1ms);
        tune(request);
    };
    Dispatcher dispatcher{o};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024, stream).rung, Rung::default_config);
    EXPECT_TRUE(was_said("is still being tuned"));
    go_on = true;
    EXPECT_TRUE(soon([&] { return launch(dispatcher, handle, 1024, stream).rung == Rung::exact; }));
}

TEST_F(TuningDispatcher, ATunerThatFailsOrFindsNothingIsNotAskedAgain) {
    Dispatcher::Options o = on_miss(OnMiss::tune_now);
    std::atomic<int> calls{0};
    o.tune = [&](const TuneRequest&) {
        if (++calls == 1) throw Error{Error::Kind::compile, "there is no compiler"};
        if (calls == 2) throw 42;
    };
    Dispatcher dispatcher{o};
    const Handle handle = dispatcher.prepare("scale"),
                 other = dispatcher.prepare("scale", {{"dtype", std::string{"f32"}}});
    for (const std::int64_t n : {1024, 2048, 4096}) {
        EXPECT_EQ(launch(dispatcher, handle, n, stream).rung, Rung::default_config);
        EXPECT_EQ(launch(dispatcher, other, n, stream).rung, Rung::default_config);
    }
    EXPECT_EQ(calls, 3);
    EXPECT_TRUE(was_said("a problem could not be tuned: there is no compiler"));
}

TEST_F(TuningDispatcher, BehindTheDefaultRunsUntilTheWinnerIsThere) {
    Dispatcher dispatcher{on_miss(OnMiss::tune_behind)};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024, stream).rung, Rung::default_config);
    EXPECT_TRUE(soon([&] { return launch(dispatcher, handle, 1024, stream).rung == Rung::exact; }));
    EXPECT_EQ(asked(), 1u);
}

TEST_F(TuningDispatcher, InACaptureAndWhileFrozenNothingIsTuned) {
    Dispatcher dispatcher{on_miss(OnMiss::tune_now)};
    const Handle handle = dispatcher.prepare("scale");
    driver.capturing = {stream};
    launch(dispatcher, handle, 1024, stream);
    driver.capturing.clear();
    {
        const CaptureScope scope;
        launch(dispatcher, handle, 1024, stream);
    }
    dispatcher.freeze();
    EXPECT_EQ(launch(dispatcher, handle, 1024, stream).rung, Rung::default_config);
    EXPECT_EQ(asked(), 0u);
    dispatcher.thaw();
    EXPECT_EQ(launch(dispatcher, handle, 1024, stream).rung, Rung::exact);
}

TEST_F(TuningDispatcher, WhatACaptureMissedIsTunedWhenItIsOver) {
    Dispatcher dispatcher{on_miss(OnMiss::tune_now)};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024, stream).rung, Rung::exact);
    driver.capturing = {stream};
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(launch(dispatcher, handle, 131072, stream).launched);
    EXPECT_EQ(asked(), 1u) << "a search began while a stream was captured";
    driver.capturing.clear();
    dispatcher.freeze();
    launch(dispatcher, handle, 1024, stream);
    EXPECT_EQ(asked(), 1u);
    dispatcher.thaw();
    launch(dispatcher, handle, 1024, stream);
    EXPECT_TRUE(soon([&] { return asked() == 2; })) << "what the capture missed was forgotten";
    EXPECT_TRUE(soon([&] { return ready(dispatcher, handle, 131072, stream).rung == Rung::exact; }));
    EXPECT_EQ(asked(), 2u);
    driver.capturing = {stream};
    EXPECT_EQ(launch(dispatcher, handle, 131072, stream).rung, Rung::exact);
    EXPECT_TRUE(driver.calls_in_capture.empty());
    driver.capturing.clear();
}

TEST_F(TuningDispatcher, TheEndStopsTheSearchThatRuns) {
    Dispatcher::Options o = on_miss(OnMiss::tune_behind);
    std::atomic<bool> begun{false}, stopped{false};
    o.tune = [&](const TuneRequest& request) {
        begun = true;
        while (!request.stop()) std::this_thread::sleep_for(1ms);
        stopped = true;
    };
    {
        Dispatcher dispatcher{o};
        launch(dispatcher, dispatcher.prepare("scale"), 1024, stream);
        launch(dispatcher, dispatcher.prepare("scale"), 2048, stream);
        EXPECT_TRUE(soon([&] { return begun.load(); }));
    }
    EXPECT_TRUE(stopped);
}

TEST_F(TuningDispatcher, ToFailLaunchesNothingAndSaysWhy) {
    tuned(2048, {{vector_config(8, 128), 40.0}});
    Dispatcher dispatcher{on_miss(OnMiss::fail)};
    const Handle handle = dispatcher.prepare("scale");
    const Decision decision = launch(dispatcher, handle, 1024, stream);
    EXPECT_EQ(decision.rung, Rung::none);
    EXPECT_FALSE(decision.launched);
    EXPECT_EQ(decision.error, CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(decision.why, "'scale' n=1024 dtype=f32 is not tuned on NVIDIA H200, and on_miss is to fail");
    EXPECT_TRUE(driver.launches.empty());
    EXPECT_EQ(dispatcher.misses().size(), 1u);
    EXPECT_EQ(launch(dispatcher, handle, 2048, stream).rung, Rung::exact);
}

TEST_F(TuningDispatcher, APolicyThatWantsATunerIsRefusedWithoutOne) {
    Dispatcher::Options o = on_miss(OnMiss::tune_now);
    o.tune = {};
    EXPECT_THROW(Dispatcher{o}, Error);
}

// -- what is written

TEST_F(TuningDispatcher, WithoutLearningNothingIsEverWritten) {
    const std::string winner = vector_config(8, 128).text();
    tuned(1024, {{vector_config(8, 128), 40.0}});
    driver.on_launch = [winner](const std::string& binary) {
        return binary == winner ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
    };
    const auto state = [&] {
        std::vector<std::pair<std::string, std::uintmax_t>> files;
        for (const auto& entry : std::filesystem::recursive_directory_iterator{folder.path()})
            if (entry.is_regular_file()) files.emplace_back(entry.path(), entry.file_size());
        std::ranges::sort(files);
        return files;
    };
    const auto before = state();
    const std::int64_t generation = Store::open({.path = folder / "tune.db", .mode = Store::Mode::read}).generation();
    {
        Dispatcher dispatcher{on_miss(OnMiss::run_default)};
        launch(dispatcher, dispatcher.prepare("scale"), 1024, stream);
        launch(dispatcher, dispatcher.prepare("scale"), 2048, stream);
    }
    EXPECT_EQ(state(), before);
    EXPECT_EQ(Store::open({.path = folder / "tune.db", .mode = Store::Mode::read}).generation(), generation);
}

TEST_F(TuningDispatcher, MissesOfAllProcessesAreListed) {
    for (int process = 0; process < 2; ++process) {
        Dispatcher::Options o = on_miss(OnMiss::run_default);
        o.learn = folder / "learned.db";
        Dispatcher dispatcher{o};
        const Handle handle = dispatcher.prepare("scale");
        for (int i = 0; i < 3; ++i) launch(dispatcher, handle, 1024, stream);
        if (process == 1) launch(dispatcher, handle, 2048, stream, 4);
    }
    const auto misses = MissList{folder / "learned.db"}.read();
    ASSERT_EQ(misses.size(), 2u);
    EXPECT_EQ(misses[0].processes, 2);
    EXPECT_EQ(misses[0].op, "scale");
    EXPECT_EQ(misses[0].device_fp, identify(0).fp);
    EXPECT_EQ(misses[1].processes, 1);
    EXPECT_EQ(misses[1].align, (std::vector<std::pair<std::string, int>>{{"x", 4}, {"y", 4}}));
    EXPECT_TRUE(was_said("autotune --from-misses"));
}

TEST_F(TuningDispatcher, AFailureIsRememberedByTheNextProcessUntilTheDriverChanges) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    const std::string winner = vector_config(8, 128).text();
    driver.on_launch = [winner](const std::string& binary) {
        return binary == winner ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
    };
    Dispatcher::Options o = on_miss(OnMiss::run_default);
    o.learn = folder / "learned.db";
    {
        Dispatcher dispatcher{o};
        EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024, stream).rung, Rung::default_config);
    }
    driver.on_launch = {};
    {
        Dispatcher dispatcher{o};
        EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024, stream).rung, Rung::default_config);
        const Explanation why = dispatcher.explain("scale", {{"n", std::int64_t{1024}}});
        ASSERT_FALSE(why.rows.empty());
        EXPECT_EQ(why.rows.front().refused, "it has failed on this problem");
    }
    const auto negatives =
        Store::open({.path = folder / "learned.db", .mode = Store::Mode::read}).negatives("scale", identify(0).fp);
    ASSERT_EQ(negatives.size(), 1u);
    EXPECT_EQ(negatives.front().config, vector_config(8, 128));
    EXPECT_EQ(negatives.front().ending, Ending::launch_failed);
    driver.calls.cuDriverGetVersion = [](int* version) {
        *version = 13010;
        return CUDA_SUCCESS;
    };
    const DriverReplacement updated{driver.calls};
    Dispatcher dispatcher{o};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024, stream).rung, Rung::exact);
}

TEST_F(TuningDispatcher, AKernelThatBeginsToFailIsRememberedToo) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    Dispatcher::Options o = on_miss(OnMiss::run_default);
    o.learn = folder / "tune.db";
    {
        Dispatcher dispatcher{o};
        const Handle handle = dispatcher.prepare("scale");
        EXPECT_EQ(launch(dispatcher, handle, 1024, stream).rung, Rung::exact);
        const std::string winner = vector_config(8, 128).text();
        driver.on_launch = [winner](const std::string& binary) {
            return binary == winner ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
        };
        EXPECT_EQ(launch(dispatcher, handle, 1024, stream).rung, Rung::default_config);
        driver.on_launch = {};
    }
    Dispatcher dispatcher{o};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024, stream).rung, Rung::default_config);
}

TEST_F(TuningDispatcher, WhatMayPassIsNotRemembered) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    const std::string winner = vector_config(8, 128).text();
    CUresult status = CUDA_SUCCESS;
    driver.on_launch = [&](const std::string& binary) { return binary == winner ? status : CUDA_SUCCESS; };
    Dispatcher::Options o = on_miss(OnMiss::run_default);
    o.learn = folder / "tune.db";
    for (const CUresult passing : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_ILLEGAL_ADDRESS}) {
        status = passing;
        Dispatcher dispatcher{o};
        launch(dispatcher, dispatcher.prepare("scale"), 1024, stream);
    }
    status = CUDA_SUCCESS;
    Dispatcher dispatcher{o};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024, stream).rung, Rung::exact);
}

TEST_F(TuningDispatcher, ARowWhoseChecksumFailsIsAMissAndGoesWithTheNextWrite) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    tuned(2048, {{vector_config(2, 64), 40.0}});
    const auto execute = [&](const char* sql) {
        sqlite3* database = nullptr;
        ASSERT_EQ(sqlite3_open((folder / "tune.db").c_str(), &database), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK);
        sqlite3_close(database);
    };
    execute("UPDATE record SET time_ns = time_ns + 1 WHERE numbers = (SELECT min(numbers) FROM record)");
    const auto rows = [&] {
        return Store::open({.path = folder / "tune.db", .mode = Store::Mode::read}).row_counts().at("record");
    };
    Dispatcher::Options o = on_miss(OnMiss::run_default);
    o.learn = folder / "tune.db";
    driver.on_launch = [](const std::string& binary) {
        return binary == vector_config(2, 64).text() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    };
    ASSERT_EQ(rows(), 2);
    {
        Dispatcher dispatcher{o};
        const Handle handle = dispatcher.prepare("scale");
        EXPECT_NE(launch(dispatcher, handle, 1024, stream).rung, Rung::exact);
        EXPECT_NE(launch(dispatcher, handle, 2048, stream).rung, Rung::exact) << "a failure is to be written";
    }
    EXPECT_EQ(rows(), 1);
}

TEST_F(TuningDispatcher, ADatabaseThatTakesNothingIsSaidAndStopsNobody) {
    std::filesystem::create_directory(folder / "no.db");
    Dispatcher::Options o = on_miss(OnMiss::run_default);
    o.learn = folder / "no.db";
    tuned(1024, {{vector_config(8, 128), 40.0}});
    driver.on_launch = [](const std::string& binary) {
        return binary == vector_config(8, 128).text() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    };
    {
        Dispatcher dispatcher{o};
        EXPECT_TRUE(launch(dispatcher, dispatcher.prepare("scale"), 1024, stream).launched);
    }
    EXPECT_TRUE(was_said("what was learned is not stored"));
}

TEST_F(TuningDispatcher, AChildOfAForkEndsWithoutItsParentsThreads) {
    Dispatcher::Options o = on_miss(OnMiss::tune_behind);
    o.learn = folder / "learned.db";
    auto dispatcher = std::make_unique<Dispatcher>(o);
    const pid_t child = ::fork();
    if (child == 0) {
        dispatcher.reset();
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    launch(*dispatcher, dispatcher->prepare("scale"), 1024, stream);
    dispatcher.reset();
    EXPECT_EQ(MissList{folder / "learned.db"}.read().size(), 1u);
}

TEST_F(TuningDispatcher, ManyThreadsFreezeTakeOverAndLaunchAtOnce) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    Dispatcher::Options o = on_miss(OnMiss::tune_behind);
    o.learn = folder / "learned.db";
    o.tune = [](const TuneRequest&) {};
    o.log = {};
    driver.record = false;
    Dispatcher dispatcher{o};
    const Handle handle = dispatcher.prepare("scale");
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 60; ++i) {
                if (!launch(dispatcher, handle, 4 * (1 + (i * (t + 3)) % 40), stream).launched) ++failures;
                if (t == 0 && i % 10 == 0) dispatcher.freeze();
                if (t == 0 && i % 10 == 5) dispatcher.thaw();
                if (t == 1 && i % 10 == 0) {
                    try {
                        dispatcher.import_decisions(dispatcher.export_decisions());
                    } catch (const Error&) {  // frozen just now
                    }
                }
                if (t == 2) static_cast<void>(dispatcher.decision_hash());
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace autotune
