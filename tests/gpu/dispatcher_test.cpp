// Goal: on a real GPU the dispatcher launches what was stored, the default where nothing was, and the result is right.
// Method: the built-in softmax on f32, a database made here, a plain loop on the CPU.
#include "autotune/dispatcher.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "device/driver.h"
#include "tests/gpu/softmax_on_gpu.h"

namespace autotune {
namespace {

using DispatcherOnGpu = samples::SoftmaxOnGpu;
using samples::Softmax;

TEST_F(DispatcherOnGpu, TheDefaultRunsWhereNothingIsTuned) {
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("softmax");
    for (const auto& [rows, cols] : {std::pair{512, 1024}, std::pair{33, 1000}, std::pair{7, 4097}}) {
        Softmax data{rows, cols};
        const Decision decision = dispatcher.launch(handle, data.tensors(), {}, nullptr);
        EXPECT_TRUE(decision.launched) << decision.why;
        EXPECT_EQ(decision.rung, Rung::default_config);
        EXPECT_LT(data.error(), 1e-6) << rows << "x" << cols << " " << decision.config;
    }
}

TEST_F(DispatcherOnGpu, AStoredConfigRunsAndItsBinaryIsKept) {
    const Config winner = tuned(512, 1024, "two_pass");
    Softmax data{512, 1024};
    {
        Dispatcher dispatcher{options()};
        const Decision decision = dispatcher.launch(dispatcher.prepare("softmax"), data.tensors(), {}, nullptr);
        EXPECT_EQ(decision.rung, Rung::exact) << decision.why;
        EXPECT_EQ(decision.config, winner.text());
        EXPECT_LT(data.error(), 1e-6);
    }
    data.clear();
    Dispatcher without_compiler{options(false)};
    const Decision decision = without_compiler.launch(without_compiler.prepare("softmax"), data.tensors(), {}, nullptr);
    EXPECT_EQ(decision.rung, Rung::exact) << decision.why;
    EXPECT_LT(data.error(), 1e-6);
}

TEST_F(DispatcherOnGpu, ACapturedCallReplays) {
    tuned(256, 2048, "two_pass");
    Softmax data{256, 2048};
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("softmax");
    CUstream raw = nullptr;
    check(driver().cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING), "making a stream");
    const OwnedStream stream{raw};
    EXPECT_EQ(dispatcher.ready(handle, data.tensors(), {}, raw).rung, Rung::exact);

    CUgraph graph = nullptr;
    check(driver().cuStreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_GLOBAL), "beginning a capture");
    const Decision decision = dispatcher.launch(handle, data.tensors(), {}, raw);
    check(driver().cuStreamEndCapture(raw, &graph), "ending a capture");
    const OwnedGraph owned{graph};
    EXPECT_EQ(decision.rung, Rung::exact) << decision.why;
    CUgraphExec exec = nullptr;
    check(driver().cuGraphInstantiate(&exec, graph, 0), "making the graph executable");
    const OwnedGraphExec owned_exec{exec};
    for (unsigned replay = 0; replay < 1000; ++replay) {
        if (replay % 50 == 0)
            data.renew(replay);
        else
            data.clear();
        check(driver().cuGraphLaunch(exec, raw), "replaying");
        check(driver().cuStreamSynchronize(raw), "waiting");
        ASSERT_LT(data.error(), 1e-6) << "replay " << replay;
    }
}

TEST_F(DispatcherOnGpu, UnderCaptureTheLoadedDefaultStandsInForAWinnerThatIsNotLoaded) {
    Softmax data{256, 2048};
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("softmax");
    CUstream raw = nullptr;
    check(driver().cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING), "making a stream");
    const OwnedStream stream{raw};
    EXPECT_EQ(dispatcher.launch(handle, data.tensors(), {}, raw).rung, Rung::default_config);
    tuned(256, 2048, "two_pass");
    dispatcher.refresh();
    check(driver().cuStreamSynchronize(raw), "waiting");

    CUgraph graph = nullptr;
    check(driver().cuStreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_GLOBAL), "beginning a capture");
    const Decision captured = dispatcher.launch(handle, data.tensors(), {}, raw);
    check(driver().cuStreamEndCapture(raw, &graph), "ending a capture");
    const OwnedGraph owned{graph};
    EXPECT_TRUE(captured.launched) << captured.why;
    EXPECT_EQ(captured.rung, Rung::default_config) << captured.why;
    CUgraphExec exec = nullptr;
    check(driver().cuGraphInstantiate(&exec, graph, 0), "making the graph executable");
    const OwnedGraphExec owned_exec{exec};
    data.clear();
    check(driver().cuGraphLaunch(exec, raw), "replaying");
    check(driver().cuStreamSynchronize(raw), "waiting");
    EXPECT_LT(data.error(), 1e-6);

    data.clear();
    EXPECT_EQ(dispatcher.launch(handle, data.tensors(), {}, raw).rung, Rung::exact);
    check(driver().cuStreamSynchronize(raw), "waiting");
    EXPECT_LT(data.error(), 1e-6);
}

TEST_F(DispatcherOnGpu, UnderCaptureWithNothingLoadedTheCaptureSurvives) {
    Softmax data{128, 512};
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("softmax");
    CUstream raw = nullptr;
    check(driver().cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING), "making a stream");
    const OwnedStream stream{raw};
    check(driver().cuStreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_GLOBAL), "beginning a capture");
    const Decision decision = dispatcher.launch(handle, data.tensors(), {}, raw);
    CUgraph graph = nullptr;
    EXPECT_EQ(driver().cuStreamEndCapture(raw, &graph), CUDA_SUCCESS) << "the call spoiled the capture";
    const OwnedGraph owned{graph};
    EXPECT_FALSE(decision.launched);
    EXPECT_TRUE(dispatcher.launch(handle, data.tensors(), {}, raw).launched);
    check(driver().cuStreamSynchronize(raw), "waiting");
    EXPECT_LT(data.error(), 1e-6);
}

TEST_F(DispatcherOnGpu, ThreadsOnStreamsOfTheirOwnGetRightResults) {
    tuned(256, 1024, "two_pass");
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("softmax");
    std::vector<std::thread> threads;
    std::array<double, 8> errors{};
    for (std::size_t t = 0; t < errors.size(); ++t)
        threads.emplace_back([&, t] {
            check(driver().cuCtxSetCurrent(context_), "entering the context");
            CUstream raw = nullptr;
            check(driver().cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING), "making a stream");
            const OwnedStream stream{raw};
            for (int i = 0; i < 20; ++i) {
                Softmax data{256, t % 2 ? 1024 : 768};
                dispatcher.launch(handle, data.tensors(), {}, raw);
                check(driver().cuStreamSynchronize(raw), "waiting");
                errors[t] = std::max(errors[t], data.error());
            }
        });
    for (std::thread& thread : threads) thread.join();
    for (const double error : errors) EXPECT_LT(error, 1e-6);
}

}  // namespace
}  // namespace autotune
