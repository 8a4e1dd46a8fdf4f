// The CPU loops of gemm's reference, one thread, double: GFLOP/s of each rung beside Eigen.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "tuner/references/gemm_loops.h"

namespace {

using Loops = void (*)(autotune::GemmShape, std::span<const double>, std::span<const double>, std::span<double>);

void run(benchmark::State& state, Loops loops) {
    const auto n = static_cast<std::size_t>(state.range(0));
    std::mt19937_64 random{1};
    std::normal_distribution<double> normal;
    std::vector<double> a(n * n), b(n * n), c(n * n);
    for (double& value : a) value = normal(random);
    for (double& value : b) value = normal(random);
    for (auto _ : state) {
        loops({n, n, n}, a, b, c);
        benchmark::DoNotOptimize(c.data());
        benchmark::ClobberMemory();
    }
    const double flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    state.counters["FLOP/s"] =
        benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

BENCHMARK_CAPTURE(run, naive, autotune::gemm_naive)->Arg(256)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, blocked, autotune::gemm_blocked)->Arg(256)->Arg(512)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, vectorised, autotune::gemm_vectorised)
    ->Arg(256)
    ->Arg(512)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, eigen, autotune::gemm_eigen)->Arg(256)->Arg(512)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace
