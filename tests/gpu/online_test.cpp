// Goal: on a real GPU the calls of an application find a better config, get right results all the while, and spoil no
// capture; each context gets kernels of its own.
// Method: softmax of short rows, whose near problem was won by a config that wastes most of a block; a far one's winner
// is many times faster. A plain loop on the CPU says what is right.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "autotune/dispatcher.h"
#include "cache/store/store.h"
#include "device/driver.h"
#include "device/identity.h"
#include "tests/gpu/softmax_on_gpu.h"

namespace autotune {
namespace {

using samples::Softmax;

constexpr std::int64_t rows = 65'536, cols = 64;
constexpr std::string_view trial = "a trial of online tuning";

OwnedStream make_stream() {
    CUstream raw = nullptr;
    check(driver().cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING), "making a stream");
    return OwnedStream{raw};
}

void wait_for(const OwnedStream& stream) { check(driver().cuStreamSynchronize(stream.get()), "waiting"); }

class OnlineOnGpu : public samples::SoftmaxOnGpu {
protected:
    void SetUp() override {
        SoftmaxOnGpu::SetUp();
        if (IsSkipped()) return;
        const Instance near = instance(rows / 2, cols), far = instance(rows / 64, cols);
        slow_ = store(near, near.resolve(config_from_text("two_pass THREADS=1024"))).text();
        fast_ = store(far, far.default_config()).text();
        ASSERT_NE(slow_, fast_);
    }
    Dispatcher::Options online() {
        Dispatcher::Options o = options();
        o.online = {"softmax"};
        o.online_share = 0.5;
        o.log = [this](const std::string& sentence) {
            const std::lock_guard lock{mutex_};
            said_ += sentence + "\n";
        };
        return o;
    }
    std::string said() {
        const std::lock_guard lock{mutex_};
        return said_;
    }
    /// Calls, each checked for what it says; the results are checked where a candidate ran, and now and then. The
    /// number of calls until something that was measured here answers; 0: nothing does.
    int calls_until_better(Dispatcher& dispatcher, const Handle& handle, Softmax& data, const OwnedStream& stream,
                           int most = 3000) {
        for (int i = 1; i <= most; ++i) {
            const Decision decision = dispatcher.launch(handle, data.tensors(), {}, stream.get());
            wait_for(stream);
            if (!decision.launched || decision.error) {
                ADD_FAILURE() << "call " << i << ": " << decision.why;
                return 0;
            }
            const bool tried = decision.why == trial;
            if (tried || i % 100 == 1) {
                EXPECT_LT(data.error(), 1e-6) << "call " << i << ": " << decision.config;
                data.clear();
            }
            if (!tried && decision.config != slow_) return i;
        }
        return 0;
    }

    std::string slow_, fast_;

private:
    std::mutex mutex_;
    std::string said_;
};

TEST_F(OnlineOnGpu, TheCallsOfAnApplicationFindABetterConfigAndTheNextProcessBeginsWithIt) {
    Softmax data{rows, cols};
    const OwnedStream stream = make_stream();
    Dispatcher::Options o = online();
    o.learn = folder_ / "learned.db";
    {
        Dispatcher dispatcher{o};
        const Handle handle = dispatcher.prepare("softmax");
        const Decision first = dispatcher.launch(handle, data.tensors(), {}, stream.get());
        wait_for(stream);
        ASSERT_EQ(first.rung, Rung::nearest) << first.why;
        ASSERT_EQ(first.config, slow_);
        EXPECT_LT(data.error(), 1e-6);
        EXPECT_GT(calls_until_better(dispatcher, handle, data, stream), 8) << said();
        data.clear();
        const Decision last = dispatcher.launch(handle, data.tensors(), {}, stream.get());
        wait_for(stream);
        EXPECT_EQ(last.config, fast_) << last.why << "\n" << said();
        EXPECT_EQ(last.rung, Rung::exact) << last.why;
        EXPECT_LT(data.error(), 1e-6);
    }
    const std::vector<Record> records =
        Store::open({.path = folder_ / "learned.db", .mode = Store::Mode::read}).records({.op = "softmax"}, {});
    ASSERT_EQ(records.size(), 1u) << said();
    EXPECT_EQ(records.front().config.text(), fast_);
    EXPECT_EQ(records.front().device.fp, identify(0).fp);
    EXPECT_EQ(records.front().run.effort, SearchEffort::online);
    EXPECT_GT(records.front().time_us, 0);
    Dispatcher next{o};
    data.clear();
    const Decision decision = next.launch(next.prepare("softmax"), data.tensors(), {}, stream.get());
    wait_for(stream);
    EXPECT_EQ(decision.config, fast_) << decision.why;
    EXPECT_EQ(decision.rung, Rung::exact) << decision.why;
    EXPECT_LT(data.error(), 1e-6);
}

TEST_F(OnlineOnGpu, CapturesBetweenCallsAreNeitherTriedInNorSpoiled) {
    Softmax data{rows, cols};
    const OwnedStream stream = make_stream();
    Dispatcher dispatcher{online()};
    const Handle handle = dispatcher.prepare("softmax");
    dispatcher.ready(handle, data.tensors(), {}, stream.get());
    int captured_slow = 0;
    bool better = false;
    for (int round = 0; round < 300 && !better; ++round) {
        CUgraph graph = nullptr;
        check(driver().cuStreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL), "beginning a capture");
        // Long enough for the tuner's thread, which loads and allocates meanwhile.
        if (round < 50) std::this_thread::sleep_for(std::chrono::milliseconds{2});
        const Decision captured = dispatcher.launch(handle, data.tensors(), {}, stream.get());
        ASSERT_EQ(driver().cuStreamEndCapture(stream.get(), &graph), CUDA_SUCCESS) << "round " << round;
        const OwnedGraph owned{graph};
        ASSERT_TRUE(captured.launched) << captured.why;
        EXPECT_NE(captured.why, trial);
        captured_slow += captured.config == slow_;
        if (round % 20 == 0) {
            CUgraphExec exec = nullptr;
            check(driver().cuGraphInstantiate(&exec, graph, 0), "making the graph executable");
            const OwnedGraphExec owned_exec{exec};
            data.clear();
            check(driver().cuGraphLaunch(exec, stream.get()), "replaying");
            wait_for(stream);
            EXPECT_LT(data.error(), 1e-6) << "round " << round << ": " << captured.config;
        }
        better = calls_until_better(dispatcher, handle, data, stream, 10) > 0;
    }
    EXPECT_TRUE(better) << said();
    EXPECT_GT(captured_slow, 0);
}

TEST_F(OnlineOnGpu, FrozenNothingIsTriedAndThawedItGoesOn) {
    Softmax data{rows, cols};
    const OwnedStream stream = make_stream();
    Dispatcher dispatcher{online()};
    const Handle handle = dispatcher.prepare("softmax");
    EXPECT_EQ(calls_until_better(dispatcher, handle, data, stream, 12), 0);
    dispatcher.freeze();
    for (int i = 0; i < 300; ++i) {
        const Decision decision = dispatcher.launch(handle, data.tensors(), {}, stream.get());
        wait_for(stream);
        ASSERT_EQ(decision.config, slow_) << "call " << i;
        ASSERT_NE(decision.why, trial) << "call " << i;
    }
    dispatcher.thaw();
    EXPECT_GT(calls_until_better(dispatcher, handle, data, stream), 0) << said();
}

TEST_F(OnlineOnGpu, StreamsOfSeveralThreadsGetRightResultsWhileTheirProblemIsTuned) {
    Dispatcher dispatcher{online()};
    const Handle handle = dispatcher.prepare("softmax");
    std::array<double, 4> errors{};
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (double& error : errors)
        threads.emplace_back([&] {
            check(driver().cuCtxSetCurrent(context_), "entering the context");
            const OwnedStream stream = make_stream();
            Softmax data{rows, cols};
            for (int i = 0; i < 300; ++i) {
                const Decision decision = dispatcher.launch(handle, data.tensors(), {}, stream.get());
                wait_for(stream);
                failed += !decision.launched;
                if (decision.why != trial && i % 50 != 0) continue;
                error = std::max(error, data.error());
                data.clear();
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failed, 0) << said();
    for (const double error : errors) EXPECT_LT(error, 1e-6) << said();
}

/// A second context of the GPU. The driver's table lacks what only tests need.
class SecondContext {
public:
    SecondContext() {
        void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        const auto create =
            reinterpret_cast<CUresult (*)(CUcontext*, unsigned, CUdevice)>(::dlsym(library, "cuCtxCreate_v2"));
        destroy_ = reinterpret_cast<CUresult (*)(CUcontext)>(::dlsym(library, "cuCtxDestroy_v2"));
        if (create && destroy_) create(&context_, 0, 0);
    }
    ~SecondContext() {
        if (context_) destroy_(context_);
    }
    SecondContext(const SecondContext&) = delete;
    SecondContext& operator=(const SecondContext&) = delete;
    CUcontext get() const noexcept { return context_; }

private:
    CUcontext context_ = nullptr;
    CUresult (*destroy_)(CUcontext) = nullptr;
};

TEST_F(OnlineOnGpu, EachContextRunsKernelsOfItsOwn) {
    const SecondContext second;
    if (!second.get()) GTEST_SKIP() << "the driver makes no second context";
    Dispatcher dispatcher{online()};
    const Handle handle = dispatcher.prepare("softmax");
    for (int round = 0; round < 20; ++round)
        for (const CUcontext context : {context_, second.get()}) {
            check(driver().cuCtxSetCurrent(context), "entering a context");
            const OwnedStream stream = make_stream();
            Softmax data{rows, cols};
            for (int i = 0; i < 5; ++i) {
                data.clear();
                const Decision decision = dispatcher.launch(handle, data.tensors(), {}, stream.get());
                wait_for(stream);
                ASSERT_TRUE(decision.launched) << decision.why;
                ASSERT_LT(data.error(), 1e-6) << "round " << round << ": " << decision.config;
            }
        }
    check(driver().cuCtxSetCurrent(context_), "entering the first context");
    const OwnedStream stream = make_stream();
    Softmax data{rows, cols};
    EXPECT_GT(calls_until_better(dispatcher, handle, data, stream), 0) << said();
}

}  // namespace
}  // namespace autotune
