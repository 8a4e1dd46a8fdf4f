// softmax in double: what stands in for the CPU reference where that would take seconds
//
// x                 T, row-major [rows, cols], ldx elements from row to row
// value, magnitude  double, [rows, cols], packed: the result, and its error bound in units of 2^-23, as
//                   tuner/references/softmax.cpp derives it
// launch            grid = any, block = 256; a block takes a row at a time
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif

/// `mine` combined over the 256 threads of the block.
template <class Combine>
__device__ double block_reduce(double mine, double* slots, Combine combine) {
    __syncthreads();  // the last use of the slots is over
    slots[threadIdx.x] = mine;
    for (unsigned half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) slots[threadIdx.x] = combine(slots[threadIdx.x], slots[threadIdx.x + half]);
    }
    __syncthreads();
    return slots[0];
}

extern "C" __global__ void __launch_bounds__(256)
    softmax_reference(const T* x, double* value, double* magnitude, long long rows, int cols, long long ldx) {
    __shared__ double slots[256];
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* from = x + row * ldx;
        double max = minus_infinity, sum = 0.0;
        for (int c = threadIdx.x; c < cols; c += 256) max = fmax(max, static_cast<double>(to_float(from[c])));
        max = block_reduce(max, slots, [](double a, double b) { return fmax(a, b); });
        for (int c = threadIdx.x; c < cols; c += 256) sum += exp(to_float(from[c]) - max);
        sum = block_reduce(sum, slots, [](double a, double b) { return a + b; });
        const double common = 8.0 + 0.25 * sqrt(static_cast<double>(cols));
        for (int c = threadIdx.x; c < cols; c += 256) {
            const double distance = max - to_float(from[c]);
            const double y = exp(-distance) / sum;
            value[row * cols + c] = y;
            magnitude[row * cols + c] = y * (common + 1.25 * fmin(distance, 1000.0));
        }
    }
}
