// reference: what the plain kernels in double share that stand in for CPU references.
#ifndef AUTOTUNE_REFERENCE_CUH
#define AUTOTUNE_REFERENCE_CUH

#include "common.cuh"

/// An element as a double.
template <class X>
__device__ double number(X x) {
    return to_float(x);
}
__device__ inline double number(int x) { return x; }
__device__ inline double number(long long x) { return static_cast<double>(x); }

/// `mine` combined over the 256 threads of the block; each gets it.
template <class Value, class Combine>
__device__ Value block_combine(Value mine, Combine combine) {
    __shared__ Value slots[256];
    __syncthreads();  // the last use of the slots is over
    slots[threadIdx.x] = mine;
    for (unsigned half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) slots[threadIdx.x] = combine(slots[threadIdx.x], slots[threadIdx.x + half]);
    }
    __syncthreads();
    const Value all = slots[0];
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

/// What the softmax of terms is made of, and how far its roundings reach.
struct Exps {
    double max;
    double sum;  // of exp(term - max)
    double far;  // of exp(term - max) * (max - term)
};
template <class Term>
__device__ Exps block_exps(long long n, Term term) {
    const double max = block_max(n, term);
    const double sum = block_sum(n, [=](long long i) { return exp(term(i) - max); });
    const double far = block_sum(n, [=](long long i) {
        const double distance = max - term(i);
        return distance < 1000.0 ? exp(-distance) * distance : 0.0;
    });
    return {max, sum, far};
}

#endif
