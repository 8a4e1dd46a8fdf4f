// activations: functions of one element that are made of simpler ones, for every type of number that has those
//
// F is float, or Bounded (bounded.cuh), which follows the same steps in double and says how far float may be off. It
// has + - * /, constant<F>(), select(), max_of(), exp_of(), erf_of(), tanh_of(), logistic_of(), normal_of(),
// inverse_of() and dropped(); those of float are declared before this file. NaN passes through each.
//
// NARROW: for results of 16 bits. Two functions that float computes to some 2^-18 in a third of the instructions,
// logistic_of() and normal_of(), stand for quotients and the error function then.
#ifndef AUTOTUNE_ACTIVATIONS_CUH
#define AUTOTUNE_ACTIVATIONS_CUH

#include "philox.cuh"

/// The nearest F.
template <class F>
__device__ __forceinline__ F constant(double value);

template <int N, class F>
__device__ __forceinline__ F power(F x) {
    F result = x;
    for (int i = 1; i < N; ++i) result = result * x;
    return result;
}

template <class F>
__device__ __forceinline__ F relu(F x) {
    return max_of(x, constant<F>(0.0));
}

template <bool NARROW, class F>
__device__ __forceinline__ F sigmoid(F x) {
    if constexpr (NARROW)
        return logistic_of(x);
    else
        return constant<F>(1.0) / (constant<F>(1.0) + exp_of(-x));
}

template <bool NARROW, class F>
__device__ __forceinline__ F silu(F x) {
    if constexpr (NARROW)
        return x * logistic_of(x);
    else
        return x / (constant<F>(1.0) + exp_of(-x));
}

/// By the error function, as Hendrycks & Gimpel 2016 define it.
template <bool NARROW, class F>
__device__ __forceinline__ F gelu(F x) {
    if constexpr (NARROW)
        return x * normal_of(x);
    else
        return constant<F>(0.5) * x * (constant<F>(1.0) + erf_of(x * constant<F>(0.70710678118654752)));
}

/// Their approximation of it by tanh: up to 5e-4 off, so that the two do not stand in for each other.
template <bool NARROW, class F>
__device__ __forceinline__ F gelu_tanh(F x) {
    if constexpr (NARROW) {
        return x * logistic_of(x * (constant<F>(1.5957691216057307) + constant<F>(0.071354816272600248) * (x * x)));
    } else {
        const F inner = constant<F>(0.79788456080286536) * (x + constant<F>(0.044715) * x * x * x);
        return constant<F>(0.5) * x * (constant<F>(1.0) + tanh_of(inner));
    }
}

/// 0 with probability p, else x / (1 - p). bits: uniform in 32 bits. p is a float; from 1 on all is 0.
template <class F>
__device__ __forceinline__ F dropout(F x, F p, unsigned bits) {
    const F scale = inverse_of(constant<F>(1.0) - p);  // once for all elements, which it is not within a condition
    return dropped(p, bits) ? constant<F>(0.0) : x * scale;
}

#endif
