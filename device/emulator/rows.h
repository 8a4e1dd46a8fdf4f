#ifndef AUTOTUNE_DEVICE_EMULATOR_ROWS_H
#define AUTOTUNE_DEVICE_EMULATOR_ROWS_H

#include <cstdint>

#include "device/emulator/op.h"
#include "device/emulator/warp.h"

namespace autotune::emulator {

/// The hot part of the interpreter, built for a kind of CPU: one function an operation and type over rows of 32 lanes,
/// and the loop that calls them. Results are the same in all builds.
struct RowBuild {
    const char* name;
    /// The handler of an operation; null where there is none for these types and modifiers.
    Handler (*select)(const Selector& selector);
    /// Runs a warp for at most `steps` ops.
    Stop (*run)(Warp& warp, std::uint64_t steps);
    /// c (m x n) += a (m x k) b (k x n), by rows; n a multiple of 8, m of 4.
    void (*multiply)(const float* a, const float* b, float* c, int m, int n, int k);
};

/// With AVX2, FMA and F16C: without them a fused multiply-add is a call.
extern const RowBuild fast_rows;
extern const RowBuild baseline_rows;

/// The best that this CPU has; AUTOTUNE_EMULATOR_ROWS=baseline asks for the other one.
const RowBuild& row_build();
/// For tests: that one from now on; null: the best again. Programs decoded before keep their handlers.
void choose_row_build(const RowBuild* build);

}  // namespace autotune::emulator
#endif
