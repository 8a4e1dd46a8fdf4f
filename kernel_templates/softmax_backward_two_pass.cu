// softmax_backward, a row of any length read twice, or staged in shared memory
//
//     dx[r, c] = y[r, c] * (dy[r, c] - sum_k y[r, k] dy[r, k])
//     LOG: of log_softmax: dx[r, c] = dy[r, c] - exp(y[r, c]) * sum_k dy[r, k]
//
// y, dy, dx  T, row-major [rows, cols], ldy, lddy and lddx elements from row to row, aligned anyhow; dx may be y or dy
// launch     grid = CLUSTER * any, up to rows and 2^31 - 1, block = THREADS, cluster = CLUSTER
//            STAGED: dynamic shared memory of `ring` tiles of THREADS * UNROLL vectors of each tensor
// needs      THREADS a power of two, 64 or more; cols + THREADS * VEC * UNROLL < 2^31
//            STAGED: sm_80, not RAGGED, and a row has at most `ring` tiles; CLUSTER > 1: sm_90 and STAGED
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

#ifndef LOG
#define LOG 0  // 1: of log_softmax, y being its result
#endif

using Tiles = RowTiles<STAGED, T, THREADS, VEC, UNROLL, RAGGED, CLUSTER, THROUGH_L1>;
using Part = Tiles::Part;
extern __shared__ uint4 shared[];

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    softmax_backward_two_pass(const T* y, const T* dy, T* dx, long long rows, int cols, long long ldy, long long lddy,
                              long long lddx, int ring) {
    __shared__ Exchange<CLUSTER> exchanges[1];
    open_exchanges(exchanges);
    const int rank = blockIdx.x % CLUSTER, step = gridDim.x / CLUSTER;
    long long row = blockIdx.x / CLUSTER;
    Tiles tiles_y{y, row, step, rows, ldy, cols, rank, shared, ring, 0};
    Tiles tiles_dy{dy, row, step, rows, lddy, cols, rank, shared, ring, 1};
    fill_rings<STAGED>(ring, tiles_y, tiles_dy);
    for (int turn = 0; row < rows; row += step, ++turn) {
        // 1. The row's sum.
        const T* const from_y = y + row * ldy;
        const T* const from_dy = dy + row * lddy;
        T* const to = dx + row * lddx;
        const Part part{from_y, cols, rank};
        tiles_y.start(from_y);
        tiles_dy.start(from_dy);
        const bool dy_fits = part.fits(from_dy), dx_fits = part.fits(to);
        float single_y = 0.0f, single_dy = 0.0f;
        if (part.has_single) {
            single_y = to_float(from_y[part.single]);
            single_dy = to_float(from_dy[part.single]);
        }
        float sum = LOG ? single_dy : single_y * single_dy;
        float value_y[UNROLL][VEC], value_dy[UNROLL][VEC];
        for (int tile = 0; tile < part.tiles(); ++tile) {
            tiles_dy.await(tile, 2);
            if (!LOG) tiles_y.read(value_y, part, tile, 0.0f);
            tiles_dy.read(value_dy, part, tile, 0.0f, dy_fits);
#pragma unroll
            for (int i = 0; i < UNROLL * VEC; ++i)
                sum += LOG ? value_dy[i / VEC][i % VEC] : value_y[i / VEC][i % VEC] * value_dy[i / VEC][i % VEC];
        }
        sum = row_reduce<THREADS, 1, CLUSTER, 0, SumLanes, 2>(sum, rank, turn, &exchanges[0]);

        // 2. The gradients.
        if (part.has_single) to[part.single] = from_float<T>(softmax_gradient<LOG>(single_y, single_dy, sum));
        for (int k = 0; k < part.tiles(); ++k, tiles_y.release(), tiles_dy.release()) {
            const int tile = Tiles::in_last_pass(k, part.tiles());
            tiles_y.read(value_y, part, tile, 0.0f);
            tiles_dy.read(value_dy, part, tile, 0.0f, dy_fits);
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
#pragma unroll
                for (int j = 0; j < VEC; ++j)
                    value_dy[i][j] = softmax_gradient<LOG>(value_y[i][j], value_dy[i][j], sum);
                store_anywhere_if(part.has(i, tile * Part::tile), to + part.column(i, tile * Part::tile),
                                  value_dy[i], dx_fits);
            }
        }
    }
    close_exchanges<CLUSTER>();
}
