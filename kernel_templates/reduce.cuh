// reduce: the folds of reduce and argreduce, and how the threads of a block join theirs.
//
// A fold has a State that starts as none(), take()s elements one by one and is join()ed with others. Every join is made
// in an order that only the launch's geometry decides, so equal inputs give equal bits.
#ifndef AUTOTUNE_REDUCE_CUH
#define AUTOTUNE_REDUCE_CUH

#include "common.cuh"

/// The fold whose bare name is a macro's value: FOLD(KIND).
#define FOLD_NAMED(kind) Fold_##kind
#define FOLD(kind) FOLD_NAMED(kind)

__device__ __forceinline__ bool is_nan(float x) { return x != x; }

/// The lesser or the greater of two; NaN if one is.
__device__ __forceinline__ float least_or_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float y;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
#else
    return b < a || is_nan(b) ? b : a;
#endif
}
__device__ __forceinline__ float greatest_or_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
#else
    return b > a || is_nan(b) ? b : a;
#endif
}

// ---- Folds into one float.

struct FloatFold {
    static constexpr bool places = false;
    using State = float;
    using Packed = float;
    static __device__ __forceinline__ Packed pack(State s) { return s; }
    static __device__ __forceinline__ State unpack(Packed p, long long) { return p; }
    static __device__ __forceinline__ float finish(State s, long long) { return s; }
};

struct Fold_sum : FloatFold {
    static __device__ __forceinline__ float none() { return 0.0f; }
    static __device__ __forceinline__ void take(float& s, float x, unsigned) { s += x; }
    static __device__ __forceinline__ float join(float a, float b) { return a + b; }
};
struct Fold_mean : Fold_sum {
    static __device__ __forceinline__ float finish(float s, long long n) { return s / static_cast<float>(n); }
};
struct Fold_prod : FloatFold {
    static __device__ __forceinline__ float none() { return 1.0f; }
    static __device__ __forceinline__ void take(float& s, float x, unsigned) { s *= x; }
    static __device__ __forceinline__ float join(float a, float b) { return a * b; }
};
struct Fold_min : FloatFold {
    static __device__ __forceinline__ float none() { return -minus_infinity; }
    static __device__ __forceinline__ void take(float& s, float x, unsigned) { s = least_or_nan(s, x); }
    static __device__ __forceinline__ float join(float a, float b) { return least_or_nan(a, b); }
};
struct Fold_max : FloatFold {
    static __device__ __forceinline__ float none() { return minus_infinity; }
    static __device__ __forceinline__ void take(float& s, float x, unsigned) { s = greatest_or_nan(s, x); }
    static __device__ __forceinline__ float join(float a, float b) { return greatest_or_nan(a, b); }
};
struct Fold_l1 : Fold_sum {
    static __device__ __forceinline__ void take(float& s, float x, unsigned) { s += fabsf(x); }
};
/// Squares are floats: elements beyond 1.8e19 give an infinity, those below 1e-23 count as 0.
struct Fold_l2 : Fold_sum {
    static __device__ __forceinline__ void take(float& s, float x, unsigned) { s = fmaf(x, x, s); }
    static __device__ __forceinline__ float finish(float s, long long) { return sqrtf(s); }
};

// ---- Folds into the place of an element. Of equal ones the first wins, and NaN wins over numbers.

/// `index` counts from the start of a part; all ones while nothing was better than the worst value there is.
struct Place {
    float value;
    unsigned index;
};
/// `index` counts from the start of what is reduced.
struct FarPlace {
    float value;
    long long index;
};

struct PlaceFold {
    static constexpr bool places = true;
    using State = FarPlace;
    using Packed = uint2;
    static __device__ __forceinline__ Packed pack(Place s) { return make_uint2(__float_as_uint(s.value), s.index); }
    static __device__ __forceinline__ FarPlace unpack(Packed p, long long start) {
        return {__uint_as_float(p.x), p.y == 0xffffffffu ? -1 : start + p.y};
    }
    /// Where nothing was better than the worst, everything was that: the first element is the answer.
    static __device__ __forceinline__ long long finish(Place s, long long) {
        return s.index == 0xffffffffu ? 0 : static_cast<long long>(s.index);
    }
    static __device__ __forceinline__ long long finish(FarPlace s, long long) { return s.index < 0 ? 0 : s.index; }
};

template <int sign>
struct ExtremePlace : PlaceFold {
    static __device__ __forceinline__ Place none() { return {sign * minus_infinity, 0xffffffffu}; }
    static __device__ __forceinline__ FarPlace none_far() { return {sign * minus_infinity, -1}; }
    static __device__ __forceinline__ float better_or_nan(float a, float b) {
        return sign > 0 ? greatest_or_nan(a, b) : least_or_nan(a, b);
    }
    static __device__ __forceinline__ bool better(float x, float than) { return sign > 0 ? x > than : x < than; }
    /// Elements come in the order of their indices. The negated comparison is true of NaN, too.
    static __device__ __forceinline__ void take(Place& s, float x, unsigned index) {
        const bool wins = sign > 0 ? !(x <= s.value) : !(x >= s.value);
        if (wins && !is_nan(s.value)) s = {x, index};
    }
    template <class Any>
    static __device__ __forceinline__ Any join(Any a, Any b) {
        const bool b_wins = better(b.value, a.value) || (is_nan(b.value) && !is_nan(a.value));
        const bool a_wins = better(a.value, b.value) || (is_nan(a.value) && !is_nan(b.value));
        if (b_wins) return b;
        if (a_wins) return a;
        // Unsigned on purpose: the index of nothing is the largest.
        return static_cast<unsigned long long>(b.index) < static_cast<unsigned long long>(a.index) ? b : a;
    }
};
struct Fold_argmax : ExtremePlace<1> {};
struct Fold_argmin : ExtremePlace<-1> {};

template <class Fold>
using StateOf = decltype(Fold::none());

// ---- What a thread folds of a row's vectors of N elements.

/// Floats: an element of a vector has an accumulator of its own.
template <class Fold, class T, int N, bool places = Fold::places>
struct VectorFold {
    float mine[N];

    __device__ __forceinline__ VectorFold() {
#pragma unroll
        for (int j = 0; j < N; ++j) mine[j] = Fold::none();
    }
    __device__ __forceinline__ void take(const Vec<T, N>& v, unsigned) {
        float x[N];
        to_floats(v, x);
#pragma unroll
        for (int j = 0; j < N; ++j) Fold::take(mine[j], x[j], 0);
    }
    __device__ __forceinline__ float value(const T*) {
#pragma unroll
        for (int width = N / 2; width > 0; width /= 2)
#pragma unroll
            for (int j = 0; j < width; ++j) mine[j] = Fold::join(mine[j], mine[j + width]);
        return mine[0];
    }
};

/// Places: a vector is judged by its best element, and which one that was is looked up in the end. It takes a fifth of
/// the instructions that a place an element would.
template <class Fold, class T, int N>
struct VectorFold<Fold, T, N, true> {
    Place best = Fold::none();

    __device__ __forceinline__ void take(const Vec<T, N>& v, unsigned index) {
        float x[N];
        to_floats(v, x);
        float top = x[0];
#pragma unroll
        for (int j = 1; j < N; ++j) top = Fold::better_or_nan(top, x[j]);
        Fold::take(best, top, index);
    }
    /// from: the element of index 0; whole vectors are aligned.
    __device__ __forceinline__ Place value(const T* from) const {
        Place found = Fold::none();
        if (best.index == 0xffffffffu) return found;
        float x[N];
        to_floats(load<N>(from + best.index), x);
#pragma unroll
        for (int j = 0; j < N; ++j) Fold::take(found, x[j], best.index + j);
        return found;
    }
};

// ---- Exchange.

__device__ __forceinline__ float from_lane_xor(float x, int mask) { return __shfl_xor_sync(all_lanes, x, mask); }
__device__ __forceinline__ Place from_lane_xor(Place x, int mask) {
    return {__shfl_xor_sync(all_lanes, x.value, mask), __shfl_xor_sync(all_lanes, x.index, mask)};
}

/// Over each group of WIDTH neighbouring lanes; every lane gets the result.
template <class Fold, int WIDTH, class State>
__device__ __forceinline__ State join_lanes(State mine) {
#pragma unroll
    for (int offset = WIDTH / 2; offset > 0; offset /= 2) mine = Fold::join(mine, from_lane_xor(mine, offset));
    return mine;
}

// ---- Results.

__device__ __forceinline__ void put(float* to, float x) { *to = x; }
__device__ __forceinline__ void put(__half* to, float x) { *to = from_float<__half>(x); }
__device__ __forceinline__ void put(__nv_bfloat16* to, float x) { *to = from_float<__nv_bfloat16>(x); }
__device__ __forceinline__ void put(long long* to, long long x) { *to = x; }
__device__ __forceinline__ void put(int* to, long long x) { *to = static_cast<int>(x); }

#endif
