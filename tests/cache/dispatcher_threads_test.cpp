// Goal: threads that ask without a lock get whole answers while what they read is replaced and freed behind them.
// Method: winners are stored one after the other while threads launch; all of it runs under the thread sanitizer too.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
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
