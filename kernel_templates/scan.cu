// scan: y[r, c] = sum of x[r, 0 .. c], or of x[r, 0 .. c - 1] where EXCLUSIVE
//
// x, y     T, packed, [rows, n]; y may be x. Floats are summed as floats, whole numbers wrap around
// launch   scan_rows   grid = rows, block = THREADS: a block takes a row, tile by tile
//          scan_tiles  grid = rows * ceil(n / tile), block = THREADS, a tile of dynamic shared memory: a block a tile,
//                      which waits for those before it;
//                      sums: [rows, tiles], totals: [rows, tiles / 32 + 1] and prefixes: [rows, tiles / 1024 + 1] words,
//                      all 0 at first
// needs    n % VEC == 0 or rows == 1, x and y aligned to VEC elements
//
// A warp has UNROLL * 32 * VEC neighbouring elements of a tile, so loads are whole vectors and only sums are exchanged.
#include "tiles.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T float
#endif
#ifndef EXCLUSIVE
#define EXCLUSIVE 0
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef VEC
#define VEC 4  // elements a load
#endif
#ifndef UNROLL
#define UNROLL 4  // loads a thread
#endif

constexpr int warps = THREADS / 32;
constexpr int tile_size = THREADS * VEC * UNROLL;

__device__ __forceinline__ float to_sum(float x) { return x; }
__device__ __forceinline__ float to_sum(__half x) { return to_float(x); }
__device__ __forceinline__ float to_sum(__nv_bfloat16 x) { return to_float(x); }
__device__ __forceinline__ int to_sum(int x) { return x; }
using Sum = decltype(to_sum(T{}));

template <class X>
__device__ __forceinline__ X from_sum(float x) {
    return from_float<X>(x);
}
template <class X>
__device__ __forceinline__ X from_sum(int x) {
    return x;
}

/// A tile of `length` elements, each thread's turned into their sums from its warp's first element on; `before` is the
/// sum of the warps before, and `all` the tile's.
struct Tile {
    Sum value[UNROLL][VEC];
    LaneScan<Sum> warp;

    static __device__ __forceinline__ int column(int i) {
        return (static_cast<int>(threadIdx.x / 32) * UNROLL + i) * (32 * VEC) +
               static_cast<int>(threadIdx.x % 32) * VEC;
    }

    __device__ __forceinline__ void load(const T* x, int length, Sum* slots) {
        Vec<T, VEC> raw[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            if (column(i) + VEC <= length) {
                raw[i] = load_once<VEC>(x + column(i));
            } else {
#pragma unroll
                for (int j = 0; j < VEC; ++j) raw[i].lane[j] = column(i) + j < length ? x[column(i) + j] : T{};
            }
        }
        Sum so_far{};
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            Sum mine{};
#pragma unroll
            for (int j = 0; j < VEC; ++j) {
                const Sum element = to_sum(raw[i].lane[j]);
                value[i][j] = EXCLUSIVE ? mine : mine + element;
                mine += element;
            }
            const LaneScan<Sum> lanes = scan_lanes(mine);
#pragma unroll
            for (int j = 0; j < VEC; ++j) value[i][j] += so_far + lanes.before;
            so_far += lanes.all;
        }
        warp = scan_warps<warps>(so_far, slots);
    }

    __device__ __forceinline__ void store(T* y, int length, Sum before) const {
        before += warp.before;
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            Vec<T, VEC> made;
#pragma unroll
            for (int j = 0; j < VEC; ++j) made.lane[j] = from_sum<T>(before + value[i][j]);
            if (column(i) + VEC <= length) {
                store_once(y + column(i), made);
            } else {
#pragma unroll
                for (int j = 0; j < VEC; ++j)
                    if (column(i) + j < length) y[column(i) + j] = made.lane[j];
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) scan_rows(const T* x, T* y, long long n) {
    __shared__ Sum slots[2][warps];  // by turns: one barrier a tile
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    Sum before{};
    int turn = 0;
    for (long long first = 0; first < n; first += tile_size, turn ^= 1) {
        Tile tile;
        const int length = static_cast<int>(min(static_cast<long long>(tile_size), n - first));
        tile.load(x + first, length, slots[turn]);
        tile.store(y + first, length, before);
        before += tile.warp.all;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scan_tiles(const T* x, T* y, long long n, unsigned tiles, Published* sums, Published* totals,
               Published* prefixes) {
    extern __shared__ uint4 shared_words[];
    __shared__ Sum slots[warps];
    T* const staged = reinterpret_cast<T*>(shared_words);
    const unsigned row = blockIdx.x / tiles, number = blockIdx.x % tiles;
    const long long first = static_cast<long long>(number) * tile_size;
    const int length = static_cast<int>(min(static_cast<long long>(tile_size), n - first));
    stage_tile<VEC, UNROLL>(staged, x + row * n + first, length);

    // 1. The sums of the lanes before this one, a vector at a time, then those of warps and tiles.
    Sum before[UNROLL], so_far{};
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        const Vec<T, VEC> v = load<VEC>(staged + tile_column<VEC, UNROLL>(i));
        Sum mine{};
#pragma unroll
        for (int j = 0; j < VEC; ++j) mine += to_sum(v.lane[j]);
        const LaneScan<Sum> lanes = scan_lanes(mine);
        before[i] = so_far + lanes.before;
        so_far += lanes.all;
    }
    const LaneScan<Sum> in_tile = scan_warps<warps>(so_far, slots);
    const Sum below =
        in_tile.before + before_tile(sums + static_cast<long long>(row) * tiles,
                                     totals + static_cast<long long>(row) * (tiles / 32 + 1),
                                     prefixes + static_cast<long long>(row) * (tiles / 1024 + 1), number, in_tile.all);

    // 2. The elements again, on top of what is before them.
    y += row * n + first;
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        const int c = tile_column<VEC, UNROLL>(i);
        const Vec<T, VEC> v = load<VEC>(staged + c);
        Sum running = below + before[i];
        Vec<T, VEC> made;
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            const Sum through = running + to_sum(v.lane[j]);
            made.lane[j] = from_sum<T>(EXCLUSIVE ? running : through);
            running = through;
        }
        if (c + VEC <= length) {
            store_once(y + c, made);
        } else {
#pragma unroll
            for (int j = 0; j < VEC; ++j)
                if (c + j < length) y[c + j] = made.lane[j];
        }
    }
}
