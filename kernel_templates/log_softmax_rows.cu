// log_softmax, a row held in registers: y[r, c] = x[r, c] - max_r - log(sum_k exp(x[r, k] - max_r))
//
// x, y    T, row-major [rows, cols], ldx and ldy elements from row to row; y may be x
// launch  grid = CLUSTER * ceil(rows / ROWS), block = (LANES, ROWS), cluster = CLUSTER, no dynamic shared memory
// needs   cols <= CLUSTER * LANES * CHUNKS * VEC; LANES a power of two, LANES * ROWS a multiple of a warp;
//         RAGGED: LANES >= 2 * VEC, else cols % VEC == 0 and rows aligned to VEC elements;
//         CLUSTER > 1: sm_90, LANES > 32 and ROWS == 1
// source  as softmax_rows.cu
#include "rows.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef LANES
#define LANES 128  // threads a row and block
#endif
#ifndef ROWS
#define ROWS 4  // rows a block
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef CHUNKS
#define CHUNKS 4  // loads a thread
#endif
#ifndef RAGGED
#define RAGGED 0  // 1: rows start and end anywhere
#endif
#ifndef BLOCKS
#define BLOCKS 1  // blocks that shall fit a multiprocessor: bounds the registers of a thread
#endif
#ifndef CLUSTER
#define CLUSTER 1  // blocks a row
#endif

extern "C" __global__ void __launch_bounds__(LANES* ROWS, BLOCKS)
    log_softmax_rows(const T* x, T* y, long long rows, int cols, long long ldx, long long ldy) {
    cluster_begin<CLUSTER>();
    const int rank = blockIdx.x % CLUSTER;
    const long long row = static_cast<long long>(blockIdx.x / CLUSTER) * ROWS + threadIdx.y;
    const unsigned zero = cols >> 31;
    x += row * ldx;
    y += row * ldy;

    // 1. All loads are issued before the first is used. A row beyond the last has no columns, but meets the barriers.
    const RowPart<LANES, VEC, CHUNKS, RAGGED, CLUSTER> part{x, row < rows ? cols : 0, rank};
    const bool y_fits = part.fits(y);
    float single;
    Vec<T, VEC> raw[CHUNKS];
    load_row(raw, single, x, part, minus_infinity);

    // 2. The maximum of this thread's elements, and the sum of the exponentials below it.
    const MaxSum mine = exps_of<RAGGED>(raw, single, zero);

    // 3. The row's, and the logarithm of its sum.
    const MaxSum total = row_reduce<LANES, ROWS, CLUSTER, 0, MaxSumLanes>(mine, rank);
    const float max = pivot(total.max);
    const float log_sum = logf(total.sum);

    // 4. Shift and store.
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        float value[VEC];
        restate<2>(raw[i], zero);
        to_floats(raw[i], value);
#pragma unroll
        for (int j = 0; j < VEC; ++j) value[j] = value[j] - max - log_sum;
        store_anywhere_if(part.has(i), y + part.column(i), value, y_fits);
    }
    if (RAGGED && part.has_single) y[part.single] = from_float<T>(single - max - log_sum);
}
