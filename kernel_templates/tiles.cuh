// tiles: what lies before a tile, for scan and unique, in one pass over memory.
//
// Each block publishes the sum of its tile. One of its warps waits for the sums of the tiles before it in its set of
// 32, for those of the sets before in its group of 32 sets, which the last tile of each set publishes, and for the sum
// of all groups before, which the last tile of each group publishes. Who is waited for has a lower block number, so it
// has been started. Unlike a look-back of varying depth, the order of additions is a function of the tile alone: equal
// inputs give equal bits.
// source  after Merrill & Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016
#ifndef AUTOTUNE_TILES_CUH
#define AUTOTUNE_TILES_CUH

#include "common.cuh"

/// A published value is one word, so that it needs no fence; 0 is none.
using Published = unsigned long long;

__device__ __forceinline__ Published packed(float x) { return 1ull << 32 | __float_as_uint(x); }
__device__ __forceinline__ Published packed(int x) { return 1ull << 32 | static_cast<unsigned>(x); }
__device__ __forceinline__ Published packed(unsigned long long x) { return 1ull << 63 | x; }
__device__ __forceinline__ void unpack(Published word, float& x) { x = __uint_as_float(static_cast<unsigned>(word)); }
__device__ __forceinline__ void unpack(Published word, int& x) { x = static_cast<int>(word); }
__device__ __forceinline__ void unpack(Published word, unsigned long long& x) { x = word & ~(1ull << 63); }

template <class V>
__device__ __forceinline__ void publish(Published* at, V value) {
    *reinterpret_cast<volatile Published*>(at) = packed(value);
}

__device__ __forceinline__ Published seen(const Published* at) {
    return *reinterpret_cast<const volatile Published*>(at);
}

/// What `at` holds once there is something, of which `word` was a look. Polls, ever more rarely; after some 16 s
/// without it traps rather than hang.
template <class V>
__device__ __forceinline__ V awaited(const Published* at, Published word) {
    unsigned pause = 20;
    for (int tries = 0; word == 0; ++tries) {
        if (tries > 64) pause = min(2 * pause, 1000000u);
        if (tries > 16384) __trap();
        __nanosleep(pause);
        word = seen(at);
    }
    V value;
    unpack(word, value);
    return value;
}

template <class V>
__device__ __forceinline__ V sum_of_lanes(V value) {
    return warp_reduce(value, [](V a, V b) { return a + b; });
}

/// The sum over the lanes before this one, and over all.
template <class V>
struct LaneScan {
    V before, all;
};
template <class V>
__device__ __forceinline__ LaneScan<V> scan_lanes(V value) {
    const unsigned lane = threadIdx.x % 32;
    V through = value;
#pragma unroll
    for (unsigned offset = 1; offset < 32; offset *= 2) {
        const V other = __shfl_up_sync(all_lanes, through, offset);
        if (lane >= offset) through += other;
    }
    const V before = __shfl_up_sync(all_lanes, through, 1);
    return {lane == 0 ? V{} : before, __shfl_sync(all_lanes, through, 31)};
}

/// The sum over the warps before this one, and over all: `value` is a warp's, the same in its lanes. One barrier, and
/// `slots` serve one call.
template <int warps, class V>
__device__ __forceinline__ LaneScan<V> scan_warps(V value, V* slots) {
    const unsigned warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) slots[warp] = value;
    __syncthreads();
    V before{}, all{};
#pragma unroll
    for (unsigned w = 0; w < warps; ++w) {
        if (w == warp) before = all;
        all += slots[w];
    }
    return {before, all};
}

/// The words of one of several rows of `tiles` tiles, all 0 at first: for each row a sum a tile, a total for each 32
/// tiles, and a prefix for each 1024. They lie together, so that one memset clears them.
struct RowWords {
    Published *sums, *totals, *prefixes;

    __device__ __forceinline__ RowWords(Published* words, unsigned tiles, unsigned row)
        : sums{words + static_cast<long long>(row) * (tiles + tiles / 32 + tiles / 1024 + 2)},
          totals{sums + tiles},
          prefixes{totals + tiles / 32 + 1} {}
};

/// The sum of the tiles before `tile`, whose own is `mine`, for the lanes of the one warp that calls.
template <class V>
__device__ __forceinline__ V before_tile_in_warp(RowWords row, unsigned tile, V mine) {
    const unsigned set = tile / 32, group = tile / 1024, lane = threadIdx.x % 32;
    const bool of_set = lane < tile % 32, of_group = lane < set % 32;
    if (lane == 0) publish(row.sums + tile, mine);
    const Published* const sums = row.sums + set * 32 + lane;
    const Published* const totals = row.totals + group * 32 + lane;
    const Published* const prefixes = row.prefixes + group;
    // The first looks are on their way together.
    const Published sum = of_set ? seen(sums) : 0, total = of_group ? seen(totals) : 0;
    const Published prefix = group > 0 ? seen(prefixes) : 0;
    const V in_set = sum_of_lanes(of_set ? awaited<V>(sums, sum) : V{});
    if (tile % 32 == 31 && lane == 31) publish(row.totals + set, in_set + mine);
    const V in_group = sum_of_lanes(of_group ? awaited<V>(totals, total) : V{});
    const V before = (group > 0 ? awaited<V>(prefixes, prefix) : V{}) + in_group + in_set;
    if (tile % 1024 == 1023 && lane == 31) publish(row.prefixes + group + 1, before + mine);
    return before;
}

/// As `before_tile_in_warp`, for all threads of a block that call together.
template <class V>
__device__ __forceinline__ V before_tile(RowWords row, unsigned tile, V mine) {
    __shared__ V answer;
    if (threadIdx.x < 32) {
        const V before = before_tile_in_warp(row, tile, mine);
        if (threadIdx.x == 0) answer = before;
    }
    __syncthreads();
    return answer;
}

// ---- Tiles that wait in registers.

/// Where a thread's vector `i` of VEC elements lies in a tile: a warp has UNROLL * 32 * VEC neighbours.
template <int VEC, int UNROLL>
__device__ __forceinline__ int tile_column(int i, int warp = static_cast<int>(threadIdx.x / 32)) {
    return (warp * UNROLL + i) * (32 * VEC) + static_cast<int>(threadIdx.x % 32) * VEC;
}

/// A thread's part of a tile of `length` elements; beyond these are zeros. All loads are issued before the first is
/// used. KEPT: L2 is asked to keep them, where as much is written as is read: on an H200 scans of rows took 11 % less
/// time, and `unique` 15 % more.
template <int VEC, int UNROLL, bool KEPT, class T>
__device__ __forceinline__ void load_tile(Vec<T, VEC> (&to)[UNROLL], const T* from, int length) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        const int c = tile_column<VEC, UNROLL>(i);
        if (c + VEC <= length) {
            to[i] = KEPT ? load_once_past_l1<VEC>(from + c) : load_past_l1<VEC>(from + c);
        } else {
#pragma unroll
            for (int j = 0; j < VEC; ++j) to[i].lane[j] = c + j < length ? from[c + j] : T{};
        }
    }
}

#endif
