// masked_softmax, a row held in registers: the softmax of scale * x (+ add) over the keys that are neither masked nor,
// of a causal one, to come; 0 elsewhere, and throughout where a row sees nothing
//
// x, y    T, [batch, heads, queries, keys], packed; y may be x; rows are all but the last dimension
// mask    keep: bytes, [batch, queries, keys], 0 where masked; add: T, [heads, queries, keys]
// launch  grid = CLUSTER * ceil(rows / ROWS), block = (LANES, ROWS), cluster = CLUSTER, no dynamic shared memory
// needs   keys <= CLUSTER * LANES * CHUNKS * VEC; LANES a power of two, LANES * ROWS a multiple of a warp;
//         RAGGED: LANES >= 2 * VEC, else keys % VEC == 0 and rows aligned to VEC elements;
//         CLUSTER > 1: sm_90, LANES > 32 and ROWS == 1
#include "masked_softmax.cuh"
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

#ifndef MASK
#define MASK keep  // or add, or none
#endif
#ifndef CAUSAL
#define CAUSAL 0  // 1: query i sees keys j <= i + keys - queries
#endif

extern "C" __global__ void __launch_bounds__(LANES* ROWS, BLOCKS)
    masked_softmax_rows(const T* x, const void* mask, T* y, long long rows, int batches, int heads, int queries,
                        int keys, float scale) {
    cluster_begin<CLUSTER>();
    const int rank = blockIdx.x % CLUSTER;
    const long long row = row_in_order<Mask::MASK>(static_cast<long long>(blockIdx.x / CLUSTER) * ROWS + threadIdx.y,
                                                   rows, batches, heads, queries);
    x += row * keys;
    y += row * keys;
    using Masked = MaskedRow<Mask::MASK, CAUSAL, T>;
    const Masked masked{mask, row < rows ? row : 0, heads, queries, keys, scale};

    // 1. All loads are issued before the first is used. A row beyond the last has no columns, but meets the barriers.
    const RowPart<LANES, VEC, CHUNKS, RAGGED, CLUSTER> part{x, row < rows ? keys : 0, rank};
    const bool y_fits = part.fits(y), mask_fits = !RAGGED || masked.fits<VEC>(part.head);
    Vec<T, VEC> raw[CHUNKS];
    Masked::More<VEC> more[CHUNKS];
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        raw[i] = splat<T, VEC>(0.0f);
        load_once_if(part.has(i) && part.column(i) < masked.visible, raw[i], x + part.column(i));
        if (part.has(i)) more[i] = masked.load_more<VEC>(part.column(i), mask_fits);
    }
    float single = minus_infinity;
    if (RAGGED && part.has_single && part.single < masked.visible)
        single = masked.apply_single(to_float(x[part.single]), part.single);

    // 2. The logits, their maximum, and the sum of the exponentials below it.
    float value[CHUNKS][VEC];
    MaxSum mine{single, 0.0f};
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        to_floats(raw[i], value[i]);
        if (part.has(i)) {
            masked.apply<VEC>(value[i], more[i], part.column(i));
        } else {
#pragma unroll
            for (int j = 0; j < VEC; ++j) value[i][j] = minus_infinity;
        }
#pragma unroll
        for (int j = 0; j < VEC; ++j) mine.max = fmaxf(mine.max, value[i][j]);
    }
    if (RAGGED) {
        single = exp_binary(single - pivot(mine.max));
        mine.sum = single;
    }
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            value[i][j] = exp_binary(value[i][j] - pivot(mine.max));
            mine.sum += value[i][j];
        }
    }

    // 3. The row's, and the factor from this thread's exponentials to the results.
    const MaxSum total = row_reduce<LANES, ROWS, CLUSTER, 0, BinaryMaxSumLanes>(mine, rank);
    const float share = exp_binary(mine.max - pivot(total.max)) * share_of(total.sum);

    // 4. Normalise and store.
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
#pragma unroll
        for (int j = 0; j < VEC; ++j) value[i][j] *= share;
        store_anywhere_if(part.has(i), y + part.column(i), value[i], y_fits);
    }
    if (RAGGED && part.has_single) y[part.single] = from_float<T>(single * share);
}
