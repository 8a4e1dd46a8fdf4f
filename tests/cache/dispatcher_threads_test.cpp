// Goal: threads that ask without a lock get whole answers while what they read is replaced and freed behind them.
// Method: winners are stored one after the other while threads launch; all of it runs under the thread sanitizer too.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "autotune/dispatcher.h"
#include "tests/cache/dispatch_samples.h"

namespace autotune {
namespace {

using namespace samples;

class ThreadedDispatching : public testing::Test, protected DispatchSetting {
protected:
    void SetUp() override {
        for (const std::int64_t vec : {1, 2, 4, 8})
            for (const std::int64_t threads : {64, 128, 256, 512}) winners_.push_back(vector_config(vec, threads));
        for (const Config& config : winners_) {
            put_binary(config, 1024);
            texts_.push_back(config.text());
        }
        put_binary(naive_config(), 1024);
        driver.record = false;
    }
    Dispatcher::Options quiet_options() {
        Dispatcher::Options quiet = options();
        quiet.log = {};
        quiet.most_problems = 32;  // fewer than are asked for, so that remembered ones are forgotten all the time
        return quiet;
    }
    /// Stores that the config of this number won, each faster than the one before by more than noise.
    void win(std::size_t number) { tuned(1024, {{winners_[number], 1000.0 / (1.0 + static_cast<double>(number))}}); }
    std::size_t number_of(std::string_view config) const {
        return static_cast<std::size_t>(std::ranges::find(texts_, config) - texts_.begin());
    }

    std::vector<Config> winners_;
    std::vector<std::string> texts_;
};

TEST_F(ThreadedDispatching, AWinnerThatIsPublishedIsSeenByEveryLaterCallOfEveryThread) {
    win(0);
    Dispatcher dispatcher{quiet_options()};
    const Handle handle = dispatcher.prepare("scale");
    std::atomic<std::size_t> published{0};
    std::atomic<bool> done{false};
    std::atomic<int> failures{0}, outdated{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 200 || (!done && i < 100'000); ++i) {
                const std::size_t at_least = published.load(std::memory_order_acquire);
                const Decision decision = launch(dispatcher, handle, 1024);
                if (!decision.launched || decision.rung != Rung::exact) ++failures;
                if (number_of(decision.config) < at_least || number_of(decision.config) == texts_.size()) ++outdated;
                if (!launch(dispatcher, handle, 4 * (1 + (i * (t + 3)) % 80)).launched) ++failures;
            }
        });
    for (std::size_t number = 1; number < winners_.size(); ++number) {
        win(number);
        dispatcher.refresh();
        published.store(number, std::memory_order_release);
    }
    done = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
    EXPECT_EQ(outdated, 0);
    EXPECT_EQ(launch(dispatcher, handle, 1024).config, texts_.back());
}

// Goal: a sequence of launches that shares working memory is never mixed with that of another thread.
// Method: a driver that is slow between the zeroing of the memory and the launch that counts on it.
TEST_F(ThreadedDispatching, ThreadsOnOneStreamDoNotMixTheirSequences) {
    tuned(1024, {{vector_config(4, 256, 2), 40.0}});
    put_binary(vector_config(4, 256, 2), 1024);
    Dispatcher dispatcher{quiet_options()};
    const Handle handle = dispatcher.prepare("scale");
    driver.record = driver.slow_zeroing = true;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 20; ++i)
                launch(dispatcher, handle, 1024, reinterpret_cast<CUstream>(std::uintptr_t{9}));
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(driver.order.size(), 160u);
    EXPECT_EQ(driver.order.find("zz"), std::string::npos) << driver.order;
}

// Goal: no reader takes one row for another, the first value for none, or an unusable file for an empty answer.
// Method: two rows a key, of which the first may not load; files that are empty, of another program or not there; a row
// of another build; all of it read by threads that begin at once.
TEST_F(ThreadedDispatching, RowsAreJudgedEachForItselfWhateverFilesLieBesideThem) {
    const Config first_of_all = vector_config(1, 64), second = vector_config(2, 64), gone = vector_config(1, 128);
    tuned(1024, {{first_of_all, 40.0}, {second, 40.2}});
    tuned(2048, {{gone, 40.0}, {second, 40.2}});
    {
        RunStart before = start(4096);
        for (TemplateIdentity& source : before.templates) source.source_hash = "as it was";
        Store store = Store::open({.path = folder / "tune.db"});
        store.finish_run(
            store.begin_run(before),
            {.finalists = {finalist(second, 40.0)}, .default_us = 100.0, .evaluated = 20, .space_size = 64});
    }
    for (const std::int64_t n : {2048, 4096}) put_binary(second, n);
    put_binary(gone, 2048);
    driver.on_load = [&](const std::string& binary) {
        return binary == gone.text() ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
    };
    std::ofstream{folder / "empty.db"};
    std::filesystem::copy_file(folder / "tune.db", folder / "other.db");
    std::fstream{folder / "other.db", std::ios::in | std::ios::out | std::ios::binary}.seekp(68).put('B');
    Dispatcher::Options given = options();
    std::mutex lines;
    given.log = [&](const std::string& line) {
        const std::lock_guard lock{lines};
        logged.push_back(line);
    };
    for (const char* name : {"empty.db", "other.db", "absent.db"})
        given.databases.insert(given.databases.begin(), (folder / name).string());
    Dispatcher dispatcher{given};
    const Handle handle = dispatcher.prepare("scale");
    std::atomic<int> wrong{0}, ready{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&] {
            for (++ready; ready < 6;) std::this_thread::yield();
            for (int i = 0; i < 200; ++i) {
                const Decision own = launch(dispatcher, handle, 1024), next = launch(dispatcher, handle, 2048),
                               old = launch(dispatcher, handle, 4096);
                if (own.rung != Rung::exact || own.config != first_of_all.text()) ++wrong;
                if (next.rung != Rung::exact || next.config != second.text()) ++wrong;
                if (old.rung != Rung::exact_stale || !old.stale || old.config != second.text()) ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    for (const char* name : {"empty.db", "other.db"})
        EXPECT_EQ(std::ranges::count_if(logged,
                                        [&](const std::string& line) { return line.find(name) != std::string::npos; }),
                  1)
            << name << " is named once";
    EXPECT_EQ(std::filesystem::file_size(folder / "empty.db"), 0u);
}

TEST_F(ThreadedDispatching, EveryCallOfADispatcherMayBeMadeWhileOthersAre) {
    win(3);
    Dispatcher dispatcher{quiet_options()};
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 60; ++i) {
                const std::int64_t n = 4 * (1 + (i + t) % 40);
                const Handle handle = dispatcher.prepare("scale", {{"dtype", std::string{i % 2 ? "f32" : "f16"}}});
                const Handle plain = dispatcher.prepare("scale");
                if (t == 0) dispatcher.refresh();
                if (t == 1 && dispatcher.explain("scale", {{"n", std::int64_t{1024}}}).rung != Rung::exact) ++failures;
                if (t == 2 && dispatcher.misses().size() > 4096) ++failures;
                if (ready(dispatcher, plain, n).rung == Rung::none) ++failures;
                if (i % 2 && !launch(dispatcher, handle, n).launched) ++failures;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
    EXPECT_EQ(dispatcher.counts()[static_cast<std::size_t>(Rung::none)], 0u);
}

}  // namespace
}  // namespace autotune
