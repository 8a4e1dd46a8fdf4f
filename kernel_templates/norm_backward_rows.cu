// The backward pass of layernorm and rmsnorm, rows held in registers, weight gradients summed along the way
//
//     dx = rstd * (g - mean_k(g) - xhat * mean_k(g * xhat)) (+ dh)
//     with xhat = (x - mean) * rstd and g = dy * (weight + offset); rmsnorm: without mean_k(g), and mean is 0
//     dweight = sum of dy * xhat over rows, dbias = sum of dy
//
// x, dy, dx     T, row-major [rows, cols], ldx, lddy and lddx elements from row to row; dx may be x, dy or dh
// dh            T, [rows, cols], packed: what the residual branch adds, of DH
// weight        W, [cols]; mean, rstd: float, [rows], from the forward pass
// parts         float, [1 + BIAS, gridDim.x * ROWS, cols]: each has the sums of its rows; norm_backward_sums adds them
//               up in their order, so that equal inputs give equal bits
// launch        grid = any, block = (LANES, ROWS), no dynamic shared memory; a block takes ROWS rows in turn
// needs         cols <= LANES * CHUNKS * VEC, cols % VEC == 0 and rows aligned to VEC elements; LANES a power of two,
//               LANES * ROWS a multiple of a warp
// source        persistent blocks with weight gradients in registers: Dao-AILab/quack
#include "rows.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef W
#define W T  // of weight
#endif
#ifndef MEAN
#define MEAN 1  // 1: layernorm; 0: rmsnorm
#endif
#ifndef BIAS
#define BIAS 0  // 1: dbias is wanted
#endif
#ifndef DH
#define DH 0  // 1: dh is added
#endif
#ifndef LANES
#define LANES 128  // threads a row
#endif
#ifndef ROWS
#define ROWS 1  // rows a block at a time
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef CHUNKS
#define CHUNKS 4  // loads a thread
#endif
#ifndef AHEAD
#define AHEAD 0  // 1: a row's loads are issued before the row before it is worked on
#endif
#ifndef BLOCKS
#define BLOCKS 1  // blocks that shall fit a multiprocessor: bounds the registers of a thread
#endif

using Part = RowPart<LANES, VEC, CHUNKS, false>;

/// What a thread loads of a row.
struct Loaded {
    Vec<T, VEC> x[CHUNKS], dy[CHUNKS];
    float mean, rstd;
};

extern "C" __global__ void __launch_bounds__(LANES* ROWS, BLOCKS)
    norm_backward_rows(const T* x, const T* dy, const W* weight, const float* mean, const float* rstd, const T* dh,
                       T* dx, float* parts, long long rows, int cols, long long ldx, long long lddy, long long lddx,
                       float offset) {
    const long long step = static_cast<long long>(gridDim.x) * ROWS;
    const unsigned zero = cols >> 31;
    const Part part{x, cols};
    const auto fetch = [=](Loaded& to, long long row) {
        to.mean = to.rstd = 0.0f;
        if (row < rows) {
            if (MEAN) to.mean = mean[row];
            to.rstd = rstd[row];
        }
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            to.x[i] = to.dy[i] = splat<T, VEC>(0.0f);
            if (row < rows && part.has(i)) {
                to.x[i] = load_once<VEC>(x + row * ldx + part.column(i));
                to.dy[i] = load_once<VEC>(dy + row * lddy + part.column(i));
            }
        }
    };

    float sum_weight[CHUNKS][VEC] = {}, sum_bias[BIAS ? CHUNKS : 1][VEC] = {};
    long long row = static_cast<long long>(blockIdx.x) * ROWS + threadIdx.y;
    // All rows of a block take the same turns, since they meet at its barriers.
    const long long turns = (rows - static_cast<long long>(blockIdx.x) * ROWS + step - 1) / step;
    Loaded now;
    if (AHEAD) fetch(now, row);
    for (long long turn = 0; turn < turns; ++turn, row += step) {
        // 1. This row, and the next one's loads.
        Loaded next;
        if (AHEAD)
            fetch(next, row + step);
        else
            fetch(now, row);

        // 2. The row's means of g * xhat and of g, and the sums over rows.
        float2 means = make_float2(0.0f, 0.0f);
        float a[VEC], b[VEC], w[VEC];
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
#pragma unroll
            for (int j = 0; j < VEC; ++j) w[j] = 0.0f;
            if (part.has(i)) load_shared_row<VEC>(w, weight + part.column(i), true);
            to_floats(now.x[i], a);
            to_floats(now.dy[i], b);
#pragma unroll
            for (int j = 0; j < VEC; ++j) {
                const float xhat = (a[j] - now.mean) * now.rstd, g = b[j] * (w[j] + offset);
                sum_weight[i][j] = fmaf(b[j], xhat, sum_weight[i][j]);
                if (BIAS) sum_bias[BIAS ? i : 0][j] += b[j];
                means.x = fmaf(g, xhat, means.x);
                if (MEAN) means.y += g;
            }
        }
        means = row_reduce<LANES, ROWS, 1, 0, SumLanes, 2>(means, 0, static_cast<int>(turn & 1));
        means.x /= static_cast<float>(cols);
        means.y = MEAN ? means.y / static_cast<float>(cols) : 0.0f;

        // 3. The row's gradients.
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            if (row < rows && part.has(i)) {
                load_shared_row<VEC>(w, weight + part.column(i), true);
                restate<1>(now.x[i], zero);
                restate<1>(now.dy[i], zero);
                to_floats(now.x[i], a);
                to_floats(now.dy[i], b);
#pragma unroll
                for (int j = 0; j < VEC; ++j) {
                    const float xhat = (a[j] - now.mean) * now.rstd, g = b[j] * (w[j] + offset);
                    b[j] = now.rstd * (g - means.y - xhat * means.x);
                }
                if constexpr (DH) {
                    to_floats(load_once<VEC>(dh + row * cols + part.column(i)), a);
#pragma unroll
                    for (int j = 0; j < VEC; ++j) b[j] += a[j];
                }
                store_once(dx + row * lddx + part.column(i), from_floats<T>(b));
            }
        }
        if (AHEAD) now = next;
    }

    // 4. The block's part of the sums.
    float* const to = parts + (static_cast<long long>(blockIdx.x) * ROWS + threadIdx.y) * cols;
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        if (!part.has(i)) continue;
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            to[part.column(i) + j] = sum_weight[i][j];
            if (BIAS) to[step * cols + part.column(i) + j] = sum_bias[BIAS ? i : 0][j];
        }
    }
}
