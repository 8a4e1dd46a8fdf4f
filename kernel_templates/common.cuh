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

/// An access whose opcode has L2_KEPT, with L2_OPERAND and L2_POLICY (and its comma) behind its last operand, asks L2
/// to keep what it brings the longest: what is written then leaves L2 first, in its order. On an H200 kernels that read
/// and write took 1 to 6 % less time for it; one that read 24 MiB after them took a fifth longer at its second read,
/// and as long as ever from the fourth on. Parts before sm_90 are asked for nothing: it is not measured there.
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ unsigned long long kept_longest() {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
#define L2_KEPT ".L2::cache_hint"
#define L2_OPERAND(operand) ", %" #operand
#define L2_POLICY , "l"(kept_longest())
#else
#define L2_KEPT ""
#define L2_OPERAND(operand) ""
#define L2_POLICY
#endif

#define NO_OPERAND(operand) ""  // of loads without a policy
#define VECTOR_LOAD(name, instruction, OPERAND, POLICY)                              \
    template <int N, class T>                                                        \
    __device__ __forceinline__ Vec<T, N> name(const T* p) {                          \
        constexpr int bytes = sizeof(T) * N;                                         \
        Vec<T, N> v;                                                                 \
        auto& word = reinterpret_cast<Word<bytes>&>(v);                              \
        if constexpr (bytes == 16) {                                                 \
            asm volatile(instruction ".v4.u32 {%0, %1, %2, %3}, [%4]" OPERAND(5) ";" \
                         : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)    \
                         : "l"(__cvta_generic_to_global(p)) POLICY                   \
                         : "memory");                                                \
        } else if constexpr (bytes == 8) {                                           \
            asm volatile(instruction ".v2.u32 {%0, %1}, [%2]" OPERAND(3) ";"         \
                         : "=r"(word.x), "=r"(word.y)                                \
                         : "l"(__cvta_generic_to_global(p)) POLICY                   \
                         : "memory");                                                \
        } else if constexpr (bytes == 4) {                                           \
            asm volatile(instruction ".u32 %0, [%1]" OPERAND(2) ";"                  \
                         : "=r"(word)                                                \
                         : "l"(__cvta_generic_to_global(p)) POLICY                   \
                         : "memory");                                                \
        } else if constexpr (bytes == 2) {                                           \
            asm volatile(instruction ".u16 %0, [%1]" OPERAND(2) ";"                  \
                         : "=h"(word)                                                \
                         : "l"(__cvta_generic_to_global(p)) POLICY                   \
                         : "memory");                                                \
        } else {                                                                     \
            word = *reinterpret_cast<const volatile Word<bytes>*>(p);                \
        }                                                                            \
        return v;                                                                    \
    }

/// As `load`, for what this launch reads once. Never moved across a barrier. The first-level cache is not passed over:
/// on an H200 loads that do so leave the memory in one of two states, in one of which kernels that read and write took
/// up to 11 % longer, launch after launch.
VECTOR_LOAD(load_once, "ld.global" L2_KEPT, L2_OPERAND, L2_POLICY)
/// As `load_once`, past the first-level cache: faster where a block waits for others between its loads and its stores.
VECTOR_LOAD(load_once_past_l1, "ld.global.L1::no_allocate" L2_KEPT, L2_OPERAND, L2_POLICY)
/// The same, and L2 is asked for nothing.
VECTOR_LOAD(load_past_l1, "ld.global.L1::no_allocate", NO_OPERAND, )
#undef NO_OPERAND
#undef VECTOR_LOAD

/// As `store`, for what this launch does not read again: the first to leave the cache. Worth 8 % in a transpose and
/// 13 % in a permutation, whose writes lie apart, and 27 % in a scan whose loads ask L2 for nothing. Where rows are
/// read and written in their order it is worth nothing, and has whoever reads the results next wait for memory.
template <int N, class T>
__device__ __forceinline__ void store_once(T* p, const Vec<T, N>& v) {
    __stcs(reinterpret_cast<Word<sizeof(T) * N>*>(p), reinterpret_cast<const Word<sizeof(T) * N>&>(v));
}

/// As `load_once`, from `p`, which need not be aligned unless `aligned` says so.
template <int N, class T>
__device__ __forceinline__ Vec<T, N> load_anywhere(const T* p, bool aligned) {
    if (aligned) return load_once<N>(p);
    Vec<T, N> v;
#pragma unroll
    for (int j = 0; j < N; ++j) v.lane[j] = p[j];
    return v;
}

/// As `store`, to `p`, which need not be aligned unless `aligned` says so.
template <int N, class T>
__device__ __forceinline__ void store_anywhere(T* p, const Vec<T, N>& v, bool aligned) {
    if (aligned) {
        store(p, v);
    } else {
#pragma unroll
        for (int j = 0; j < N; ++j) p[j] = v.lane[j];
    }
}

// ---- Rows that start and end anywhere: a few single elements, whole aligned vectors, a few single elements.

/// How a row of `cols` elements at `row` falls apart for vectors of N: `head` elements, `body` (a multiple of N) from
/// the first aligned address on, `tail` elements. Head and tail together are less than 2 * N - 1.
struct RowParts {
    int head, body, tail;
};
template <int N, class T>
__device__ __forceinline__ RowParts row_parts(const T* row, int cols) {
    const int past = static_cast<int>(reinterpret_cast<unsigned long long>(row) / sizeof(T) % N);
    const int head = min((N - past) % N, cols);
    const int body = (cols - head) / N * N;
    return {head, body, cols - head - body};
}

template <int N, class T>
__device__ __forceinline__ bool is_aligned(const T* p) {
    return reinterpret_cast<unsigned long long>(p) % (sizeof(T) * N) == 0;
}

// ---- Whole vectors to and from floats. Vectors of 16-bit elements are handled by words of two: taken apart into
// lanes, each element would hold a register of its own, and be rounded alone.

__device__ __forceinline__ float2 unpack_pair(const __half*, unsigned word) {
    return __half22float2(reinterpret_cast<const __half2&>(word));
}
__device__ __forceinline__ float2 unpack_pair(const __nv_bfloat16*, unsigned word) {
    return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u));
}

template <int N>
__device__ __forceinline__ void to_floats(const Vec<float, N>& v, float (&x)[N]) {
#pragma unroll
    for (int j = 0; j < N; ++j) x[j] = v.lane[j];
}
template <class T, int N>
__device__ __forceinline__ void to_floats(const Vec<T, N>& v, float (&x)[N]) {
    static_assert(sizeof(T) == 2, "float has its own");
    if constexpr (N == 1) {
        x[0] = to_float(v.lane[0]);
    } else {
#pragma unroll
        for (int j = 0; j < N; j += 2) {
            const float2 pair = unpack_pair(v.lane, reinterpret_cast<const unsigned*>(&v)[j / 2]);
            x[j] = pair.x;
            x[j + 1] = pair.y;
        }
    }
}

__device__ __forceinline__ void round_pair(float* to, float first, float second) {
    to[0] = first;
    to[1] = second;
}
__device__ __forceinline__ void round_pair(__half* to, float first, float second) {
    *reinterpret_cast<__half2*>(to) = __floats2half2_rn(first, second);
}
__device__ __forceinline__ void round_pair(__nv_bfloat16* to, float first, float second) {
    *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(first, second);
}

/// Each of `x` as the nearest T.
template <class T, int N>
__device__ __forceinline__ Vec<T, N> from_floats(const float (&x)[N]) {
    Vec<T, N> v;
    if constexpr (N == 1) {
        v.lane[0] = from_float<T>(x[0]);
    } else {
#pragma unroll
        for (int j = 0; j < N; j += 2) round_pair(v.lane + j, x[j], x[j + 1]);
    }
    return v;
}

/// N times `x`, which T holds exactly.
template <class T, int N>
__device__ __forceinline__ Vec<T, N> splat(float x) {
    float all[N];
#pragma unroll
    for (int j = 0; j < N; ++j) all[j] = x;
    return from_floats<T>(all);
}

/// As `store` of the floats rounded, at `p`, which need not be aligned unless `aligned` says so.
template <class T, int N>
__device__ __forceinline__ void store_anywhere(T* p, const float (&x)[N], bool aligned) {
    store_anywhere(p, from_floats<T>(x), aligned);
}

// ---- Maxima. NaN does not count.

/// Of the pairs in two words.
__device__ __forceinline__ unsigned greater_pair(const __half*, unsigned a, unsigned b) {
    const __half2 made = __hmax2(reinterpret_cast<const __half2&>(a), reinterpret_cast<const __half2&>(b));
    return reinterpret_cast<const unsigned&>(made);
}
__device__ __forceinline__ unsigned greater_pair(const __nv_bfloat16*, unsigned a, unsigned b) {
    const __nv_bfloat162 made =
        __hmax2(reinterpret_cast<const __nv_bfloat162&>(a), reinterpret_cast<const __nv_bfloat162&>(b));
    return reinterpret_cast<const unsigned&>(made);
}

/// The largest of `max` and the elements; of 16-bit ones by pairs where the device can.
template <class T, int N>
__device__ __forceinline__ float greatest(float max, const Vec<T, N>& v) {
#if __CUDA_ARCH__ >= 800
    if constexpr (sizeof(T) == 2 && N >= 4) {
        const unsigned* const words = reinterpret_cast<const unsigned*>(&v);
        unsigned pair = words[0];
#pragma unroll
        for (int k = 1; k < N / 2; ++k) pair = greater_pair(v.lane, pair, words[k]);
        const float2 both = unpack_pair(v.lane, pair);
        return fmaxf(max, fmaxf(both.x, both.y));
    }
#endif
    float x[N];
    to_floats(v, x);
#pragma unroll
    for (int j = 0; j < N; ++j) max = fmaxf(max, x[j]);
    return max;
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

// ---- The normaliser of a softmax: the largest value seen and the sum of exp(value - max).

constexpr float log2_e = 1.44269504f;

/// 2 to the power x, good to 2^-22; below 2^-126 it is 0.
__device__ __forceinline__ float exp_binary(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/// e to the power x, good to 2^-22 and |x| * 2^-23; below 2^-126 it is 0, which saves a quarter of a softmax's
/// instructions. The difference to a maximum is taken before the scaling, not fused with it, so that exp_natural(0) is
/// exactly 1 and a large maximum costs nothing.
__device__ __forceinline__ float exp_natural(float x) { return exp_binary(x * log2_e); }

struct MaxSum {
    float max = minus_infinity;
    float sum = 0.0f;
};

/// What to subtract before exp: `max`, or 0 while everything seen is -inf (-inf - -inf would be NaN). A sum of 0
/// remains then, and a softmax that divides by it gives NaN, as it should for a row of nothing but -inf.
__device__ __forceinline__ float pivot(float max) { return max == minus_infinity ? 0.0f : max; }

/// exp(x - pivot(max)) = of(x) * correction, for many x: one instruction before the power, where exp_natural takes two.
/// The rounding of what is subtracted is the same in all, so that it can be taken back: a large maximum costs nothing.
/// From 2^31 on all other numbers are so far below it that the scale need not be that of e.
struct ExpBelow {
    float scale, shift, correction;
    __device__ __forceinline__ explicit ExpBelow(float max) {
        const float from = pivot(max), size = fabsf(from);
        scale = size > 0x1p31f ? __fdividef(0x1p-40f, size * 0x1p-71f) : log2_e;
        shift = -from * scale;
        correction = exp_binary(-fmaf(from, scale, shift));
    }
    __device__ __forceinline__ float of(float x) const { return exp_binary(fmaf(x, scale, shift)); }
};

/// With the exponential of one element more.
__device__ __forceinline__ MaxSum with_one(MaxSum mine, float x) {
    const float max = fmaxf(mine.max, x);
    return {max, mine.sum * exp_natural(mine.max - pivot(max)) + exp_natural(x - pivot(max))};
}

/// Over each group of WIDTH neighbouring lanes: one exp a lane, where combining pairs step by step takes two each.
/// BINARY: the sums are of powers of 2.
template <int WIDTH = 32, bool BINARY = false>
__device__ __forceinline__ MaxSum warp_combine(MaxSum mine) {
    const float max = warp_max<WIDTH>(mine.max), past = mine.max - pivot(max);
    return {max, warp_sum<WIDTH>(mine.sum * (BINARY ? exp_binary(past) : exp_natural(past)))};
}

#endif
