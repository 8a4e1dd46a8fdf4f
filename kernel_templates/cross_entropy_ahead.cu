// cross_entropy, loss and gradient, a row held in registers while the next rows arrive in shared memory
//
// x                 T, row-major [rows, cols], ldx elements from row to row: logits
// label             LABEL, [rows]
// loss              float, [rows]: lse - (1 - smoothing) * x[label] - smoothing * mean(x); 0 of an ignored row, NaN
//                   where the label is no column
// dx                T, [rows, cols], lddx elements from row to row; may be x: scale * (softmax - (1 - smoothing) at the
//                   label - smoothing / cols); 0 of an ignored row, NaN as the loss
// launch            grid = CLUSTER * any, up to rows and 2^31 - 1, block = THREADS, cluster = CLUSTER, dynamic shared
//                   memory of `ring` chunks of THREADS 16-byte vectors
// needs             sm_90; THREADS a power of two, 64 or more; CLUSTER * THREADS vectors < cols <= CHUNKS times that;
//                   FEED threads: `ring` >= CHUNKS
#include "cross_entropy.cuh"
#include "row_ahead.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef THREADS
#define THREADS 1024  // threads a block
#endif
#ifndef CHUNKS
#define CHUNKS 4  // loads a thread
#endif
#ifndef RAGGED
#define RAGGED 1  // 0: rows are made of whole, aligned vectors
#endif
#ifndef CLUSTER
#define CLUSTER 1  // blocks a row
#endif
#ifndef BLOCKS
#define BLOCKS 1  // blocks that shall fit a multiprocessor
#endif
#ifndef FEED
#define FEED bulk  // what brings rows ahead: bulk copies, those of what first leaves the cache, or threads
#endif
#ifndef ONLINE
#define ONLINE 1  // 1: exponentials are added as the row comes; 0: when it is there
#endif

#ifndef LABEL
#define LABEL int  // of a label
#endif
#ifndef GRADIENT
#define GRADIENT 1  // 0: the loss alone
#endif

using Ahead = RowAhead<Feed::FEED, T, THREADS, CHUNKS, RAGGED, CLUSTER, BLOCKS>;
constexpr int VEC = Ahead::vec;
extern __shared__ uint4 shared[];

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    cross_entropy_ahead(const T* x, const LABEL* label, float* loss, T* dx, long long rows, int cols, long long ldx,
                        long long lddx, long long ignore, float smoothing, float scale, int ring) {
    __shared__ Exchange<CLUSTER> exchanges[1];
    __shared__ Ahead::State state;
    const int rank = blockIdx.x % CLUSTER, step = gridDim.x / CLUSTER;
    const unsigned zero = cols >> 31;
    long long row = blockIdx.x / CLUSTER;
    // One thread reads the labels, a row ahead, and their logits: they would be registers of all.
    __shared__ LABEL labels[3];
    __shared__ T logits[2];
    if (threadIdx.x == 0) {
        copy_async_if<1>(row < rows, &labels[0], label + row);
        cp_async_commit();
    }
    Ahead ahead{state, shared, ring, x, row, step, rows, ldx, cols, rank};
    open_exchanges(exchanges);
    for (int turn = 0; row < rows; row += step, ++turn) {
        ahead.start(row);

        // 1. The row comes into registers; its single elements are under way meanwhile, and so is its label's logit.
        const T* const from = x + row * ldx;
        const Ahead::Part part{from, cols, rank};
        T logit = from_float<T>(0.0f);
        if (threadIdx.x == 0) {
            cp_async_wait<Ahead::groups>();
            logit = Target<T, LABEL>{from, labels[turn % 3], cols, ignore}.logit;
            copy_async_if<1>(row + step < rows, &labels[(turn + 1) % 3], label + row + step);
            cp_async_commit();
        }
        float single = minus_infinity;
        if (RAGGED && part.has_single) single = to_float(from[part.single]);
        Vec<T, VEC> raw[CHUNKS];
        MaxSumTotal mine{take_exps<ONLINE>(raw, single, zero, ahead, part)};
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

        if (threadIdx.x == 0) logits[turn % 2] = logit;

        // 2. The row's, and its loss. The blocks have read the label's logit by then, which dx may replace.
        const MaxSumTotal all =
            row_reduce<THREADS, 1, CLUSTER, 0, MaxSumTotalLanes, 2>(mine, rank, turn, &exchanges[0]);
        ahead.done();
        const Target<T, LABEL> target{labels[turn % 3], logits[turn % 2], cols, ignore};
        if (rank == 0 && threadIdx.x == 0) loss[row] = target.loss(all, cols, smoothing);

        // 3. The gradients.
        if constexpr (GRADIENT) {
            T* const to = dx + row * lddx;
            const RowGradient gradient{target, all, cols, smoothing, scale};
            const float zeros[VEC] = {};
            const bool dx_fits = part.fits(to);
            if (gradient.ignored) {
#pragma unroll
                for (int i = 0; i < CHUNKS; ++i)
                    store_once_anywhere_if(part.has(i), to + part.column(i), zeros, dx_fits);
            } else {
#pragma unroll
                for (int i = 0; i < CHUNKS; ++i) {
                    restate<3>(raw[i], zero);
                    to_floats(raw[i], value);
#pragma unroll
                    for (int j = 0; j < VEC; ++j) value[j] = gradient.of(value[j]);
                    store_once_anywhere_if(part.has(i), to + part.column(i), value, dx_fits);
                }
            }
            if (RAGGED && part.has_single)
                to[part.single] = from_float<T>(gradient.ignored ? 0.0f : gradient.of(single));
            if (part.owns(gradient.label)) to[gradient.label] = from_float<T>(gradient.at_label);
        }
    }
    close_exchanges<CLUSTER>();
}
