// Goal: what an application does with a dispatcher over its life: loads ahead, pins, hands decisions on, forks.
// Method: a database of made-up records, binaries whose bytes are their config's text, and a driver that is a table.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "autotune/dispatcher.h"
#include "autotune/error.h"
#include "device/identity.h"
#include "tests/cache/dispatch_samples.h"

namespace autotune {
namespace {

using namespace samples;

class DispatcherLife : public testing::Test, protected DispatchSetting {
protected:
    void SetUp() override {
        for (const Config& config :
             {vector_config(4), naive_config(), vector_config(8, 128), vector_config(2, 64), vector_config(4, 256, 2)})
            put_binary(config, 1024);
    }
    std::string last_binary() const { return driver.launches.empty() ? "nothing" : driver.launches.back().binary; }
    std::vector<Decision> prepare(Dispatcher& dispatcher, const Handle& handle, FieldValues problem,
                                  std::vector<std::pair<std::string, int>> align = {}) {
        const ExpectedCall calls[] = {{.handle = handle, .problem = std::move(problem), .align = std::move(align)}};
        return dispatcher.prepare(calls, stream);
    }

    CUstream stream = reinterpret_cast<CUstream>(std::uintptr_t{5});
};

// -- before a capture

TEST_F(DispatcherLife, CallsThatAreExpectedByTheirProblemsAreLoadedBeforeACapture) {
    tuned(1024, {{vector_config(4, 256, 2), 40.0}});  // with scratch
    tuned(2048, {{vector_config(8, 128), 40.0}});
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale", {{"dtype", std::string{"f32"}}});
    const ExpectedCall calls[] = {{.handle = handle, .problem = {{"n", std::int64_t{1024}}}},
                                  {.handle = handle, .problem = {{"n", std::int64_t{2048}}}}};
    const auto decisions = dispatcher.prepare(calls, stream);
    ASSERT_EQ(decisions.size(), 2u);
    EXPECT_EQ(decisions[0].config, vector_config(4, 256, 2).text()) << decisions[0].why;
    EXPECT_EQ(decisions[1].config, vector_config(8, 128).text());
    EXPECT_TRUE(driver.launches.empty());
    driver.capturing = {stream};
    EXPECT_EQ(launch(dispatcher, handle, 1024, stream).rung, Rung::exact);
    EXPECT_EQ(launch(dispatcher, handle, 2048, stream).rung, Rung::exact);
    EXPECT_TRUE(driver.calls_in_capture.empty());
    EXPECT_EQ(driver.launches.size(), 2u);
}

TEST_F(DispatcherLife, StridesThatSayPackedAreNoOtherKernel) {
    tuned(2048, {{vector_config(8, 128), 40.0}});
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    prepare(dispatcher, handle, {{"n", std::int64_t{2048}}});
    const std::int64_t shape[] = {2048}, strides[] = {1};
    const TensorArgument x{.data = reinterpret_cast<const void*>(0x100000), .shape = shape, .strides = strides};
    const TensorArgument tensors[] = {x, x};
    driver.capturing = {stream};
    EXPECT_EQ(dispatcher.launch(handle, tensors, {}, stream).rung, Rung::exact);
    EXPECT_TRUE(driver.calls_in_capture.empty());
}

TEST_F(DispatcherLife, AnExpectedCallMayBeOfLessAlignedTensorsOrBringItsTensors) {
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    const auto unaligned = prepare(dispatcher, handle, {{"n", std::int64_t{1024}}}, {{"x", 4}, {"y", 4}});
    EXPECT_EQ(unaligned.front().config, naive_config().text());
    const std::int64_t shape[] = {1024};
    const TensorArgument x{.data = reinterpret_cast<const void*>(0x100000), .shape = shape};
    const TensorArgument tensors[] = {x, x};
    const ExpectedCall calls[] = {{.handle = handle, .tensors = tensors}};
    EXPECT_EQ(dispatcher.prepare(calls, stream).front().config, vector_config(4).text());
    const std::size_t loads = driver.loads.size();
    launch(dispatcher, handle, 1024, stream, 4);
    launch(dispatcher, handle, 1024, stream);
    EXPECT_EQ(driver.loads.size(), loads);
}

TEST_F(DispatcherLife, AnExpectedCallThatCannotBeIsRefused) {
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale", {{"dtype", std::string{"f32"}}});
    EXPECT_THROW(prepare(dispatcher, Handle{}, {}), Error);
    EXPECT_THROW(prepare(dispatcher, handle, {{"m", std::int64_t{1}}}), Error);
    EXPECT_THROW(prepare(dispatcher, handle, {{"n", std::int64_t{0}}}), Error);
    EXPECT_THROW(prepare(dispatcher, handle, {{"dtype", std::string{"f16"}}}), Error) << "the handle says f32";
    EXPECT_THROW(prepare(dispatcher, handle, {}, {{"z", 4}}), Error);
}

// -- after a capture

TEST_F(DispatcherLife, WhatACaptureWantedIsLoadedWhenItIsOver) {
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    launch(dispatcher, handle, 1024, stream);         // loads the default
    tuned(2048, {{vector_config(4, 256, 2), 40.0}});  // with scratch
    dispatcher.refresh();
    driver.capturing = {stream};
    EXPECT_EQ(launch(dispatcher, handle, 2048, stream).rung, Rung::default_config);
    driver.capturing.clear();
    launch(dispatcher, handle, 1024, stream);  // a call that has its plan
    driver.capturing = {stream};
    EXPECT_EQ(launch(dispatcher, handle, 2048, stream).rung, Rung::exact) << "each capture finds it missing again";
    EXPECT_TRUE(driver.calls_in_capture.empty());
}

TEST_F(DispatcherLife, ACaptureOfAnotherStreamForbidsNothingOnThisOne) {
    tuned(2048, {{vector_config(8, 128), 40.0}});
    Dispatcher dispatcher{options()};
    driver.capturing = {reinterpret_cast<CUstream>(std::uintptr_t{6})};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 2048, stream).rung, Rung::exact)
        << "not the given stream was asked";
}

TEST_F(DispatcherLife, TheFlagOfOneThreadIsNotThatOfAnother) {
    tuned(2048, {{vector_config(8, 128), 40.0}});
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    const CaptureScope scope;
    EXPECT_EQ(launch(dispatcher, handle, 2048, stream).rung, Rung::none);
    std::thread{[&] { EXPECT_EQ(launch(dispatcher, handle, 2048, stream).rung, Rung::exact); }}.join();
}

// -- several contexts

// Goal: contexts of one GPU share what is known and the binaries, and nothing that belongs to one of them.
TEST_F(DispatcherLife, SeveralContextsShareBinariesButNeitherMemoryNorReadyKernels) {
    tuned(1024, {{vector_config(4, 256, 2), 40.0}});  // with scratch
    driver.argument_count = 2;
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    const auto one = reinterpret_cast<CUcontext>(std::uintptr_t{0x10}),
               other = reinterpret_cast<CUcontext>(std::uintptr_t{0x20});
    for (const CUcontext context : {one, other, one, other}) {
        driver.context = context;
        EXPECT_EQ(launch(dispatcher, handle, 1024, nullptr).rung, Rung::exact);  // the default stream of either
    }
    ASSERT_EQ(driver.launches.size(), 4u);
    EXPECT_NE(driver.launches[0].arguments[1], driver.launches[1].arguments[1]) << "memory of another context";
    EXPECT_EQ(driver.launches[0].arguments[1], driver.launches[2].arguments[1]);
    EXPECT_EQ(driver.launches[1].arguments[1], driver.launches[3].arguments[1]);
    EXPECT_EQ(driver.allocations.size(), 2u);
    const std::string winner = vector_config(4, 256, 2).text();
    EXPECT_EQ(std::ranges::count(driver.loads, winner), 1);
    EXPECT_TRUE(driver.functions.contains({one, winner}));
    EXPECT_TRUE(driver.functions.contains({other, winner})) << "its first launch there loads it";
}

TEST_F(DispatcherLife, AKernelThatIsReadyInOneContextIsNotUsedInTheCaptureOfAnother) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    const auto other = reinterpret_cast<CUcontext>(std::uintptr_t{0x20});
    EXPECT_EQ(launch(dispatcher, handle, 1024, stream).rung, Rung::exact);
    driver.context = other;
    driver.capturing = {stream};
    EXPECT_EQ(launch(dispatcher, handle, 1024, stream).error, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_TRUE(driver.calls_in_capture.empty()) << driver.calls_in_capture[0];
    driver.capturing.clear();
    launch(dispatcher, handle, 2048, stream);  // what the capture wanted is made ready
    driver.capturing = {stream};
    EXPECT_EQ(launch(dispatcher, handle, 1024, stream).rung, Rung::exact);
    EXPECT_TRUE(driver.calls_in_capture.empty()) << driver.calls_in_capture[0];
    driver.capturing.clear();
}

TEST_F(DispatcherLife, WhatTheCaptureOfAContextWantedIsForgottenWhereItNeverCallsAgain) {
    tuned(2048, {{vector_config(8, 128), 40.0}});
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    const auto other = reinterpret_cast<CUcontext>(std::uintptr_t{0x20});
    launch(dispatcher, handle, 1001, stream);
    driver.context = other;
    driver.capturing = {stream};
    launch(dispatcher, handle, 2048, stream);
    driver.capturing.clear();
    driver.context = nullptr;
    for (int i = 0; i < 1100; ++i) launch(dispatcher, handle, 1001, stream);
    driver.context = other;
    EXPECT_EQ(launch(dispatcher, handle, 1001, stream).rung, Rung::default_config);  // no vector divides it
    EXPECT_EQ(std::ranges::count(driver.loads, vector_config(8, 128).text()), 0);
}

// -- frozen

TEST_F(DispatcherLife, WhileFrozenAProblemKeepsItsConfig) {
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    launch(dispatcher, handle, 1024);
    dispatcher.freeze();
    EXPECT_TRUE(dispatcher.frozen());
    tuned(1024, {{vector_config(8, 128), 40.0}});
    tuned(2048, {{vector_config(8, 128), 40.0}});
    dispatcher.refresh();
    EXPECT_EQ(launch(dispatcher, handle, 1024).config, vector_config(4).text());
    EXPECT_EQ(launch(dispatcher, handle, 2048).config, vector_config(4).text()) << "the database was read again";
    dispatcher.thaw();
    dispatcher.refresh();
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
    EXPECT_EQ(launch(dispatcher, handle, 2048).rung, Rung::exact);
}

TEST_F(DispatcherLife, ANewProblemIsAnsweredByWhatWasKnownWhenFrozen) {
    tuned(2048, {{vector_config(8, 128), 40.0}});
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    dispatcher.freeze();
    tuned(2048, {{vector_config(2, 64), 10.0}});
    EXPECT_EQ(launch(dispatcher, handle, 2048).config, vector_config(8, 128).text());
}

TEST_F(DispatcherLife, WhileFrozenAGraphAndTheCallsBesideItAgree) {
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale"),
                 another = dispatcher.prepare("scale", {{"dtype", std::string{"f32"}}});
    launch(dispatcher, handle, 1024, stream);  // loads the default
    tuned(2048, {{vector_config(8, 128), 40.0}});
    dispatcher.refresh();
    dispatcher.freeze();
    driver.capturing = {stream};
    const Decision captured = launch(dispatcher, handle, 2048, stream);
    EXPECT_EQ(captured.rung, Rung::default_config);
    driver.capturing.clear();
    EXPECT_EQ(launch(dispatcher, handle, 2048, stream).config, captured.config);
    EXPECT_EQ(launch(dispatcher, another, 2048, stream).config, captured.config) << "at another call site";
    dispatcher.thaw();
    EXPECT_EQ(launch(dispatcher, handle, 2048, stream).rung, Rung::exact);
}

TEST_F(DispatcherLife, AFrozenConfigIsKeptThoughItIsForgotten) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    Dispatcher::Options few = options();
    few.most_problems = 8;
    Dispatcher dispatcher{few};
    const Handle handle = dispatcher.prepare("scale");
    dispatcher.freeze();
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
    for (std::int64_t n = 4; n < 400; n += 4) EXPECT_TRUE(launch(dispatcher, handle, n).launched);
    EXPECT_EQ(launch(dispatcher, handle, 1024).config, vector_config(8, 128).text());
}

TEST_F(DispatcherLife, AFrozenConfigThatFailsIsStillReplaced) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    launch(dispatcher, handle, 1024);
    dispatcher.freeze();
    const std::string winner = vector_config(8, 128).text();
    driver.on_launch = [winner](const std::string& binary) {
        return binary == winner ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
    };
    EXPECT_EQ(launch(dispatcher, handle, 1024).config, vector_config(4).text());
    driver.on_launch = {};
    EXPECT_EQ(launch(dispatcher, handle, 1024).config, vector_config(4).text());
}

// -- decisions of other processes

TEST_F(DispatcherLife, RanksThatTakeOverDecisionsRunTheSame) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    Dispatcher first{options()};
    const Handle handle = first.prepare("scale");
    launch(first, handle, 1024);
    launch(first, handle, 2048);
    const auto bytes = first.export_decisions();
    tuned(1024, {{vector_config(2, 64), 10.0}});  // news that only the second rank gets to see
    Dispatcher second{options()};
    EXPECT_NE(second.decision_hash(), first.decision_hash());
    const ImportedDecisions imported = second.import_decisions(bytes);
    EXPECT_EQ(imported.taken, 2u);
    EXPECT_EQ(imported.refused, 0u);
    EXPECT_EQ(second.decision_hash(), first.decision_hash());
    const Handle other = second.prepare("scale");
    const Decision decision = launch(second, other, 1024);
    EXPECT_EQ(decision.config, vector_config(8, 128).text()) << decision.why;
    launch(second, other, 2048);
    EXPECT_EQ(second.decision_hash(), first.decision_hash());
    EXPECT_EQ(second.export_decisions().size(), bytes.size());
    launch(second, other, 4096);
    EXPECT_NE(second.decision_hash(), first.decision_hash());
}

TEST_F(DispatcherLife, DecisionsTakenOverCountAtOnceAndAlsoWithoutADatabase) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    Dispatcher first{options()};
    launch(first, first.prepare("scale"), 1024);
    std::filesystem::remove(folder / "tune.db");
    Dispatcher second{options()};
    const Handle handle = second.prepare("scale");
    EXPECT_EQ(launch(second, handle, 1024).rung, Rung::default_config);
    second.import_decisions(first.export_decisions());
    const Decision decision = launch(second, handle, 1024);
    EXPECT_EQ(decision.rung, Rung::exact);
    EXPECT_TRUE(decision.verified);
    EXPECT_EQ(decision.why, "decided by another process, where it was 'exact'");
}

TEST_F(DispatcherLife, ADecisionThatIsNotValidHereGivesWay) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    Dispatcher first{options()};
    launch(first, first.prepare("scale"), 1024);
    const auto bytes = first.export_decisions();
    Store::open({.path = folder / "tune.db"})
        .put_negative({.device_fp = identify(0).fp,
                       .source = template_of(op(), *op().variant("vector")),
                       .config = vector_config(8, 128),
                       .ending = Ending::race},
                      environment());
    Dispatcher second{options()};
    EXPECT_EQ(second.import_decisions(bytes).taken, 1u);
    EXPECT_EQ(launch(second, second.prepare("scale"), 1024).config, vector_config(4).text());
    EXPECT_NE(second.decision_hash(), first.decision_hash()) << "ranks that run different configs look alike";
}

TEST_F(DispatcherLife, OnAnotherKindOfGpuADecisionRunsAndSaysWhereItIsFrom) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    Dispatcher first{options()};
    launch(first, first.prepare("scale"), 1024);
    driver.sm_count = 66;
    Dispatcher second{options()};
    second.import_decisions(first.export_decisions());
    const Decision decision = launch(second, second.prepare("scale"), 1024);
    EXPECT_EQ(decision.config, vector_config(8, 128).text());
    EXPECT_TRUE(decision.stale);
    EXPECT_EQ(decision.why, "decided by another process on another GPU, where it was 'exact'");
    EXPECT_EQ(second.decision_hash(), first.decision_hash());
}

TEST_F(DispatcherLife, DamagedDecisionsChangeNothingAndFrozenOnesTakeNone) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    Dispatcher first{options()}, second{options()};
    launch(first, first.prepare("scale"), 1024);
    auto bytes = first.export_decisions();
    const std::uint64_t before = second.decision_hash();
    bytes[bytes.size() / 2] ^= std::byte{1};
    EXPECT_THROW(second.import_decisions(bytes), Error);
    EXPECT_EQ(second.decision_hash(), before);
    second.freeze();
    EXPECT_THROW(second.import_decisions(first.export_decisions()), Error);
    EXPECT_EQ(second.decision_hash(), before);
}

// -- fork

// Goal: a child does not wait for a thread that it does not have. Method: the fork comes while another thread is
// between the launches of a sequence, and so has the turn of its working memory.
TEST_F(DispatcherLife, AChildOfAForkWaitsForNoThreadOfItsParent) {
    tuned(1024, {{vector_config(4, 256, 2), 40.0}});
    put_binary(vector_config(4, 256, 2), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    launch(dispatcher, handle, 1024);
    std::atomic<bool> inside{false}, go_on{false};
    driver.on_launch = [&](const std::string&) {
        inside = true;
        while (!go_on) std::this_thread::yield();
        return CUDA_SUCCESS;
    };
    std::thread other{[&] { launch(dispatcher, handle, 1024); }};
    while (!inside) std::this_thread::yield();
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(20);
        ::_exit(launch(dispatcher, handle, 1024).error == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    go_on = true;
    other.join();
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(DispatcherLife, AChildOfAForkIsToldAndTouchesNothing) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    auto dispatcher = std::make_unique<Dispatcher>(options());
    const Handle handle = dispatcher->prepare("scale");
    launch(*dispatcher, handle, 1024);
    const std::size_t loads = driver.loads.size();
    const pid_t child = ::fork();
    if (child == 0) {
        int wrong = 0;
        const Decision decision = ready(*dispatcher, handle, 2048);
        if (decision.rung != Rung::none || decision.error != CUDA_ERROR_NOT_INITIALIZED) wrong |= 1;
        dispatcher->refresh();
        if (!dispatcher->misses().empty()) wrong |= 2;
        try {
            dispatcher->explain("scale", {});
            wrong |= 4;
        } catch (const Error&) {
        }
        try {
            dispatcher->freeze();
            wrong |= 8;
        } catch (const Error&) {
        }
        if (driver.loads.size() != loads) wrong |= 16;
        dispatcher.reset();
        ::_exit(wrong);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(launch(*dispatcher, handle, 2048).rung, Rung::nearest) << "the parent goes on";
    dispatcher->refresh();
    EXPECT_EQ(launch(*dispatcher, handle, 1024).rung, Rung::exact);
}

}  // namespace
}  // namespace autotune
