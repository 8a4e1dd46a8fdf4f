// cross_entropy, loss and gradient, a row of any length read twice (once without gradient)
//
// x                 T, row-major [rows, cols], ldx elements from row to row, aligned anyhow: logits
// label             LABEL, [rows]
// loss              float, [rows]: lse - (1 - smoothing) * x[label] - smoothing * mean(x); 0 of an ignored row, NaN
//                   where the label is no column
// dx                T, [rows, cols], lddx elements from row to row; may be x: scale * (softmax - (1 - smoothing) at the
//                   label - smoothing / cols); 0 of an ignored row, NaN as the loss
// launch            grid = min(rows, 2^31 - 1), block = THREADS, no dynamic shared memory
// needs             THREADS a power of two, 64 or more; cols + THREADS * VEC * UNROLL < 2^31
#include "cross_entropy.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef THREADS
#define THREADS 512  // threads a block; a block owns a row
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef UNROLL
#define UNROLL 2  // loads in flight
#endif

#ifndef LABEL
#define LABEL int  // of a label
#endif
#ifndef GRADIENT
#define GRADIENT 1  // 0: the loss alone
#endif

using Part = RowPart<THREADS, VEC, UNROLL, true>;

/// This thread's vectors of the tile at `base`, as floats; -inf stands where the row has ended.
__device__ __forceinline__ void load_tile(float (&value)[UNROLL][VEC], const T* x, const Part& part, int base) {
    Vec<T, VEC> raw[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        raw[i] = splat<T, VEC>(minus_infinity);
        if (part.has(i, base)) raw[i] = load<VEC>(x + part.column(i, base));
    }
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) to_floats(raw[i], value[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    cross_entropy_two_pass(const T* x, const LABEL* label, float* loss, T* dx, long long rows, int cols, long long ldx,
                           long long lddx, long long ignore, float smoothing, float scale) {
    int turn = 0;
    for (long long row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
        // 1. Each thread folds its tiles into a running maximum and sums, starting with its single element.
        const T* const from = x + row * ldx;
        T* const to = dx + row * lddx;
        const Part part{from, cols};
        const Target<T, LABEL> target{from, label + row, cols, ignore};
        float single = minus_infinity;
        MaxSumTotal mine;
        if (part.has_single) {
            single = to_float(from[part.single]);
            mine = {{single, exp_natural(single - pivot(single))}, single};
        }
        float value[UNROLL][VEC];
        for (int tile = 0; tile < part.tiles(); ++tile) {
            load_tile(value, from, part, tile * Part::tile);
            float max = mine.exps.max;
#pragma unroll
            for (int i = 0; i < UNROLL * VEC; ++i) max = fmaxf(max, value[i / VEC][i % VEC]);
            mine.exps.sum *= exp_natural(mine.exps.max - pivot(max));
            mine.exps.max = max;
#pragma unroll
            for (int i = 0; i < UNROLL * VEC; ++i) mine.exps.sum += exp_natural(value[i / VEC][i % VEC] - pivot(max));
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

        // 2. The row's, and its loss. Every thread has read its label's logit by then, which dx may replace.
        const MaxSumTotal all = row_reduce<THREADS, 1, 1, 0, MaxSumTotalLanes, 2>(mine, 0, turn);
        if (threadIdx.x == 0) loss[row] = target.loss(all, cols, smoothing);

        // 3. The gradients, from the row's end: what was read last is the likeliest to be in the cache still.
        if constexpr (GRADIENT) {
            const RowGradient gradient{target, all, cols, smoothing, scale};
            const bool aligned = part.fits(to);
            if (part.has_single) to[part.single] = from_float<T>(gradient.of_kept(single));
            for (int tile = part.tiles() - 1; tile >= 0; --tile) {
                load_tile(value, from, part, tile * Part::tile);
#pragma unroll
                for (int i = 0; i < UNROLL; ++i) {
#pragma unroll
                    for (int j = 0; j < VEC; ++j) value[i][j] = gradient.of_kept(value[i][j]);
                    if (part.has(i, tile * Part::tile))
                        store_once_anywhere(to + part.column(i, tile * Part::tile), value[i], aligned);
                }
            }
            if (part.owns(gradient.label)) to[gradient.label] = from_float<T>(gradient.at_label);
        }
    }
}
