// transpose: y[b, c, r] = x[b, r, c] through a tile in shared memory, rows that start and end anywhere
//
// x, y     units of UNIT bytes: x[b * x1 + r * xs + c], y[b * y1 + c * ys + r]; they do not overlap
// launch   grid = batches * ceil(rows / TILE_R) * ceil(cols / TILE_C), block = THREADS, no dynamic shared memory
//
// Each row of x, and of y, has vectors of 16 bytes of its own from its first aligned address on, so a row of a tile
// takes one more of them than it has units for, and they are put into the tile, and taken from it, unit by unit.
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef UNIT
#define UNIT 2  // bytes
#endif
#ifndef TILE_R
#define TILE_R 64  // rows of x a tile
#endif
#ifndef TILE_C
#define TILE_C 64  // columns of x a tile
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef DOWN
#define DOWN 1  // 1: neighbouring blocks take tiles below each other
#endif

using Unit = Word<UNIT>;
constexpr int wide = 16 / UNIT;  // units a vector
constexpr int across = TILE_C / wide + 1, down = TILE_R / wide + 1;
constexpr int loads = (TILE_R * across + THREADS - 1) / THREADS;
constexpr int pitch = TILE_C + (UNIT < 4 ? 4 / UNIT : 1);

/// How many units before `p` its aligned vector starts.
__device__ __forceinline__ int past(const Unit* p) {
    return static_cast<int>(reinterpret_cast<unsigned long long>(p) / UNIT % wide);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose_ragged(const Unit* x, Unit* y, long long rows, long long cols, long long xs, long long x1, long long ys,
                     long long y1) {
    __shared__ Unit tile[TILE_R * pitch];
    const unsigned tiles_r = static_cast<unsigned>((rows + TILE_R - 1) / TILE_R);
    const unsigned tiles_c = static_cast<unsigned>((cols + TILE_C - 1) / TILE_C);
    const unsigned batch = blockIdx.x / tiles_r / tiles_c, at = blockIdx.x % (tiles_r * tiles_c);
    const long long row = static_cast<long long>(DOWN ? at % tiles_r : at / tiles_c) * TILE_R;
    const long long col = static_cast<long long>(DOWN ? at / tiles_r : at % tiles_c) * TILE_C;
    x += batch * x1 + row * xs + col;
    y += batch * y1 + col * ys + row;
    const int height = static_cast<int>(min(static_cast<long long>(TILE_R), rows - row));
    const int width = static_cast<int>(min(static_cast<long long>(TILE_C), cols - col));

    // 1. All loads are issued before the first is used. A vector may reach into the tiles beside, not beyond the row.
    Vec<Unit, wide> raw[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) {
        const int t = i * THREADS + static_cast<int>(threadIdx.x), r = t / across;
        if (r >= height) continue;
        const Unit* const from = x + r * xs;
        const int c = t % across * wide - past(from);
        if (c + col >= 0 && c + col + wide <= cols) {
            raw[i] = load_once<wide>(from + c);
        } else {
#pragma unroll
            for (int j = 0; j < wide; ++j)
                if (c + j >= 0 && c + j < width) raw[i].lane[j] = from[c + j];
        }
    }
#pragma unroll
    for (int i = 0; i < loads; ++i) {
        const int t = i * THREADS + static_cast<int>(threadIdx.x), r = t / across;
        if (r >= height) continue;
        const int c = t % across * wide - past(x + r * xs);
#pragma unroll
        for (int j = 0; j < wide; ++j)
            if (c + j >= 0 && c + j < width) tile[r * pitch + c + j] = raw[i].lane[j];
    }
    __syncthreads();

    // 2. Down the columns.
    for (int t = static_cast<int>(threadIdx.x); t < width * down; t += THREADS) {
        const int c = t / down;
        Unit* const to = y + c * ys;
        const int r = t % down * wide - past(to);
        if (r >= 0 && r + wide <= height) {
            Vec<Unit, wide> v;
#pragma unroll
            for (int j = 0; j < wide; ++j) v.lane[j] = tile[(r + j) * pitch + c];
            store_once(to + r, v);
        } else {
#pragma unroll
            for (int j = 0; j < wide; ++j)
                if (r + j >= 0 && r + j < height) to[r + j] = tile[(r + j) * pitch + c];
        }
    }
}
