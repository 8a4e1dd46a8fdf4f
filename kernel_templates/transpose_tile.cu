// transpose, permute: y[b, c, r] = x[b, r, c] through a tile in shared memory
//
// x, y     units of UNIT bytes: x[b1 * x1 + b2 * x2 + r * xs + c], y[b1 * y1 + b2 * y2 + c * ys + r]; they do not
//          overlap
// launch   grid = batches * ceil(rows / TILE_R) * ceil(cols / TILE_C), block = THREADS, no dynamic shared memory
// needs    x and its strides aligned to IN units, y's to OUT units; a tile makes whole loads and stores for all threads
//
// Loads and stores are vectors on both sides. In the tile, which has x's orientation and an odd pitch, a vector of y is
// read down a column; units of 1 and 2 bytes are read by whole words, and turned around in registers.
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef UNIT
#define UNIT 2  // bytes
#endif
#ifndef IN
#define IN 8  // units a load
#endif
#ifndef OUT
#define OUT 8  // units a store
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
#define DOWN 0  // 1: neighbouring blocks take tiles below each other
#endif

using Unit = Word<UNIT>;
/// What shared memory is read and written by, columns in it, and such words a row of the tile.
using Cell = Word<(UNIT < 4 ? 4 : UNIT)>;
constexpr int pack = UNIT < 4 ? 4 / UNIT : 1;
constexpr int pitch = TILE_C / pack + 1;
constexpr bool words_in = IN % pack == 0, words_out = OUT % pack == 0;
constexpr int loads = TILE_R * TILE_C / (IN * THREADS);
constexpr int columns_at_once = words_out ? pack : 1;
constexpr int stores = TILE_R * TILE_C / (OUT * columns_at_once * THREADS);

/// Word `k` of the column `p` of `cell`, a column of words that each hold `pack` columns.
template <int p, class C>
__device__ __forceinline__ C turned(const C (&cell)[OUT], int k) {
    if constexpr (UNIT == 1) {
        constexpr unsigned pair = p | (p + 4) << 4;
        const unsigned low = __byte_perm(cell[4 * k], cell[4 * k + 1], pair);
        const unsigned high = __byte_perm(cell[4 * k + 2], cell[4 * k + 3], pair);
        return __byte_perm(low, high, 0x5410);
    } else if constexpr (UNIT == 2) {
        return __byte_perm(cell[2 * k], cell[2 * k + 1], p == 0 ? 0x5410 : 0x7632);
    } else {
        return cell[k];
    }
}

__device__ __forceinline__ void store_units(Unit* to, const Vec<Unit, OUT>& v, int room) {
    if (room >= OUT) {
        store_once(to, v);
    } else {
#pragma unroll
        for (int j = 0; j < OUT; ++j)
            if (j < room) to[j] = v.lane[j];
    }
}

/// Columns `first + p` and up of `cell`, from row `to` on, of which `room` are there.
template <int p>
__device__ __forceinline__ void store_columns(const Cell (&cell)[OUT], Unit* to, long long ys, int columns, int room) {
    if (p < columns) {
        Vec<Unit, OUT> v;
#pragma unroll
        for (int k = 0; k < OUT / pack; ++k) reinterpret_cast<Cell*>(&v)[k] = turned<p>(cell, k);
        store_units(to + p * ys, v, room);
    }
    if constexpr (p + 1 < pack) store_columns<p + 1>(cell, to, ys, columns, room);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose_tile(const Unit* x, Unit* y, long long rows, long long cols, int inner_batches, long long xs,
                   long long x1, long long x2, long long ys, long long y1, long long y2) {
    __shared__ Cell tile[TILE_R * pitch];
    const unsigned tiles_r = static_cast<unsigned>((rows + TILE_R - 1) / TILE_R);
    const unsigned tiles_c = static_cast<unsigned>((cols + TILE_C - 1) / TILE_C);
    const unsigned batch = blockIdx.x / tiles_r / tiles_c, at = blockIdx.x % (tiles_r * tiles_c);
    const long long row = static_cast<long long>(DOWN ? at % tiles_r : at / tiles_c) * TILE_R;
    const long long col = static_cast<long long>(DOWN ? at / tiles_r : at % tiles_c) * TILE_C;
    const unsigned b1 = batch / inner_batches, b2 = batch % inner_batches;
    x += b1 * x1 + b2 * x2 + row * xs + col;
    y += b1 * y1 + b2 * y2 + col * ys + row;
    const int height = static_cast<int>(min(static_cast<long long>(TILE_R), rows - row));
    const int width = static_cast<int>(min(static_cast<long long>(TILE_C), cols - col));

    // 1. All loads are issued before the first is used.
    Vec<Unit, IN> raw[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) {
        const int t = i * THREADS + static_cast<int>(threadIdx.x);
        const int r = t / (TILE_C / IN), c = t % (TILE_C / IN) * IN;
        if (r >= height) continue;
        if (c + IN <= width) {
            raw[i] = load_once<IN>(x + r * xs + c);
        } else {
#pragma unroll
            for (int j = 0; j < IN; ++j)
                if (c + j < width) raw[i].lane[j] = x[r * xs + c + j];
        }
    }
#pragma unroll
    for (int i = 0; i < loads; ++i) {
        const int t = i * THREADS + static_cast<int>(threadIdx.x);
        const int r = t / (TILE_C / IN), c = t % (TILE_C / IN) * IN;
        if constexpr (words_in) {
#pragma unroll
            for (int k = 0; k < IN / pack; ++k)
                tile[r * pitch + c / pack + k] = reinterpret_cast<const Cell*>(&raw[i])[k];
        } else {
            Unit* const to = reinterpret_cast<Unit*>(tile + r * pitch) + c;
#pragma unroll
            for (int j = 0; j < IN; ++j) to[j] = raw[i].lane[j];
        }
    }
    __syncthreads();

    // 2. Down the columns, OUT rows a store.
#pragma unroll
    for (int i = 0; i < stores; ++i) {
        const int t = i * THREADS + static_cast<int>(threadIdx.x);
        const int r = t % (TILE_R / OUT) * OUT, c = t / (TILE_R / OUT) * columns_at_once;
        if (c >= width || r >= height) continue;
        if constexpr (words_out) {
            Cell cell[OUT];
#pragma unroll
            for (int j = 0; j < OUT; ++j) cell[j] = tile[(r + j) * pitch + c / pack];
            store_columns<0>(cell, y + c * ys + r, ys, width - c, height - r);
        } else {
            Vec<Unit, OUT> v;
#pragma unroll
            for (int j = 0; j < OUT; ++j) v.lane[j] = reinterpret_cast<const Unit*>(tile + (r + j) * pitch)[c];
            store_units(y + c * ys + r, v, height - r);
        }
    }
}
