// scan: a warp's part of a tile, from its elements to their sums.
#ifndef AUTOTUNE_SCAN_CUH
#define AUTOTUNE_SCAN_CUH

#include "tiles.cuh"

__device__ __forceinline__ float to_sum(float x) { return x; }
__device__ __forceinline__ float to_sum(__half x) { return to_float(x); }
__device__ __forceinline__ float to_sum(__nv_bfloat16 x) { return to_float(x); }
__device__ __forceinline__ int to_sum(int x) { return x; }
template <class T>
using SumOf = decltype(to_sum(T{}));

template <int N>
__device__ __forceinline__ void to_sums(const Vec<int, N>& v, int (&x)[N]) {
#pragma unroll
    for (int j = 0; j < N; ++j) x[j] = v.lane[j];
}
template <class T, int N>
__device__ __forceinline__ void to_sums(const Vec<T, N>& v, float (&x)[N]) {
    to_floats(v, x);
}
template <class T, int N>
__device__ __forceinline__ Vec<T, N> from_sums(const float (&x)[N]) {
    return from_floats<T>(x);
}
template <class T, int N>
__device__ __forceinline__ Vec<int, N> from_sums(const int (&x)[N]) {
    Vec<int, N> v;
#pragma unroll
    for (int j = 0; j < N; ++j) v.lane[j] = x[j];
    return v;
}

/// What was made of `v` before is not kept for later: its floats would take twice the registers of 16-bit elements.
template <class T, int N>
__device__ __forceinline__ void take_apart_again(Vec<T, N>& v) {
    if constexpr (sizeof(T) == 2 && N >= 2) {
#pragma unroll
        for (int k = 0; k < N / 2; ++k) asm volatile("" : "+r"(reinterpret_cast<unsigned*>(&v)[k]));
    }
}

/// Where the lane's vector is in its warp's part, what the lanes and vectors before it sum up to; and the part's sum.
template <int UNROLL, class Sum>
struct PartScan {
    Sum before[UNROLL], all;
};

/// Of a warp's part of a tile, whose vectors lie side by side over its lanes.
template <class T, int VEC, int UNROLL>
__device__ __forceinline__ PartScan<UNROLL, SumOf<T>> scan_part(const Vec<T, VEC> (&raw)[UNROLL]) {
    using Sum = SumOf<T>;
    PartScan<UNROLL, Sum> part;
    Sum so_far{};
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        Sum mine{}, x_of[VEC];
        to_sums(raw[i], x_of);
#pragma unroll
        for (int j = 0; j < VEC; ++j) mine += x_of[j];
        const LaneScan<Sum> lanes = scan_lanes(mine);
        part.before[i] = so_far + lanes.before;
        so_far += lanes.all;
    }
    part.all = so_far;
    return part;
}

/// The sums of a vector's elements, on top of `below` it.
template <bool EXCLUSIVE, class T, int VEC>
__device__ __forceinline__ Vec<T, VEC> sums_upon(Vec<T, VEC>& v, SumOf<T> below) {
    SumOf<T> x_of[VEC], y_of[VEC];
    take_apart_again(v);
    to_sums(v, x_of);
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
        const SumOf<T> through = below + x_of[j];
        y_of[j] = EXCLUSIVE ? below : through;
        below = through;
    }
    return from_sums<T>(y_of);
}

/// Stores what a tile of `length` elements has of the vector at `c`.
template <class T, int VEC>
__device__ __forceinline__ void store_within(T* y, int c, int length, const Vec<T, VEC>& v) {
    if (c + VEC <= length) {
        store_once(y + c, v);
    } else {
#pragma unroll
        for (int j = 0; j < VEC; ++j)
            if (c + j < length) y[c + j] = v.lane[j];
    }
}

#endif
