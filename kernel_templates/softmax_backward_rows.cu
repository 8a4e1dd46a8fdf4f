// softmax_backward, a row held in registers: dx[r, c] = y[r, c] * (dy[r, c] - sum_k y[r, k] dy[r, k])
//     LOG: of log_softmax: dx[r, c] = dy[r, c] - exp(y[r, c]) * sum_k dy[r, k]
//
// y, dy, dx  T, row-major [rows, cols], ldy, lddy and lddx elements from row to row; dx may be y or dy
// launch     grid = CLUSTER * ceil(rows / ROWS), block = (LANES, ROWS), cluster = CLUSTER, no dynamic shared memory
// needs      cols <= CLUSTER * LANES * CHUNKS * VEC; LANES a power of two, LANES * ROWS a multiple of a warp;
//            RAGGED: LANES >= 2 * VEC, else cols % VEC == 0 and rows aligned to VEC elements;
//            CLUSTER > 1: sm_90, LANES > 32 and ROWS == 1
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

#ifndef LOG
#define LOG 0  // 1: of log_softmax, y being its result
#endif

extern "C" __global__ void __launch_bounds__(LANES* ROWS, BLOCKS)
    softmax_backward_rows(const T* y, const T* dy, T* dx, long long rows, int cols, long long ldy, long long lddy,
                          long long lddx) {
    cluster_begin<CLUSTER>();
    const int rank = blockIdx.x % CLUSTER;
    const long long row = static_cast<long long>(blockIdx.x / CLUSTER) * ROWS + threadIdx.y;
    const unsigned zero = cols >> 31;
    y += row * ldy;
    dy += row * lddy;
    dx += row * lddx;

    // 1. All loads are issued before the first is used. A row beyond the last has no columns, but meets the barriers.
    const RowPart<LANES, VEC, CHUNKS, RAGGED, CLUSTER> part{y, row < rows ? cols : 0, rank};
    const bool dy_fits = part.fits(dy), dx_fits = part.fits(dx);
    float single_y = 0.0f, single_dy = 0.0f;
    if (RAGGED && part.has_single) {
        single_y = to_float(y[part.single]);
        single_dy = to_float(dy[part.single]);
    }
    Vec<T, VEC> raw_y[CHUNKS], raw_dy[CHUNKS];
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        raw_y[i] = raw_dy[i] = splat<T, VEC>(0.0f);
        load_once_if(part.has(i), raw_y[i], y + part.column(i));
        load_anywhere_if(part.has(i), raw_dy[i], dy + part.column(i), dy_fits);
    }

    // 2. The row's sum.
    float sum = LOG ? single_dy : single_y * single_dy;
    float value_y[VEC], value_dy[VEC];
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        to_floats(raw_y[i], value_y);
        to_floats(raw_dy[i], value_dy);
#pragma unroll
        for (int j = 0; j < VEC; ++j) sum += LOG ? value_dy[j] : value_y[j] * value_dy[j];
    }
    sum = row_reduce<LANES, ROWS, CLUSTER, 0, SumLanes>(sum, rank);

    // 3. The gradients.
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        restate<1>(raw_y[i], zero);
        restate<1>(raw_dy[i], zero);
        to_floats(raw_y[i], value_y);
        to_floats(raw_dy[i], value_dy);
#pragma unroll
        for (int j = 0; j < VEC; ++j) value_dy[j] = softmax_gradient<LOG>(value_y[j], value_dy[j], sum);
        store_anywhere_if(part.has(i), dx + part.column(i), value_dy, dx_fits);
    }
    if (RAGGED && part.has_single) dx[part.single] = from_float<T>(softmax_gradient<LOG>(single_y, single_dy, sum));
}
