// common: what every kernel template starts from: element types, vectors of them, warp reductions.
//
// Plain CUDA for nvcc and NVRTC from sm_75 on. A header never reads a tuning parameter, so one precompiled
// header serves all candidates of an op; and it stays small, since each candidate of a cold start parses it.
#ifndef AUTOTUNE_COMMON_CUH
#define AUTOTUNE_COMMON_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/// NVRTC knows neither INFINITY nor <cmath>.
constexpr float minus_infinity = __builtin_bit_cast(float, 0xff800000u);
constexpr unsigned all_lanes = 0xffffffffu;

// ---- Conversions. bf16 is converted by bits below sm_80, where it has no arithmetic of its own.

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

/// The nearest T, ties to even; beyond its range an infinity.
template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
    return x;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
    return __float2half_rn(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

// ---- Vectors: N elements that one instruction moves; N * sizeof(T) is 1, 2, 4, 8 or 16.

template <int bytes>
struct WordOf;
template <>
struct WordOf<1> {
    using Type = unsigned char;
};
template <>
struct WordOf<2> {
    using Type = unsigned short;
};
template <>
struct WordOf<4> {
    using Type = unsigned;
};
template <>
struct WordOf<8> {
    using Type = uint2;
};
template <>
struct WordOf<16> {
    using Type = uint4;
};
/// The integer type of one access of that width.
template <int bytes>
using Word = typename WordOf<bytes>::Type;

template <class T, int N>
struct alignas(sizeof(T) * N) Vec {
    T lane[N];
};

/// `p` is aligned to the whole vector. The copy goes through one integer word: a struct of halves would
/// be moved piece by piece.
template <int N, class T>
__device__ __forceinline__ Vec<T, N> load(const T* p) {
    Vec<T, N> v;
    reinterpret_cast<Word<sizeof(T) * N>&>(v) = *reinterpret_cast<const Word<sizeof(T) * N>*>(p);
    return v;
}

/// As `load`, through the read-only path: for what no thread of the launch writes.
template <int N, class T>
__device__ __forceinline__ Vec<T, N> load_readonly(const T* p) {
    Vec<T, N> v;
    reinterpret_cast<Word<sizeof(T) * N>&>(v) = __ldg(reinterpret_cast<const Word<sizeof(T) * N>*>(p));
    return v;
}

template <int N, class T>
__device__ __forceinline__ void store(T* p, const Vec<T, N>& v) {
    *reinterpret_cast<Word<sizeof(T) * N>*>(p) = reinterpret_cast<const Word<sizeof(T) * N>&>(v);
}

// ---- Reductions over the lanes of a warp; every lane gets the result.

/// Over each group of WIDTH neighbouring lanes, a power of two; `combine` is associative and commutative.
template <int WIDTH = 32, class Value, class Combine>
__device__ __forceinline__ Value warp_reduce(Value value, Combine combine) {
#pragma unroll
    for (int offset = WIDTH / 2; offset > 0; offset /= 2)
        value = combine(value, __shfl_xor_sync(all_lanes, value, offset));
    return value;
}

template <int WIDTH = 32>
__device__ __forceinline__ float warp_sum(float value) {
    return warp_reduce<WIDTH>(value, [](float a, float b) { return a + b; });
}

template <int WIDTH = 32>
__device__ __forceinline__ float warp_max(float value) {
    return warp_reduce<WIDTH>(value, [](float a, float b) { return fmaxf(a, b); });
}

#endif
