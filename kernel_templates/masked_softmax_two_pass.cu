// masked_softmax, a row of any length read twice: the softmax of scale * x (+ add) over the keys that are neither
// masked nor, of a causal one, to come; 0 elsewhere, and throughout where a row sees nothing
//
// x, y    T, [batch, heads, queries, keys], packed; y may be x; rows are all but the last dimension
// mask    keep: bytes, [batch, queries, keys], 0 where masked; add: T, [heads, queries, keys]
// launch  grid = min(rows, 2^31 - 1), block = THREADS, no dynamic shared memory
// needs   THREADS a power of two, 64 or more; keys + THREADS * VEC * UNROLL < 2^31
#include "masked_softmax.cuh"
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

#ifndef MASK
#define MASK keep  // or add, or none
#endif
#ifndef CAUSAL
#define CAUSAL 0  // 1: query i sees keys j <= i + keys - queries
#endif

using Part = RowPart<THREADS, VEC, UNROLL, true>;

using Masked = MaskedRow<Mask::MASK, CAUSAL, T>;

/// The logits of this thread's vectors of the tile at `base`; -inf stands where the row has ended.
__device__ __forceinline__ void load_tile(float (&value)[UNROLL][VEC], const T* x, const Part& part, int base,
                                          const Masked& masked, bool mask_fits) {
    Vec<T, VEC> raw[UNROLL];
    Masked::More<VEC> more[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        raw[i] = splat<T, VEC>(0.0f);
        if (part.has(i, base) && part.column(i, base) < masked.visible) raw[i] = load<VEC>(x + part.column(i, base));
        if (part.has(i, base)) more[i] = masked.load_more<VEC>(part.column(i, base), mask_fits);
    }
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        to_floats(raw[i], value[i]);
        if (part.has(i, base)) {
            masked.apply<VEC>(value[i], more[i], part.column(i, base));
        } else {
#pragma unroll
            for (int j = 0; j < VEC; ++j) value[i][j] = minus_infinity;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    masked_softmax_two_pass(const T* x, const void* mask, T* y, long long rows, int batches, int heads, int queries,
                            int keys, float scale) {
    int turn = 0;
    for (long long n = blockIdx.x; n < rows; n += gridDim.x, turn ^= 1) {
        const long long row = row_in_order<Mask::MASK>(n, rows, batches, heads, queries);
        // 1. Each thread folds its tiles into a running maximum and sum, starting with its single element.
        const T* const from = x + row * keys;
        T* const to = y + row * keys;
        const Masked masked{mask, row, heads, queries, keys, scale};
        const Part part{from, keys};
        const bool mask_fits = masked.fits<VEC>(part.head);
        float single = minus_infinity;
        if (part.has_single && part.single < masked.visible)
            single = masked.apply_single(to_float(from[part.single]), part.single);
        MaxSum mine{single, exp_binary(single - pivot(single))};
        float value[UNROLL][VEC];
        for (int tile = 0; tile < part.tiles(); ++tile) {
            load_tile(value, from, part, tile * Part::tile, masked, mask_fits);
            float max = mine.max;
#pragma unroll
            for (int i = 0; i < UNROLL * VEC; ++i) max = fmaxf(max, value[i / VEC][i % VEC]);
            mine.sum *= exp_binary(mine.max - pivot(max));
            mine.max = max;
#pragma unroll
            for (int i = 0; i < UNROLL * VEC; ++i) mine.sum += exp_binary(value[i / VEC][i % VEC] - pivot(max));
        }

        // 2. The block agrees on the row's.
        const MaxSum total = row_reduce<THREADS, 1, 1, 0, BinaryMaxSumLanes, 2>(mine, 0, turn);
        const float max = pivot(total.max), share = share_of(total.sum);

        // 3. Normalise and store, from the row's end: what was read last is the likeliest to be in the cache still.
        const bool aligned = part.fits(to);
        if (part.has_single) to[part.single] = from_float<T>(exp_binary(single - max) * share);
        for (int tile = part.tiles() - 1; tile >= 0; --tile) {
            load_tile(value, from, part, tile * Part::tile, masked, mask_fits);
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
#pragma unroll
                for (int j = 0; j < VEC; ++j) value[i][j] = exp_binary(value[i][j] - max) * share;
                if (part.has(i, tile * Part::tile))
                    store_anywhere(to + part.column(i, tile * Part::tile), value[i], aligned);
            }
        }
    }
}
