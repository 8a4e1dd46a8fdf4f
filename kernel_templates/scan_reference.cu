// scan in double: what stands in for the CPU reference where that would take seconds
//
// x                 T, [rows, n], packed
// value, magnitude  double, [rows, n]: sums, and sums of magnitudes, as tuner/references/scan.cpp says
// launch            in this order, each with grid = any and block = 256:
//                   scan_reference_chunks  a thread a chunk: what is before an element in its chunk
//                   scan_reference_carry   a thread a row: where a chunk starts, what is before it in the row
//                   scan_reference_spread  that added to the rest of the chunk
//                   scan_reference_finish  each element itself added, where sums are inclusive; whole numbers wrapped
#include "reference.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T float
#endif
#ifndef EXCLUSIVE
#define EXCLUSIVE 0
#endif

constexpr long long chunk = 4096;

__device__ double settled(float, double sum) { return sum; }
__device__ double settled(__half, double sum) { return sum; }
__device__ double settled(__nv_bfloat16, double sum) { return sum; }
__device__ double settled(int, double sum) {
    return static_cast<int>(static_cast<unsigned>(static_cast<long long>(sum)));
}

extern "C" __global__ void __launch_bounds__(256)
    scan_reference_chunks(const T* x, double* value, double* magnitude, long long rows, long long n) {
    const long long chunks = (n + chunk - 1) / chunk;
    for (long long k = blockIdx.x * 256LL + threadIdx.x; k < rows * chunks; k += gridDim.x * 256LL) {
        const long long row = k / chunks * n, first = k % chunks * chunk;
        double sum = 0.0, size = 0.0;
        for (long long c = first; c < min(n, first + chunk); ++c) {
            value[row + c] = sum;
            magnitude[row + c] = size;
            sum += number(x[row + c]);
            size += fabs(number(x[row + c]));
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
    scan_reference_carry(const T* x, double* value, double* magnitude, long long rows, long long n) {
    for (long long r = blockIdx.x * 256LL + threadIdx.x; r < rows; r += gridDim.x * 256LL) {
        const long long row = r * n;
        double sum = 0.0, size = 0.0;
        for (long long first = 0; first < n; first += chunk) {
            const long long last = row + min(n, first + chunk) - 1;
            const double all = value[last] + number(x[last]), all_size = magnitude[last] + fabs(number(x[last]));
            value[row + first] = sum;
            magnitude[row + first] = size;
            sum += all;
            size += all_size;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
    scan_reference_spread(double* value, double* magnitude, long long rows, long long n) {
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < rows * n; i += gridDim.x * 256LL) {
        const long long inside = i % n % chunk;
        if (inside == 0) continue;
        value[i] += value[i - inside];
        magnitude[i] += magnitude[i - inside];
    }
}

extern "C" __global__ void __launch_bounds__(256)
    scan_reference_finish(const T* x, double* value, double* magnitude, long long rows, long long n) {
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < rows * n; i += gridDim.x * 256LL) {
        const double own = EXCLUSIVE ? 0.0 : number(x[i]);
        value[i] = settled(x[i], value[i] + own);
        magnitude[i] += fabs(own);
    }
}
