// A launch through the dispatcher beside the driver's own call, on a real GPU: the same empty kernel either way, so
// that the difference is what the dispatcher costs. From 1 and 8 threads, each with a stream of its own. The two take
// turns, 64 launches each, so that what drifts meets both; medians of the turns with their 95 % intervals.
//
//     dispatch_gpu_bench [TURNS]
#include <cuda.h>
#include <fmt/format.h>

#include <array>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "autotune/dispatcher.h"
#include "device/compiler.h"
#include "device/driver.h"
#include "device/identity.h"
#include "device/nvrtc.h"
#include "tuner/loader/op_loader.h"
#include "tuner/model/op_set.h"
#include "tuner/statistics.h"

namespace autotune {
namespace {

constexpr const char* source = "extern \"C\" __global__ void nothing(const float* x, float* y, int n) {}\n";

Op nothing_op() {
    static constexpr std::string_view toml = R"toml(
format = 1
op = "nothing"
summary = "y is left as it is"
[problem]
n = { dim = "near", default = 1024 }
[[tensor]]
name = "x"
role = "in"
dtype = "f32"
shape = ["n"]
[[tensor]]
name = "y"
role = "out"
dtype = "f32"
shape = ["n"]
[reference]
kernel = "only"
[tolerance]
y = { exact = true }
[[kernel]]
name = "only"
source = "nothing.cu"
entry = "nothing"
[[kernel.launch]]
grid = [1]
block = [32]
args = ["x", "y", "i32(n)"]
)toml";
    const MemoryFiles files{{{"nothing.cu", source}}};
    return load_op(toml, files, "nothing.toml");
}

/// The GPU with the kernel loaded both ways.
struct Bench {
    CUcontext context = nullptr;
    CUfunction kernel = nullptr;
    CUdeviceptr memory = 0;
    OpSet ops = OpSet::of({nothing_op()});
    std::unique_ptr<Dispatcher> dispatcher;
    Handle handle;

    Bench() {
        CUdevice device = 0;
        check(driver().cuDeviceGet(&device, 0), "opening the GPU");
        check(driver().cuDevicePrimaryCtxRetain(&context, device), "making a context");
        check(driver().cuCtxSetCurrent(context), "entering the context");
        check(driver().cuMemAlloc(&memory, 8192), "allocating");
        Compiler compiler;
        const CompileResult result = compiler.compile({.name = "nothing.cu",
                                                       .source = source,
                                                       .headers = {},
                                                       .defines = {},
                                                       .options = {},
                                                       .entries = {"nothing"},
                                                       .arch = arch_name(identify(0).limits.cc)});
        CUmodule module = nullptr;
        check(driver().cuModuleLoadData(&module, result.artefact.cubin.data()), "loading the kernel");
        check(driver().cuModuleGetFunction(&kernel, module, "nothing"), "finding the kernel");
        dispatcher = std::make_unique<Dispatcher>(Dispatcher::Options{.user_database = false, .ops = &ops});
        handle = dispatcher->prepare("nothing");
    }
};

Bench& bench() {
    static Bench one;
    return one;
}

constexpr int launches_a_turn = 64;

/// One thread's stream, and the two ways to launch on it.
class Caller {
public:
    Caller() {
        check(driver().cuCtxSetCurrent(bench().context), "entering the context");
        check(driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
    }
    ~Caller() { driver().cuStreamDestroy(stream_); }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

    void by_driver() {
        void* arguments[] = {&x_, &y_, &n_};
        check(driver().cuLaunchKernel(bench().kernel, 1, 1, 1, 32, 1, 1, 0, stream_, arguments, nullptr), "launching");
    }
    void by_dispatcher() {
        const std::array<TensorArgument, 2> tensors{{{.data = reinterpret_cast<const void*>(x_), .shape = shape_},
                                                     {.data = reinterpret_cast<const void*>(y_), .shape = shape_}}};
        bench().dispatcher->launch(bench().handle, tensors, {}, stream_);
    }

    /// Microseconds a launch. The queue is emptied after each turn: a full one would be timed instead of the call.
    double turn_us(void (Caller::*launch)()) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < launches_a_turn; ++i) (this->*launch)();
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
        check(driver().cuStreamSynchronize(stream_), "waiting for the launches");
        return took.count() / launches_a_turn;
    }

private:
    CUstream stream_ = nullptr;
    CUdeviceptr x_ = bench().memory, y_ = bench().memory + 4096;
    int n_ = 1024;
    std::array<std::int64_t, 1> shape_{1024};
};

/// Microseconds a launch, by turn; with several threads, the median thread's.
struct Turns {
    std::vector<double> driver_us, dispatcher_us, added_us;
};

Turns take_turns(int threads, int turns) {
    std::vector<std::vector<double>> driver_us(turns, std::vector<double>(threads)), dispatcher_us = driver_us;
    std::barrier together(threads);
    const auto body = [&](int thread) {
        Caller caller;
        for (int i = -turns / 10 - 1; i < turns; ++i) {  // the first ones warm up
            together.arrive_and_wait();
            const double alone = caller.turn_us(&Caller::by_driver);
            together.arrive_and_wait();
            const double dispatched = caller.turn_us(&Caller::by_dispatcher);
            if (i < 0) continue;
            driver_us[i][thread] = alone;
            dispatcher_us[i][thread] = dispatched;
        }
    };
    {
        std::vector<std::jthread> pool;
        for (int thread = 0; thread < threads; ++thread) pool.emplace_back(body, thread);
    }
    Turns taken;
    for (int i = 0; i < turns; ++i) {
        taken.driver_us.push_back(median(driver_us[i]));
        taken.dispatcher_us.push_back(median(dispatcher_us[i]));
        taken.added_us.push_back(taken.dispatcher_us.back() - taken.driver_us.back());
    }
    return taken;
}

std::string text(const Interval& us) { return fmt::format("{:.3f} [{:.3f}, {:.3f}]", us.median, us.low, us.high); }

}  // namespace
}  // namespace autotune

int main(int count, char** arguments) {
    std::string why;
    if (!autotune::driver_if_present(&why) || !autotune::nvrtc_if_present(&why)) {
        std::fprintf(stderr, "skipped: %s\n", why.c_str());
        return 0;
    }
    const int turns = count > 1 ? std::atoi(arguments[1]) : 2000;
    if (turns < 6) {
        std::fprintf(stderr, "error: '%s' is not a number of turns; give 6 or more\n", arguments[1]);
        return 1;
    }
    fmt::print("us a launch        driver alone             with dispatcher          added\n");
    for (const int threads : {1, 8}) {
        const autotune::Turns taken = autotune::take_turns(threads, turns);
        fmt::print("{} thread{:<8} {:<24} {:<24} {}\n", threads, threads == 1 ? "" : "s",
                   autotune::text(autotune::median_interval(taken.driver_us)),
                   autotune::text(autotune::median_interval(taken.dispatcher_us)),
                   autotune::text(autotune::median_interval(taken.added_us)));
    }
    return 0;
}
