// cross_entropy, loss and gradient, a row of any length read twice, or staged in shared memory (once without gradient)
//
// x                 T, row-major [rows, cols], ldx elements from row to row, aligned anyhow: logits
// label             LABEL, [rows]
// loss              float, [rows]: lse - (1 - smoothing) * x[label] - smoothing * mean(x); 0 of an ignored row, NaN
//                   where the label is no column
// dx                T, [rows, cols], lddx elements from row to row; may be x: scale * (softmax - (1 - smoothing) at the
//                   label - smoothing / cols); 0 of an ignored row, NaN as the loss
// launch            grid = CLUSTER * any, up to rows and 2^31 - 1, block = THREADS, cluster = CLUSTER
//                   STAGED: dynamic shared memory of `ring` tiles of THREADS * UNROLL vectors
// needs             THREADS a power of two, 64 or more; cols + THREADS * VEC * UNROLL < 2^31
//                   STAGED: sm_80, and a row has at most `ring` tiles; CLUSTER > 1: sm_90 and STAGED
#include "cross_entropy.cuh"
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
#define CLUSTER 1  // blocks a row
#endif
#ifndef BLOCKS
#define BLOCKS 1  // blocks that shall fit a multiprocessor
#endif

#ifndef LABEL
#define LABEL int  // of a label
#endif
#ifndef GRADIENT
#define GRADIENT 1  // 0: the loss alone
#endif

using Tiles = RowTiles<STAGED, T, THREADS, VEC, UNROLL, RAGGED, CLUSTER, THROUGH_L1>;
using Part = Tiles::Part;
extern __shared__ uint4 shared[];

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    cross_entropy_two_pass(const T* x, const LABEL* label, float* loss, T* dx, long long rows, int cols, long long ldx,
                           long long lddx, long long ignore, float smoothing, float scale, int ring) {
    __shared__ Exchange<CLUSTER> exchanges[1];
    open_exchanges(exchanges);
    const int rank = blockIdx.x % CLUSTER, step = gridDim.x / CLUSTER;
    long long row = blockIdx.x / CLUSTER;
    Tiles tiles{x, row, step, rows, ldx, cols, rank, shared, ring};
    fill_rings<STAGED>(ring, tiles);
    LABEL next_label = row < rows ? label[row] : 0;
    for (int turn = 0; row < rows; row += step, ++turn) {
        // 1. Each thread folds its tiles into a running maximum and sums, and takes its single element, which was under
        // way meanwhile, in the end.
        const T* const from = x + row * ldx;
        T* const to = dx + row * lddx;
        const Part part{from, cols, rank};
        const Target<T, LABEL> target{from, next_label, cols, ignore};
        if (row + step < rows) next_label = label[row + step];
        tiles.start(from);
        float single = minus_infinity;
        MaxSumTotal mine;
        if (part.has_single) single = to_float(from[part.single]);
        float value[UNROLL][VEC];
        for (int tile = 0; tile < part.tiles(); ++tile) {
            tiles.await(tile);
            tiles.read(value, part, tile, minus_infinity);
            add_tile(mine.exps, value);
            if (smoothing != 0.0f) {
#pragma unroll
                for (int i = 0; i < UNROLL; ++i) {
                    if (part.has(i, tile * Part::tile)) {
#pragma unroll
                        for (int j = 0; j < VEC; ++j) mine.total += value[i][j];
                    }
                }
            }
        }
        mine.exps = with_one(mine.exps, single);
        if (part.has_single) mine.total += single;

        // 2. The row's, and its loss. Every thread has read its label's logit by then, which dx may replace.
        const MaxSumTotal all =
            row_reduce<THREADS, 1, CLUSTER, 0, MaxSumTotalLanes, 2>(mine, rank, turn, &exchanges[0]);
        if (rank == 0 && threadIdx.x == 0) loss[row] = target.loss(all, cols, smoothing);

        // 3. The gradients.
        if constexpr (GRADIENT) {
            const RowGradient gradient{target, all, cols, smoothing, scale};
            const float zeros[VEC] = {};
            const bool aligned = part.fits(to);
            if (part.has_single) to[part.single] = from_float<T>(gradient.ignored ? 0.0f : gradient.of(single));
            for (int k = 0; k < part.tiles(); ++k, tiles.release()) {
                const int tile = Tiles::in_last_pass(k, part.tiles());
#pragma unroll
                for (int i = 0; i < UNROLL; ++i) {
                    const bool has = part.has(i, tile * Part::tile);
                    T* const at = to + part.column(i, tile * Part::tile);
                    if (gradient.ignored) {
                        store_anywhere_if(has, at, zeros, aligned);
                        continue;
                    }
                    Vec<T, VEC> raw = splat<T, VEC>(0.0f);
                    tiles.read(raw, part, i, tile);
                    to_floats(raw, value[i]);
#pragma unroll
                    for (int j = 0; j < VEC; ++j) value[i][j] = gradient.of(value[i][j]);
                    store_anywhere_if(has, at, value[i], aligned);
                }
            }
            if (part.owns(gradient.label)) to[gradient.label] = from_float<T>(gradient.at_label);
        }
    }
    close_exchanges<CLUSTER>();
}
