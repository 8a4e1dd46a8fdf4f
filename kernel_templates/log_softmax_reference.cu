// log_softmax in double: what stands in for the CPU reference where that would take seconds
//
// x                 T, row-major [rows, cols], ldx elements from row to row
// value, magnitude  double, [rows, cols], packed: as tuner/references/log_softmax.cpp derives them
// launch            grid = any, block = 256; a block takes a row at a time
#include "reference.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif

extern "C" __global__ void __launch_bounds__(256)
    log_softmax_reference(const T* x, double* value, double* magnitude, long long rows, int cols, long long ldx) {
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* from = x + row * ldx;
        const auto at = [=](long long c) { return static_cast<double>(to_float(from[c])); };
        const auto [max, sum, far] = block_exps(cols, at);
        const double log_sum = log(sum);
        const double common = 8.0 + 0.25 * sqrt(static_cast<double>(cols)) + 1.25 * far / sum + log_sum;
        for (int c = threadIdx.x; c < cols; c += 256) {
            const double distance = max - at(c), y = -distance - log_sum;
            value[row * cols + c] = y;
            magnitude[row * cols + c] = common + (isfinite(y) ? fabs(y) + distance : 0.0);
        }
    }
}
