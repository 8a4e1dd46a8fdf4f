// cross_entropy, loss and gradient in one pass, a row held in registers
//
// x                 T, row-major [rows, cols], ldx elements from row to row: logits
// label             LABEL, [rows]
// loss              float, [rows]: lse - (1 - smoothing) * x[label] - smoothing * mean(x); 0 of an ignored row, NaN
//                   where the label is no column
// dx                T, [rows, cols], lddx elements from row to row; may be x: scale * (softmax - (1 - smoothing) at the
//                   label - smoothing / cols); 0 of an ignored row, NaN as the loss
// launch            grid = CLUSTER * ceil(rows / ROWS), block = (LANES, ROWS), cluster = CLUSTER, no dynamic shared
//                   memory
// needs             cols <= CLUSTER * LANES * CHUNKS * VEC; LANES a power of two, LANES * ROWS a multiple of a warp;
//                   RAGGED: LANES >= 2 * VEC, else cols % VEC == 0 and rows aligned to VEC elements;
//                   CLUSTER > 1: sm_90, LANES > 32 and ROWS == 1
#include "cross_entropy.cuh"
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

#ifndef LABEL
#define LABEL int  // of a label
#endif
#ifndef GRADIENT
#define GRADIENT 1  // 0: the loss alone
#endif

extern "C" __global__ void __launch_bounds__(LANES* ROWS, BLOCKS)
    cross_entropy_rows(const T* x, const LABEL* label, float* loss, T* dx, long long rows, int cols, long long ldx,
                       long long lddx, long long ignore, float smoothing, float scale) {
    cluster_begin<CLUSTER>();
    const int rank = blockIdx.x % CLUSTER;
    const long long row = static_cast<long long>(blockIdx.x / CLUSTER) * ROWS + threadIdx.y;
    const unsigned zero = cols >> 31;
    x += row * ldx;
    dx += row * lddx;

    // 1. All loads are issued before the first is used. A row beyond the last has no columns, but meets the barriers.
    const RowPart<LANES, VEC, CHUNKS, RAGGED, CLUSTER> part{x, row < rows ? cols : 0, rank};
    const bool dx_fits = part.fits(dx);
    float single;
    Vec<T, VEC> raw[CHUNKS];
    load_row(raw, single, x, part, minus_infinity);
    const Target<T, LABEL> target{x, label[row < rows ? row : 0], row < rows ? cols : 0, ignore};

    // 2. The maximum of this thread's elements, the sum of the exponentials below it, and the plain sum.
    MaxSumTotal mine{exps_of<RAGGED>(raw, single, zero)};
    float value[VEC];
    if (smoothing != 0.0f) {
        if (RAGGED && part.has_single) mine.total = single;
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            restate<2>(raw[i], zero);
            to_floats(raw[i], value);
            if (part.has(i)) {
#pragma unroll
                for (int j = 0; j < VEC; ++j) mine.total += value[j];
            }
        }
    }

    // 3. The row's, and its loss. Every thread of the row has read its label's logit by then, which dx may replace.
    if constexpr (LANES <= 32) __syncwarp();
    const MaxSumTotal all = row_reduce<LANES, ROWS, CLUSTER, 0, MaxSumTotalLanes>(mine, rank);
    if (rank == 0 && threadIdx.x == 0 && row < rows) loss[row] = target.loss(all, cols, smoothing);

    // 4. The gradients.
    if constexpr (GRADIENT) {
        const RowGradient gradient{target, all, cols, smoothing, scale};
        const float zeros[VEC] = {};
        if (gradient.ignored) {
#pragma unroll
            for (int i = 0; i < CHUNKS; ++i) store_anywhere_if(part.has(i), dx + part.column(i), zeros, dx_fits);
        } else {
#pragma unroll
            for (int i = 0; i < CHUNKS; ++i) {
                restate<3>(raw[i], zero);
                to_floats(raw[i], value);
#pragma unroll
                for (int j = 0; j < VEC; ++j) value[j] = gradient.of(value[j]);
                store_anywhere_if(part.has(i), dx + part.column(i), value, dx_fits);
            }
        }
        if (RAGGED && part.has_single) dx[part.single] = from_float<T>(gradient.ignored ? 0.0f : gradient.of(single));
        if (part.owns(gradient.label)) dx[gradient.label] = from_float<T>(gradient.at_label);
    }
}
