// layernorm and rmsnorm, a row held in registers while the next rows arrive in shared memory
//
//     y = (x - mean) * rstd * (weight + offset) (+ bias) with rstd = 1 / sqrt(mean((x - mean)^2) + eps); rmsnorm is
//     without mean
//
// x, y        T, row-major [rows, cols], ldx and ldy elements from row to row; y may be x
// weight, bias W, [cols]
// mean, rstd  float, [rows]
// launch      grid = CLUSTER * any, up to rows and 2^31 - 1, block = THREADS, cluster = CLUSTER, dynamic shared memory
//             of `ahead` rows, each CHUNKS * THREADS 16-byte vectors of a block
// needs       sm_80, sm_90 for clusters; THREADS a power of two, 64 or more; cols <= CLUSTER * THREADS * CHUNKS vectors
// source      as norm_rows.cu; rows ahead of the one that is worked on: the persistent kernels of NVIDIA/cutlass
#include "copies.cuh"
#include "rows.cuh"
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

constexpr int VEC = 16 / sizeof(T);
using Part = RowPart<THREADS, VEC, CHUNKS, RAGGED, CLUSTER>;
using Vector = Vec<T, VEC>;

/// The rows `first`, `first` + `step`, ... of a block, of which the next ones arrive in shared memory. Each thread
/// copies its own vectors and waits for no others, and copies another row's to a vector's place as soon as it has taken
/// it. Copies go through the first-level cache: past it, by bulk copies, a norm took 7 % longer on an H200.
class RowsAhead {
public:
    /// `places` are for `ahead` rows.
    __device__ __forceinline__ RowsAhead(uint4* places, int ahead, const T* x, long long first, long long step,
                                         long long rows, long long ld, int cols, int rank)
        : mine_{reinterpret_cast<Vector*>(places) + threadIdx.x},
          x_{x},
          span_{ahead * step},
          rows_{rows},
          ld_{ld},
          size_{ahead * CHUNKS},
          cols_{cols},
          rank_{rank},
          coming_{x, cols, rank} {
#pragma unroll 1
        for (int k = 0; k < size_; ++k) {
            if (k % CHUNKS == 0) aim(first + k / CHUNKS * step);
            copy(k % CHUNKS, k);
        }
    }

    /// This row comes now.
    __device__ __forceinline__ void start(long long row) { aim(row + span_); }
    /// Takes vector `i` of it, from the first to the last; where this thread has none, `v` stays.
    __device__ __forceinline__ void take(Vector& v, const Part& part, int i) {
        cp_async_wait_for(size_ - 1);
        if (part.has(i)) v = load<VEC>(mine_[(from_ + i) * THREADS].lane);
        copy(i, from_ + i);
    }
    /// All of it was taken.
    __device__ __forceinline__ void done() { from_ = from_ + CHUNKS == size_ ? 0 : from_ + CHUNKS; }

private:
    /// The row to copy from.
    __device__ __forceinline__ void aim(long long row) {
        comes_ = row < rows_;
        next_ = x_ + row * ld_;
        if (RAGGED && comes_) coming_ = Part{next_, cols_, rank_};
    }
    /// A vector is a group of its own, be there one or not.
    __device__ __forceinline__ void copy(int i, int place) {
        copy_async_if<VEC, true>(comes_ && coming_.has(i), mine_[place * THREADS].lane, next_ + coming_.column(i));
        cp_async_commit();
    }

    Vector* const mine_;
    const T* const x_;
    const long long span_, rows_, ld_;
    const int size_, cols_, rank_;
    Part coming_;
    const T* next_ = nullptr;
    bool comes_ = false;
    int from_ = 0;  // the first place of the row that comes now
};

extern __shared__ uint4 shared[];

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    norm_ahead(const T* x, const W* weight, const W* bias, T* y, float* mean_out, float* rstd_out, long long rows,
               int cols, long long ldx, long long ldy, float eps, float offset, int ahead) {
    __shared__ Exchange<CLUSTER> exchanges[1 + MEAN];
    const int rank = blockIdx.x % CLUSTER, step = gridDim.x / CLUSTER;
    const unsigned zero = cols >> 31;
    long long row = blockIdx.x / CLUSTER;
    RowsAhead rows_ahead{shared, ahead, x, row, step, rows, ldx, cols, rank};
    open_exchanges(exchanges);
    for (int turn = 0; row < rows; row += step, ++turn) {
        rows_ahead.start(row);

        // 1. The row comes into registers; its single elements are under way meanwhile.
        const Part part{x + row * ldx, cols, rank};
        float single = 0.0f;
        if (RAGGED && part.has_single) single = to_float(x[row * ldx + part.single]);
        Vector raw[CHUNKS];
        float value[VEC], total = 0.0f;  // of elements, or of their squares
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            raw[i] = splat<T, VEC>(0.0f);
            rows_ahead.take(raw[i], part, i);
            to_floats(raw[i], value);
#pragma unroll
            for (int j = 0; j < VEC; ++j) total = MEAN ? total + value[j] : fmaf(value[j], value[j], total);
        }
        if (RAGGED) total = MEAN ? total + single : fmaf(single, single, total);
        total = row_reduce<THREADS, 1, CLUSTER, 0, SumLanes, 2>(total, rank, turn, &exchanges[0]);
        rows_ahead.done();

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
            load_shared_row<VEC>(part.has(i), w, weight + part.column(i), weights_fit);
            if (BIAS) load_shared_row<VEC>(part.has(i), b, bias + part.column(i), bias_fits);
#pragma unroll
            for (int j = 0; j < VEC; ++j) value[j] = normalised(value[j], w[j], b[j]);
            store_anywhere_if(part.has(i), to + part.column(i), value, y_fits);
        }
        if (RAGGED && part.has_single)
            to[part.single] = from_float<T>(
                normalised(single, to_float(weight[part.single]), BIAS ? to_float(bias[part.single]) : 0.0f));
    }
    close_exchanges<CLUSTER>();
}
