// reference: what the plain kernels in double share that stand in for CPU references.
#ifndef AUTOTUNE_REFERENCE_CUH
#define AUTOTUNE_REFERENCE_CUH

#include "common.cuh"

/// `mine` combined over the 256 threads of the block; each gets it.
template <class Combine>
__device__ double block_combine(double mine, Combine combine) {
    __shared__ double slots[256];
    __syncthreads();  // the last use of the slots is over
    slots[threadIdx.x] = mine;
    for (unsigned half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) slots[threadIdx.x] = combine(slots[threadIdx.x], slots[threadIdx.x + half]);
    }
    __syncthreads();
    const double all = slots[0];
    __syncthreads();
    return all;
}

/// The sum of term(i) over i in [0, n), over the 256 threads of the block.
template <class Term>
__device__ double block_sum(long long n, Term term) {
    double sum = 0.0;
    for (long long i = threadIdx.x; i < n; i += 256) sum += term(i);
    return block_combine(sum, [](double a, double b) { return a + b; });
}

/// The greatest term, NaN left out, and -inf of none.
template <class Term>
__device__ double block_max(long long n, Term term) {
    double max = minus_infinity;
    for (long long i = threadIdx.x; i < n; i += 256) max = fmax(max, term(i));
    return block_combine(max, [](double a, double b) { return fmax(a, b); });
}

#endif
