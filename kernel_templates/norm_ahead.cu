// layernorm and rmsnorm, a row held in registers while the next rows arrive in shared memory
//
//     y = (x - mean) * rstd * (weight + offset) (+ bias) with rstd = 1 / sqrt(mean((x - mean)^2) + eps); rmsnorm is
//     without mean
//
// x, y        T, row-major [rows, cols], ldx and ldy elements from row to row; y may be x
// weight, bias W, [cols]
// mean, rstd  float, [rows]
// launch      grid = CLUSTER * any, up to rows and 2^31 - 1, block = THREADS, cluster = CLUSTER, dynamic shared memory
//             of `ring` chunks of THREADS 16-byte vectors; KEPT: before them CHUNKS * THREADS vectors of weights and
//             of biases
// needs       sm_90; THREADS a power of two, 64 or more; CLUSTER * THREADS vectors < cols <= CHUNKS times that;
//             FEED threads: `ring` >= CHUNKS; KEPT: not RAGGED
// source      as norm_rows.cu; rows ahead of the one that is worked on: the persistent kernels of NVIDIA/cutlass
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
#ifndef KEPT
#define KEPT 0  // 1: weights and biases stay in shared memory, a block's columns being the same in each row
#endif

#ifndef W
#define W T  // of weight and bias
#endif
#ifndef MEAN
#define MEAN 1  // 1: layernorm; 0: rmsnorm, which takes the mean as 0
#endif
#ifndef BIAS
#define BIAS 0
#endif
#ifndef STATS
#define STATS 0  // 1: mean and rstd are stored
#endif

using Ahead = RowAhead<Feed::FEED, T, THREADS, CHUNKS, RAGGED, CLUSTER, BLOCKS>;
constexpr int VEC = Ahead::vec;
extern __shared__ uint4 shared[];
static_assert(!KEPT || !RAGGED, "the columns of a thread then differ from row to row");

/// A thread's vectors of what all rows share, in pieces of a load; 0 where a row has ended.
struct KeptRow {
    static constexpr int piece = VEC * sizeof(W) > 16 ? 16 / sizeof(W) : VEC;
    W* const mine;

    __device__ __forceinline__ W* at(int i, int j) const { return mine + (i * THREADS * VEC + j * THREADS); }
    __device__ __forceinline__ void keep(const W* from, const Ahead::Part& part) const {
#pragma unroll 1
        for (int i = 0; i < CHUNKS; ++i) {
#pragma unroll
            for (int j = 0; j < VEC; j += piece) {
                Vec<W, piece> some = splat<W, piece>(0.0f);
                if (part.has(i)) some = load_readonly<piece>(from + part.column(i) + j);
                store(at(i, j), some);
            }
        }
    }
    __device__ __forceinline__ void get(float (&x)[VEC], int i) const {
#pragma unroll
        for (int j = 0; j < VEC; j += piece) {
            float some[piece];
            to_floats(load<piece>(at(i, j)), some);
#pragma unroll
            for (int k = 0; k < piece; ++k) x[j + k] = some[k];
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    norm_ahead(const T* x, const W* weight, const W* bias, T* y, float* mean_out, float* rstd_out, long long rows,
               int cols, long long ldx, long long ldy, float eps, float offset, int ring) {
    __shared__ Exchange<CLUSTER> exchanges[1 + MEAN];
    __shared__ Ahead::State state;
    const int rank = blockIdx.x % CLUSTER, step = gridDim.x / CLUSTER;
    const unsigned zero = cols >> 31;
    long long row = blockIdx.x / CLUSTER;
    // A thread keeps what it reads itself.
    constexpr int kept = KEPT ? CHUNKS * THREADS * VEC : 0;
    W* const shared_weights = reinterpret_cast<W*>(shared);
    const KeptRow weights{shared_weights + threadIdx.x * KeptRow::piece};
    const KeptRow biases{shared_weights + kept + threadIdx.x * KeptRow::piece};
    uint4* const places = reinterpret_cast<uint4*>(shared_weights + (1 + BIAS) * kept);
    Ahead ahead{state, places, ring, x, row, step, rows, ldx, cols, rank};
    if constexpr (KEPT) {
        const Ahead::Part part{x, cols, rank};
        weights.keep(weight, part);
        if (BIAS) biases.keep(bias, part);
    }
    open_exchanges(exchanges);
    for (int turn = 0; row < rows; row += step, ++turn) {
        ahead.start(row);

        // 1. The row comes into registers; its single elements are under way meanwhile.
        const Ahead::Part part{x + row * ldx, cols, rank};
        float single = 0.0f;
        if (RAGGED && part.has_single) single = to_float(x[row * ldx + part.single]);
        Vec<T, VEC> raw[CHUNKS];
        float value[VEC], total = 0.0f;  // of elements, or of their squares
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            raw[i] = splat<T, VEC>(0.0f);
            ahead.take(raw[i], part, i);
            to_floats(raw[i], value);
#pragma unroll
            for (int j = 0; j < VEC; ++j) total = MEAN ? total + value[j] : fmaf(value[j], value[j], total);
        }
        if (RAGGED) total = MEAN ? total + single : fmaf(single, single, total);
        total = row_reduce<THREADS, 1, CLUSTER, 0, SumLanes, 2>(total, rank, turn, &exchanges[0]);
        ahead.done();

        // 2. The mean, and the mean square of what is around it. Beyond the row's end the mean is taken as 0, as the
        //    elements are.
        const float mean = MEAN ? total / static_cast<float>(cols) : 0.0f;
        float squares = total;
        if constexpr (MEAN) {
            squares = RAGGED && part.has_single ? (single - mean) * (single - mean) : 0.0f;
#pragma unroll
            for (int i = 0; i < CHUNKS; ++i) {
                const float around = part.has(i) ? mean : 0.0f;
                restate<1>(raw[i], zero);
                to_floats(raw[i], value);
#pragma unroll
                for (int j = 0; j < VEC; ++j) squares = fmaf(value[j] - around, value[j] - around, squares);
            }
            squares = row_reduce<THREADS, 1, CLUSTER, 1, SumLanes, 2>(squares, rank, turn, &exchanges[MEAN]);
        }
        const float rstd = rsqrtf(squares / static_cast<float>(cols) + eps);
        if (STATS && rank == 0 && threadIdx.x == 0) {
            if (MEAN) mean_out[row] = mean;
            rstd_out[row] = rstd;
        }

        // 3. The results.
        T* const to = y + row * ldy;
        const bool y_fits = part.fits(to);
        const bool weights_fit = !RAGGED || is_aligned_for<VEC>(weight + part.head);
        const bool bias_fits = !RAGGED || !BIAS || is_aligned_for<VEC>(bias + part.head);
        const auto normalised = [=](float h, float w, float b) { return fmaf((h - mean) * rstd, w + offset, b); };
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            restate<2>(raw[i], zero);
            to_floats(raw[i], value);
            float w[VEC], b[VEC] = {};
            if constexpr (KEPT) {
                weights.get(w, i);
                if (BIAS) biases.get(b, i);
            } else {
                load_shared_row<VEC>(part.has(i), w, weight + part.column(i), weights_fit);
                if (BIAS) load_shared_row<VEC>(part.has(i), b, bias + part.column(i), bias_fits);
            }
#pragma unroll
            for (int j = 0; j < VEC; ++j) value[j] = normalised(value[j], w[j], b[j]);
            store_once_anywhere_if(part.has(i), to + part.column(i), value, y_fits);
        }
        if (RAGGED && part.has_single)
            to[part.single] = from_float<T>(
                normalised(single, to_float(weight[part.single]), BIAS ? to_float(bias[part.single]) : 0.0f));
    }
    close_exchanges<CLUSTER>();
}
