// histogram with atomics of whole doubles: what stands in for the CPU reference where that would take seconds
//
// x                 T, [n]
// value, magnitude  double, [bins]
// launch            histogram_reference_clear  grid = any, block = 256
//                   histogram_reference        grid = any, block = 256
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T float
#endif

extern "C" __global__ void __launch_bounds__(256)
    histogram_reference_clear(double* value, double* magnitude, int bins) {
    for (int b = blockIdx.x * 256 + threadIdx.x; b < bins; b += gridDim.x * 256) value[b] = magnitude[b] = 0.0;
}

template <class X>
__device__ int bin_of(X element, int bins, float low, float high) {
    const float x = to_float(element);
    if (!(x >= low && x <= high)) return -1;
    const float factor = __fdiv_rn(static_cast<float>(bins), __fsub_rn(high, low));
    return min(static_cast<int>(floorf(__fmul_rn(__fsub_rn(x, low), factor))), bins - 1);
}
__device__ int bin_of(int x, int, float, float) { return x; }
__device__ int bin_of(unsigned char x, int, float, float) { return x; }

extern "C" __global__ void __launch_bounds__(256)
    histogram_reference(const T* x, double* value, double* magnitude, long long n, int bins, float low, float high) {
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += gridDim.x * 256LL) {
        const int bin = bin_of(x[i], bins, low, high);
        if (bin < 0 || bin >= bins) continue;
        atomicAdd(value + bin, 1.0);
        atomicAdd(magnitude + bin, 1.0);
    }
}
