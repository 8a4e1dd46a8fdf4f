// unique: of a sorted x, one of each run of equal elements, in their order, and how many these are
//
// x        T, [n], sorted: equal elements are neighbours; -0 equals 0, and NaN NaN
// y        T, [n]: the first counts[0] are written, the rest is left alone; counts: long long, [1]
// launch   grid = ceil(n / (THREADS * VEC * UNROLL)), block = THREADS, a tile of dynamic shared memory
//          sums: [tiles] and prefixes: [tiles / THREADS + 1] words, all 0 at first
// needs    x aligned to VEC elements
//
// The 32 vectors of a warp are packed in shared memory, so that stores are of neighbours.
#include "tiles.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T int
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef VEC
#define VEC 4  // elements a load
#endif
#ifndef UNROLL
#define UNROLL 8  // loads a thread
#endif

using Element = T;  // which may be of two words

constexpr int warps = THREADS / 32;
constexpr int tile_size = THREADS * VEC * UNROLL;

template <class X>
__device__ __forceinline__ bool same(X a, X b) {
    const float one = to_float(a), other = to_float(b);
    return one == other || (one != one && other != other);
}
__device__ __forceinline__ bool same(int a, int b) { return a == b; }
__device__ __forceinline__ bool same(long long a, long long b) { return a == b; }

/// Which of `v` start a run, as bits; the element before it is `previous`, or there is none where `alone`.
__device__ __forceinline__ unsigned starts_of(const Vec<T, VEC>& v, T previous, bool alone, int room) {
    unsigned starts = 0;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
        const bool start = j > 0 ? !same(v.lane[j], v.lane[j > 0 ? j - 1 : 0]) : alone || !same(v.lane[0], previous);
        starts |= static_cast<unsigned>(start && j < room) << j;
    }
    return starts;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    unique(const T* x, T* y, long long* counts, long long n, Published* sums, Published* prefixes) {
    extern __shared__ uint4 shared_words[];
    __shared__ unsigned slots[warps];
    __shared__ T packed_vectors[warps][32 * VEC];
    T* const staged = reinterpret_cast<T*>(shared_words);
    const long long first = static_cast<long long>(blockIdx.x) * tile_size;
    const int length = static_cast<int>(min(static_cast<long long>(tile_size), n - first));
    x += first;
    const T before_all = first > 0 ? x[-1] : Element{};
    stage_tile<VEC, UNROLL>(staged, x, length);
    __syncthreads();

    // 1. How many elements start a run before each vector of the warp, before the warp, and before the tile.
    const auto starts_in = [&](int i) {
        const int c = tile_column<VEC, UNROLL>(i);
        return starts_of(load<VEC>(staged + c), c > 0 ? staged[c - 1] : before_all, first + c == 0, length - c);
    };
    unsigned before[UNROLL], starts_at[UNROLL], so_far = 0;
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        starts_at[i] = starts_in(i);
        const LaneScan<unsigned> lanes = scan_lanes(static_cast<unsigned>(__popc(starts_at[i])));
        before[i] = so_far + lanes.before;
        so_far += lanes.all;
    }
    const LaneScan<unsigned> in_tile = scan_warps<warps>(so_far, slots);
    const unsigned long long below =
        before_tile<THREADS>(sums, prefixes, blockIdx.x, static_cast<unsigned long long>(in_tile.all));

    // 2. The 32 vectors of a warp are packed, and stored as neighbours.
    const unsigned lane = threadIdx.x % 32;
    T* const pack = packed_vectors[threadIdx.x / 32];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        const unsigned base = __shfl_sync(all_lanes, before[i], 0);
        const unsigned starts = starts_at[i];
        unsigned to = before[i] - base;
        const T* const from = staged + tile_column<VEC, UNROLL>(i);
#pragma unroll 1
        for (unsigned left = starts; left; left &= left - 1) pack[to++] = from[__ffs(left) - 1];
        const unsigned count = __shfl_sync(all_lanes, to, 31);
        __syncwarp();
        for (unsigned k = lane; k < count; k += 32) y[below + in_tile.before + base + k] = pack[k];
        __syncwarp();
    }
    if (threadIdx.x == 0 && first + tile_size >= n) counts[0] = static_cast<long long>(below + in_tile.all);
}
