// unique by the definition: what stands in for the CPU reference where that would take seconds
//
// x, held                    T, [n]: what is sorted, and what y holds before
// value, magnitude           double, [n], of y: one of each run, then what was held; and without signs
// count_value, count_magnitude  double, [1]
// launch                     in this order, each with grid = any and block = 256:
//                            unique_reference_count  a thread a chunk: how many runs start in it, put where it
//                                                    starts in `magnitude`
//                            unique_reference_carry  one thread: how many start before it instead, and how many in all
//                            unique_reference_place  a thread a chunk: the first of each run
//                            unique_reference_rest   what is behind them, and all magnitudes
#include "reference.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T int
#endif

constexpr long long chunk = 4096;

/// Whether a run starts at element i.
__device__ bool starts(const T* x, long long i) {
    if (i == 0) return true;
    const double one = number(x[i]), before = number(x[i - 1]);
    return !(one == before || (one != one && before != before));
}

extern "C" __global__ void __launch_bounds__(256) unique_reference_count(const T* x, double* magnitude, long long n) {
    for (long long k = blockIdx.x * 256LL + threadIdx.x; k * chunk < n; k += gridDim.x * 256LL) {
        long long count = 0;
        for (long long i = k * chunk; i < min(n, (k + 1) * chunk); ++i) count += starts(x, i);
        magnitude[k * chunk] = static_cast<double>(count);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    unique_reference_carry(double* magnitude, double* count_value, double* count_magnitude, long long n) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    double before = 0.0;
    for (long long first = 0; first < n; first += chunk) {
        const double count = magnitude[first];
        magnitude[first] = before;
        before += count;
    }
    *count_value = *count_magnitude = before;
}

extern "C" __global__ void __launch_bounds__(256)
    unique_reference_place(const T* x, double* value, const double* magnitude, long long n) {
    for (long long k = blockIdx.x * 256LL + threadIdx.x; k * chunk < n; k += gridDim.x * 256LL) {
        long long to = static_cast<long long>(magnitude[k * chunk]);
        for (long long i = k * chunk; i < min(n, (k + 1) * chunk); ++i)
            if (starts(x, i)) value[to++] = number(x[i]);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    unique_reference_rest(const T* held, double* value, double* magnitude, const double* count_value, long long n) {
    const long long count = static_cast<long long>(*count_value);
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += gridDim.x * 256LL) {
        if (i >= count) value[i] = number(held[i]);
        magnitude[i] = fabs(value[i]);
    }
}
