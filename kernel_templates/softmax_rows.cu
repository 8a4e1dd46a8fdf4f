// softmax, a row held in registers: y[r, c] = exp(x[r, c] - max_r) / sum_k exp(x[r, k] - max_r)
//
// Each row is read once and written once; LANES threads hold it, from a part of a warp to a cluster of blocks.
// x, y    T, row-major [rows, cols], ldx and ldy elements from row to row; y may be x
// launch  grid = CLUSTER * ceil(rows / ROWS), block = (LANES, ROWS), cluster = CLUSTER, no dynamic shared memory
// needs   cols <= CLUSTER * LANES * CHUNKS * VEC; LANES a power of two, LANES * ROWS a multiple of a warp;
//         RAGGED: LANES >= 2 * VEC, else cols % VEC == 0 and rows aligned to VEC elements;
//         CLUSTER > 1: sm_90, LANES > 32, ROWS == 1 and ONLINE
// source  threads a row, row in registers, clusters for long rows: Dao-AILab/quack; the pair of maximum and sum:
//         Milakov & Gimelshein 2018
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
#define ROWS 1  // rows a block
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef CHUNKS
#define CHUNKS 4  // loads a thread
#endif
#ifndef RAGGED
#define RAGGED 0  // 1: rows start and end anywhere, and up to 2 * VEC - 2 elements outside of whole vectors go singly
#endif
#ifndef ONLINE
#define ONLINE (LANES > 32)  // 1: one exchange of (max, sum) pairs; 0: one of maxima, then one of sums
#endif
#ifndef PACKED
#define PACKED 0  // 1: keep elements as loaded and take each exp twice; 0: keep the exponentials as floats
#endif
#ifndef BLOCKS
#define BLOCKS 1  // blocks that shall fit a multiprocessor: bounds the registers of a thread
#endif
#ifndef CLUSTER
#define CLUSTER 1  // blocks a row
#endif

extern "C" __global__ void __launch_bounds__(LANES* ROWS, BLOCKS)
    softmax_rows(const T* x, T* y, long long rows, int cols, long long ldx, long long ldy) {
    cluster_begin<CLUSTER>();
    const int rank = blockIdx.x % CLUSTER;
    const long long row = static_cast<long long>(blockIdx.x / CLUSTER) * ROWS + threadIdx.y;
    const unsigned zero = cols >> 31;
    x += row * ldx;
    y += row * ldy;

    // 1. All loads are issued before the first is used; -inf stands where the row has ended. A row beyond the last has
    //    no columns, but meets the barriers.
    const RowPart<LANES, VEC, CHUNKS, RAGGED, CLUSTER> part{x, row < rows ? cols : 0, rank};
    const bool y_fits = part.fits(y);
    float single;
    Vec<T, VEC> raw[CHUNKS];
    load_row(raw, single, x, part, minus_infinity);

    // 2. The maximum: of this thread's elements, or of the row.
    float max = single;
    float exps[PACKED ? 1 : CHUNKS][VEC];
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        float(&value)[VEC] = exps[PACKED ? 0 : i];
        to_floats(raw[i], value);
#pragma unroll
        for (int j = 0; j < VEC; ++j) max = fmaxf(max, value[j]);
    }
    if constexpr (!ONLINE) max = row_reduce<LANES, ROWS, 1, 0, MaxLanes>(max);

    // 3. The exponentials below it and their sum.
    if constexpr (RAGGED) single = exp_natural(single - pivot(max));
    float sum = RAGGED ? single : 0.0f;
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        float(&value)[VEC] = exps[PACKED ? 0 : i];
        if constexpr (PACKED) {
            restate<1>(raw[i], zero);
            to_floats(raw[i], value);
        }
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            value[j] = exp_natural(value[j] - pivot(max));
            sum += value[j];
        }
    }

    // 4. The row's maximum and sum, and the factor from this thread's exponentials to the results.
    float scale = 1.0f;
    if constexpr (ONLINE) {
        const MaxSum total = row_reduce<LANES, ROWS, CLUSTER, 0, MaxSumLanes>(MaxSum{max, sum}, rank);
        const float ratio = exp_natural(max - pivot(total.max));
        if constexpr (!PACKED) scale = ratio;
        if constexpr (RAGGED && PACKED) single *= ratio;
        max = total.max;
        sum = total.sum;
    } else {
        sum = row_reduce<LANES, ROWS, 1, 1, SumLanes>(sum);
    }
    scale *= 1.0f / sum;

    // 5. Normalise and store.
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        float(&value)[VEC] = exps[PACKED ? 0 : i];
        if constexpr (PACKED) {
            restate<2>(raw[i], zero);
            to_floats(raw[i], value);
        }
#pragma unroll
        for (int j = 0; j < VEC; ++j) value[j] = (PACKED ? exp_natural(value[j] - pivot(max)) : value[j]) * scale;
        store_anywhere_if(part.has(i), y + part.column(i), value, y_fits);
    }
    if (RAGGED && part.has_single) y[part.single] = from_float<T>(single * scale);
}
