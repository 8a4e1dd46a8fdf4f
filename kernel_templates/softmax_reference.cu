// softmax in double: what stands in for the CPU reference where that would take seconds
//
// x                 T, row-major [rows, cols], ldx elements from row to row
// value, magnitude  double, [rows, cols], packed: the result, and its error bound in units of 2^-23, as
//                   tuner/references/softmax.cpp derives it
// launch            grid = any, block = 256; a block takes a row at a time
#include "reference.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif

extern "C" __global__ void __launch_bounds__(256)
    softmax_reference(const T* x, double* value, double* magnitude, long long rows, int cols, long long ldx) {
    const double common = 8.0 + 0.25 * sqrt(static_cast<double>(cols));
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* from = x + row * ldx;
        const auto at = [=](long long c) { return number(from[c]); };
        const double max = block_max(cols, at);
        const double sum = block_sum(cols, [=](long long c) { return exp(at(c) - max); });
        for (int c = threadIdx.x; c < cols; c += 256) {
            const double distance = max - at(c), y = exp(-distance) / sum;
            value[row * cols + c] = y;
            magnitude[row * cols + c] = y * (common + 1.25 * fmin(distance, 1000.0));
        }
    }
}
