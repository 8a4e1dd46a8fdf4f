// scan: y[r, c] = sum of x[r, 0 .. c], or of x[r, 0 .. c - 1] where EXCLUSIVE
//
// x, y     T, packed, [rows, n]; y may be x. Floats are summed as floats, whole numbers wrap around
// launch   scan_rows   grid = rows, block = THREADS: a block takes a row, tile by tile
//          scan_tiles  grid = rows * ceil(n / tile), block = THREADS: a block a tile, which waits for those before it;
//                      words: as RowWords has them
// needs    n % VEC == 0 or rows == 1, x and y aligned to VEC elements
//
// A warp has UNROLL * 32 * VEC neighbouring elements of a tile, so loads are whole vectors and only sums are exchanged.
#include "scan.cuh"
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

using Sum = SumOf<T>;

/// A tile of `length` elements, each thread's turned into their sums from its warp's first element on; `before` is the
/// sum of the warps before, and `all` the tile's.
struct Tile {
    Sum value[UNROLL][VEC];
    LaneScan<Sum> warp;

    static __device__ __forceinline__ int column(int i) { return tile_column<VEC, UNROLL>(i); }

    __device__ __forceinline__ void load(const T* x, int length, Sum* slots) {
        Vec<T, VEC> raw[UNROLL];
        load_tile<VEC, UNROLL, true>(raw, x, length);
        Sum so_far{};
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            Sum mine{}, x_of[VEC];
            to_sums(raw[i], x_of);
#pragma unroll
            for (int j = 0; j < VEC; ++j) {
                value[i][j] = EXCLUSIVE ? mine : mine + x_of[j];
                mine += x_of[j];
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
            Sum y_of[VEC];
#pragma unroll
            for (int j = 0; j < VEC; ++j) y_of[j] = before + value[i][j];
            store_within(y, column(i), length, from_sums<T>(y_of));
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
    scan_tiles(const T* x, T* y, long long n, unsigned tiles, Published* words) {
    __shared__ Sum slots[warps];
    const unsigned row = blockIdx.x / tiles, number = blockIdx.x % tiles;
    const long long first = static_cast<long long>(number) * tile_size;
    const int length = static_cast<int>(min(static_cast<long long>(tile_size), n - first));
    Vec<T, VEC> raw[UNROLL];
    load_tile<VEC, UNROLL, true>(raw, x + row * n + first, length);

    // 1. What is before each vector, in its warp, its tile and its row.
    const PartScan<UNROLL, Sum> part = scan_part<T>(raw);
    const LaneScan<Sum> in_tile = scan_warps<warps>(part.all, slots);
    const Sum below = in_tile.before + before_tile(RowWords{words, tiles, row}, number, in_tile.all);

    // 2. The elements again, on top of that.
    y += row * n + first;
#pragma unroll
    for (int i = 0; i < UNROLL; ++i)
        store_within(y, tile_column<VEC, UNROLL>(i), length, sums_upon<EXCLUSIVE != 0>(raw[i], below + part.before[i]));
}
