// A launch through the dispatcher beside the driver's own call, on a real GPU: the same empty kernel either way, so
// that the difference is what the dispatcher costs. From 1 and 8 threads, each with a stream of its own.
//
//     dispatch_gpu_bench --benchmark_repetitions=20 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>
#include <cuda.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "autotune/dispatcher.h"
#include "device/compiler.h"
#include "device/driver.h"
#include "device/identity.h"
#include "device/nvrtc.h"
#include "tuner/loader/op_loader.h"
#include "tuner/model/op_set.h"

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

/// A stream that keeps its queue short: a full one would be timed instead of the call.
class Stream {
public:
    Stream() {
        check(driver().cuCtxSetCurrent(bench().context), "entering the context");
        check(driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
    }
    ~Stream() { driver().cuStreamDestroy(stream_); }
    CUstream get() const noexcept { return stream_; }
    void pause(benchmark::State& state) {
        if (++launched_ % 256 != 0) return;
        state.PauseTiming();
        driver().cuStreamSynchronize(stream_);
        state.ResumeTiming();
    }

private:
    CUstream stream_ = nullptr;
    int launched_ = 0;
};

void driver_alone(benchmark::State& state) {
    Stream stream;
    CUdeviceptr x = bench().memory, y = bench().memory + 4096;
    int n = 1024;
    void* arguments[] = {&x, &y, &n};
    for (auto _ : state) {
        benchmark::DoNotOptimize(
            driver().cuLaunchKernel(bench().kernel, 1, 1, 1, 32, 1, 1, 0, stream.get(), arguments, nullptr));
        stream.pause(state);
    }
}
BENCHMARK(driver_alone)->Threads(1)->Threads(8)->UseRealTime();

void dispatcher_and_driver(benchmark::State& state) {
    Stream stream;
    const std::array<std::int64_t, 1> shape{1024};
    const std::array<TensorArgument, 2> tensors{
        {{.data = reinterpret_cast<const void*>(bench().memory), .shape = shape},
         {.data = reinterpret_cast<const void*>(bench().memory + 4096), .shape = shape}}};
    for (auto _ : state) {
        benchmark::DoNotOptimize(bench().dispatcher->launch(bench().handle, tensors, {}, stream.get()));
        stream.pause(state);
    }
}
BENCHMARK(dispatcher_and_driver)->Threads(1)->Threads(8)->UseRealTime();

}  // namespace
}  // namespace autotune

int main(int count, char** arguments) {
    std::string why;
    if (!autotune::driver_if_present(&why) || !autotune::nvrtc_if_present(&why)) {
        std::fprintf(stderr, "skipped: %s\n", why.c_str());
        return 0;
    }
    benchmark::Initialize(&count, arguments);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
