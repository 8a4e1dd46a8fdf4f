// log_softmax, a row of any length read twice: y[r, c] = x[r, c] - max_r - log(sum_k exp(x[r, k] - max_r))
//
// x, y    T, row-major [rows, cols], ldx and ldy elements from row to row, aligned anyhow; y may be x
// launch  grid = min(rows, 2^31 - 1), block = THREADS, no dynamic shared memory
// needs   THREADS a power of two, 64 or more; cols + THREADS * VEC * UNROLL < 2^31
// source  as softmax_two_pass.cu
#include "rows.cuh"
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

extern "C" __global__ void __launch_bounds__(THREADS)
    log_softmax_two_pass(const T* x, T* y, long long rows, int cols, long long ldx, long long ldy) {
    int turn = 0;
    for (long long row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
        // 1. Each thread folds its tiles into a running maximum and sum, starting with its single element.
        const T* const from = x + row * ldx;
        T* const to = y + row * ldy;
        const Part part{from, cols};
        float single = minus_infinity;
        if (part.has_single) single = to_float(from[part.single]);
        MaxSum mine{single, exp_natural(single - pivot(single))};
        float value[UNROLL][VEC];
        for (int tile = 0; tile < part.tiles(); ++tile) {
            load_tile(value, from, part, tile * Part::tile);
            float max = mine.max;
#pragma unroll
            for (int i = 0; i < UNROLL * VEC; ++i) max = fmaxf(max, value[i / VEC][i % VEC]);
            mine.sum *= exp_natural(mine.max - pivot(max));
            mine.max = max;
#pragma unroll
            for (int i = 0; i < UNROLL * VEC; ++i) mine.sum += exp_natural(value[i / VEC][i % VEC] - pivot(max));
        }

        // 2. The block agrees on the row's.
        const MaxSum total = row_reduce<THREADS, 1, 1, 0, MaxSumLanes, 2>(mine, 0, turn);
        const float max = pivot(total.max);
        const float log_sum = logf(total.sum);

        // 3. Shift and store, from the row's end: what was read last is the likeliest to be in the cache still.
        const bool aligned = part.fits(to);
        if (part.has_single) to[part.single] = from_float<T>(single - max - log_sum);
        for (int tile = part.tiles() - 1; tile >= 0; --tile) {
            load_tile(value, from, part, tile * Part::tile);
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
#pragma unroll
                for (int j = 0; j < VEC; ++j) value[i][j] = value[i][j] - max - log_sum;
                if (part.has(i, tile * Part::tile))
                    store_once_anywhere(to + part.column(i, tile * Part::tile), value[i], aligned);
            }
        }
    }
}
