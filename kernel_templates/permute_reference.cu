// transpose, permute, copy: what stands in for the CPU reference where that would take seconds
//
// x                 T, x[i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3]
// value, magnitude  double, [e0, e1, e2, e3]: the same elements in that order, and without signs
// launch            grid = any, block = 256
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#include <cuda_fp8.h>
#ifndef T
#define T __nv_bfloat16
#endif

template <class Element>
__device__ __forceinline__ double number(const Element& x) {
    return static_cast<double>(static_cast<float>(x));
}
__device__ __forceinline__ double number(double x) { return x; }
__device__ __forceinline__ double number(long long x) { return static_cast<double>(x); }
__device__ __forceinline__ double number(int x) { return x; }
__device__ __forceinline__ double number(unsigned x) { return x; }

extern "C" __global__ void __launch_bounds__(256)
    permute_reference(const T* x, double* value, double* magnitude, long long e0, long long e1, long long e2,
                      long long e3, long long s0, long long s1, long long s2, long long s3) {
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < e0 * e1 * e2 * e3; i += gridDim.x * 256LL) {
        value[i] = number(x[i / e3 / e2 / e1 * s0 + i / e3 / e2 % e1 * s1 + i / e3 % e2 * s2 + i % e3 * s3]);
        magnitude[i] = fabs(value[i]);
    }
}
