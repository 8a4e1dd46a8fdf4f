// Goal: on a real GPU the dispatcher launches what was stored, the default where nothing was, and the result is right.
// Method: the built-in softmax on f32, a database made here, a plain loop on the CPU.
#include "autotune/dispatcher.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <thread>

#include "cache/store/binaries.h"
#include "cache/store/store.h"
#include "device/driver.h"
#include "device/identity.h"
#include "device/nvrtc.h"
#include "tests/cache/samples.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/model/op_set.h"

namespace autotune {
namespace {

const std::string& obstacle() {
    static const std::string why = [] {
        std::string reason;
        if (!driver_if_present(&reason)) return reason;
        if (!nvrtc_if_present(&reason)) return reason;
        return present_devices().empty() ? std::string{"there is no GPU here"} : std::string{};
    }();
    return why;
}

std::vector<float> softmax(const std::vector<float>& x, std::int64_t rows, std::int64_t cols) {
    std::vector<float> y(x.size());
    for (std::int64_t r = 0; r < rows; ++r) {
        const float* row = x.data() + r * cols;
        const double largest = *std::max_element(row, row + cols);
        double sum = 0;
        for (std::int64_t c = 0; c < cols; ++c) sum += std::exp(row[c] - largest);
        for (std::int64_t c = 0; c < cols; ++c)
            y[static_cast<std::size_t>(r * cols + c)] = static_cast<float>(std::exp(row[c] - largest) / sum);
    }
    return y;
}

/// x and y of a softmax on the device, with what y should be.
class Softmax {
public:
    Softmax(std::int64_t rows, std::int64_t cols) : shape_{rows, cols}, x_(static_cast<std::size_t>(rows * cols)) {
        for (OwnedMemory* memory : {&device_x_, &device_y_}) {
            CUdeviceptr address = 0;
            check(driver().cuMemAlloc(&address, bytes()), "allocating {} bytes", bytes());
            *memory = OwnedMemory{address};
        }
        renew(7);
    }
    /// Other values in the same place, and y poisoned.
    void renew(unsigned seed) {
        std::mt19937 random{seed};
        std::normal_distribution<float> normal;
        for (float& value : x_) value = normal(random);
        want_ = softmax(x_, shape_[0], shape_[1]);
        check(driver().cuMemcpyHtoD(device_x_.get(), x_.data(), bytes()), "copying x");
        clear();
    }
    /// Waits: a memset is asynchronous, and streams that do not block know nothing of it.
    void clear() {
        check(driver().cuMemsetD8(device_y_.get(), 0xff, bytes()), "poisoning y");
        check(driver().cuCtxSynchronize(), "waiting");
    }
    std::array<TensorArgument, 2> tensors() const {
        return {{{.data = reinterpret_cast<const void*>(device_x_.get()), .shape = shape_},
                 {.data = reinterpret_cast<const void*>(device_y_.get()), .shape = shape_}}};
    }
    /// Largest difference; NaN counts as infinite.
    double error() const {
        std::vector<float> got(x_.size());
        check(driver().cuMemcpyDtoH(got.data(), device_y_.get(), bytes()), "copying y");
        double largest = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
            const double difference = std::abs(static_cast<double>(got[i]) - want_[i]);
            largest = std::isfinite(difference) ? std::max(largest, difference) : INFINITY;
        }
        return largest;
    }

private:
    std::size_t bytes() const noexcept { return x_.size() * sizeof(float); }
    std::array<std::int64_t, 2> shape_;
    std::vector<float> x_, want_;
    OwnedMemory device_x_, device_y_;
};

class DispatcherOnGpu : public testing::Test {
protected:
    void SetUp() override {
        if (!obstacle().empty()) GTEST_SKIP() << obstacle();
        CUdevice device = 0;
        check(driver().cuDeviceGet(&device, 0), "opening the GPU");
        check(driver().cuDevicePrimaryCtxRetain(&context_, device), "making a context");
        check(driver().cuCtxSetCurrent(context_), "entering the context");
        ::setenv("AUTOTUNE_DB", (folder_ / "tune.db").c_str(), 1);
    }
    void TearDown() override { ::unsetenv("AUTOTUNE_DB"); }
    Instance instance(std::int64_t rows, std::int64_t cols) const {
        return Instance::make(ops_.find("softmax"), {{"rows", rows}, {"cols", cols}, {"dtype", std::string{"f32"}}},
                              identify(0).limits);
    }
    /// Stores the defaults of a variant as the winner of a search.
    Config tuned(std::int64_t rows, std::int64_t cols, const char* variant) {
        const Instance it = instance(rows, cols);
        const Config config = it.defaults_of(*it.op().variant(variant)).value();
        Store store = Store::open({.path = folder_ / "tune.db"});
        const RunId run = store.begin_run({.device = identify(0),
                                           .environment = {.nvrtc_major = nvrtc().major, .nvrtc_minor = nvrtc().minor},
                                           .templates = templates_of(it.op()),
                                           .problem = problem_of(it),
                                           .info = {}});
        store.finish_run(run, {.finalists = {samples::finalist(config, 10.0)}, .evaluated = 9, .space_size = 64});
        return config;
    }
    Dispatcher::Options options(bool compile = true) { return {.ops = &ops_, .compile = compile}; }

    samples::Folder folder_;
    OpSet ops_;
    CUcontext context_ = nullptr;
};

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
