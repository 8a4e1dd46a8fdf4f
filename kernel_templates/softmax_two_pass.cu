// softmax, a row of any length read twice, or staged in shared memory
//
//     y[r, c] = exp(x[r, c] - max_r) / sum_k exp(x[r, k] - max_r)
//     LOG: its logarithm, x[r, c] - max_r - log(sum_k exp(x[r, k] - max_r))
//
// x, y    T, row-major [rows, cols], ldx and ldy elements from row to row, aligned anyhow; y may be x
// launch  grid = CLUSTER * any, up to rows and 2^31 - 1, block = THREADS, cluster = CLUSTER
//         STAGED: dynamic shared memory of `ring` tiles of THREADS * UNROLL vectors
// needs   THREADS a power of two, 64 or more; cols + THREADS * VEC * UNROLL < 2^31
//         STAGED: sm_80, and a row has at most `ring` tiles; CLUSTER > 1: sm_90 and STAGED
// source  online normaliser, Milakov & Gimelshein 2018, algorithm 3, with one rescaling a batch of loads
#include "row_tiles.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef THREADS
#define THREADS 512  // threads a block
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef UNROLL
#define UNROLL 2  // loads of a tile
#endif
#ifndef STAGED
#define STAGED 0  // 1: a row stays in shared memory, where those to come arrive meanwhile (sm_80)
#endif
#ifndef THROUGH_L1
#define THROUGH_L1 1  // 0: STAGED tiles are copied past the first-level cache
#endif
#ifndef RAGGED
#define RAGGED 1  // 0: rows are made of whole, aligned vectors
#endif
#ifndef CLUSTER
#define CLUSTER 1  // blocks a row (sm_90)
#endif
#ifndef BLOCKS
#define BLOCKS 1  // blocks that shall fit a multiprocessor
#endif

#ifndef LOG
#define LOG 0  // 1: log_softmax
#endif

using Tiles = RowTiles<STAGED, T, THREADS, VEC, UNROLL, RAGGED, CLUSTER, THROUGH_L1>;
using Part = Tiles::Part;
extern __shared__ uint4 shared[];

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    softmax_two_pass(const T* x, T* y, long long rows, int cols, long long ldx, long long ldy, int ring) {
    __shared__ Exchange<CLUSTER> exchanges[1];
    open_exchanges(exchanges);
    const int rank = blockIdx.x % CLUSTER, step = gridDim.x / CLUSTER;
    long long row = blockIdx.x / CLUSTER;
    Tiles tiles{x, row, step, rows, ldx, cols, rank, shared, ring};
    fill_rings<STAGED>(ring, tiles);
    for (int turn = 0; row < rows; row += step, ++turn) {
        // 1. Each thread folds its tiles into a running maximum and sum, and takes its single element, which was under
        // way meanwhile, in the end.
        const T* const from = x + row * ldx;
        T* const to = y + row * ldy;
        const Part part{from, cols, rank};
        tiles.start(from);
        float single = minus_infinity;
        if (part.has_single) single = to_float(from[part.single]);
        MaxSum mine;
        float value[UNROLL][VEC];
        for (int tile = 0; tile < part.tiles(); ++tile) {
            tiles.await(tile);
            tiles.read(value, part, tile, minus_infinity);
            add_tile(mine, value);
        }
        mine = with_one(mine, single);

        // 2. The block agrees on the row's.
        const MaxSum total = row_reduce<THREADS, 1, CLUSTER, 0, MaxSumLanes, 2>(mine, rank, turn, &exchanges[0]);
        const ExpBelow below{total.max};
        const float scale = 1.0f / total.sum * below.correction;
        const float max = pivot(total.max), log_sum = logf(total.sum);

        // 3. Normalise, or shift, and store.
        const auto result = [=](float logit) { return LOG ? logit - max - log_sum : below.of(logit) * scale; };
        tiles.rewrite(to, part, single, minus_infinity, result);
    }
    close_exchanges<CLUSTER>();
}
