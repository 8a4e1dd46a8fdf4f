// softmax, a row of any length read twice: y[r, c] = exp(x[r, c] - max_r) / sum_k exp(x[r, k] - max_r)
//
// x, y    T, row-major [rows, cols], ldx and ldy elements from row to row, aligned anyhow; y may be x
// launch  grid = min(rows, 2^31 - 1), block = THREADS, no dynamic shared memory
// needs   THREADS a power of two, 32 or more; cols + THREADS * VEC * UNROLL < 2^31
// source  online normaliser, Milakov & Gimelshein 2018, algorithm 3, with one rescaling a batch of loads
#include "common.cuh"
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
#define UNROLL 4  // loads in flight
#endif

constexpr int warps = THREADS / 32;
constexpr int step = THREADS * VEC;

/// UNROLL vectors from column `c` on, a step apart, as floats; -inf stands where the row has ended.
__device__ __forceinline__ void load_batch(float (&value)[UNROLL][VEC], const T* x, int c, int cols) {
    Vec<T, VEC> raw[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        raw[i] = splat<T, VEC>(minus_infinity);
        if (c + i * step < cols) raw[i] = load<VEC>(x + c + i * step);
    }
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) to_floats(raw[i], value[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_two_pass(const T* x, T* y, long long rows, int cols, long long ldx, long long ldy) {
    __shared__ MaxSum slots[warps];
    const int first = static_cast<int>(threadIdx.x) * VEC;
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        // 1. Each thread folds its batches into a running maximum and sum, starting with at most one of the elements
        //    that are outside of whole vectors.
        const RowParts parts = row_parts<VEC>(x + row * ldx, cols);
        const T* const from = x + row * ldx + parts.head;
        T* const to = y + row * ldy + parts.head;
        const int t = static_cast<int>(threadIdx.x);
        const int single = t < parts.head ? t - parts.head : parts.body + t - parts.head;
        const bool has_single = t < parts.head + parts.tail;

        MaxSum mine;
        if (has_single) {
            mine.max = to_float(from[single]);
            mine.sum = exp_natural(mine.max - pivot(mine.max));
        }
        int c = first;
        for (; c < parts.body; c += UNROLL * step) {
            float value[UNROLL][VEC];
            load_batch(value, from, c, parts.body);
            float max = mine.max;
#pragma unroll
            for (int i = 0; i < UNROLL * VEC; ++i) max = fmaxf(max, value[i / VEC][i % VEC]);
            mine.sum *= exp_natural(mine.max - pivot(max));
            mine.max = max;
#pragma unroll
            for (int i = 0; i < UNROLL * VEC; ++i) mine.sum += exp_natural(value[i / VEC][i % VEC] - pivot(max));
        }

        // 2. The block agrees on the row's.
        mine = warp_combine(mine);
        if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = mine;
        __syncthreads();
        const MaxSum total = warp_combine<warps>(slots[threadIdx.x % warps]);
        const float scale = 1.0f / total.sum;

        // 3. Normalise and store, from the row's end: what was read last is the likeliest to be in the cache still.
        const bool aligned = is_aligned<VEC>(to);
        if (has_single) to[single] = from_float<T>(exp_natural(to_float(from[single]) - pivot(total.max)) * scale);
        for (c -= UNROLL * step; c >= 0; c -= UNROLL * step) {
            float value[UNROLL][VEC];
            load_batch(value, from, c, parts.body);
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
#pragma unroll
                for (int j = 0; j < VEC; ++j) value[i][j] = exp_natural(value[i][j] - pivot(total.max)) * scale;
                if (c + i * step < parts.body) store_once_anywhere(to + c + i * step, value[i], aligned);
            }
        }
        __syncthreads();  // the slots are free for the next row
    }
}
