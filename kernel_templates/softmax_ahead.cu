// softmax, a row held in registers while the next rows arrive in shared memory
//
//     y[r, c] = exp(x[r, c] - max_r) / sum_k exp(x[r, k] - max_r)
//     LOG: its logarithm, x[r, c] - max_r - log(sum_k exp(x[r, k] - max_r))
//
// x, y    T, row-major [rows, cols], ldx and ldy elements from row to row; y may be x
// launch  grid = CLUSTER * any, up to rows and 2^31 - 1, block = THREADS, cluster = CLUSTER, dynamic shared memory of
//         `ring` chunks of THREADS 16-byte vectors
// needs   sm_90; THREADS a power of two, 64 or more; CLUSTER * THREADS vectors < cols <= CHUNKS times that;
//         FEED threads: `ring` >= CHUNKS
// source  as softmax_rows.cu; rows ahead of the one that is worked on: the persistent kernels of NVIDIA/cutlass
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

#ifndef LOG
#define LOG 0  // 1: log_softmax
#endif

using Ahead = RowAhead<Feed::FEED, T, THREADS, CHUNKS, RAGGED, CLUSTER, BLOCKS>;
constexpr int VEC = Ahead::vec;
extern __shared__ uint4 shared[];

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    softmax_ahead(const T* x, T* y, long long rows, int cols, long long ldx, long long ldy, int ring) {
    __shared__ Exchange<CLUSTER> exchanges[1];
    __shared__ Ahead::State state;
    const int rank = blockIdx.x % CLUSTER, step = gridDim.x / CLUSTER;
    const unsigned zero = cols >> 31;
    long long row = blockIdx.x / CLUSTER;
    Ahead ahead{state, shared, ring, x, row, step, rows, ldx, cols, rank};
    open_exchanges(exchanges);
    for (int turn = 0; row < rows; row += step, ++turn) {
        ahead.start(row);

        // 1. The row comes into registers; its single elements are under way meanwhile.
        const Ahead::Part part{x + row * ldx, cols, rank};
        float single = minus_infinity;
        if (RAGGED && part.has_single) single = to_float(x[row * ldx + part.single]);
        Vec<T, VEC> raw[CHUNKS];
        const MaxSum mine = take_exps<ONLINE>(raw, single, zero, ahead, part);

        // 2. The row's.
        const MaxSum total = row_reduce<THREADS, 1, CLUSTER, 0, MaxSumLanes, 2>(mine, rank, turn, &exchanges[0]);
        ahead.done();
        const ExpBelow below{total.max};
        const float scale = 1.0f / total.sum * below.correction;
        const float max = pivot(total.max), log_sum = LOG ? logf(total.sum) : 0.0f;

        // 3. Normalise, or shift, and store.
        const auto result = [=](float logit) { return LOG ? logit - max - log_sum : below.of(logit) * scale; };
        T* const to = y + row * ldy;
        const bool y_fits = part.fits(to);
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            float value[VEC];
            restate<2>(raw[i], zero);
            to_floats(raw[i], value);
#pragma unroll
            for (int j = 0; j < VEC; ++j) value[j] = result(value[j]);
            store_once_anywhere_if(part.has(i), to + part.column(i), value, y_fits);
        }
        if (RAGGED && part.has_single) to[part.single] = from_float<T>(result(single));
    }
    close_exchanges<CLUSTER>();
}
