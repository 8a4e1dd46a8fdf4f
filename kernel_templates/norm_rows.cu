// layernorm and rmsnorm, a row held in registers
//
//     h = x (+ residual, rounded to T and stored as sum), y = (h - mean) * rstd * (weight + offset) (+ bias)
//     with rstd = 1 / sqrt(mean((h - mean)^2) + eps); rmsnorm is without mean
//
// x, y              T, row-major [rows, cols], ldx and ldy elements from row to row; y may be x. OUT e4m3 or int8: y is
//                   of that type, y / scale rounded, with scale = max |y| / limit a row
// residual, sum     T, [rows, cols], packed; sum may be residual or x
// weight, bias      W, [cols]
// scales, mean, rstd  float, [rows]
// launch            grid = CLUSTER * ceil(rows / ROWS), block = (LANES, ROWS), cluster = CLUSTER, no dynamic shared
//                   memory
// needs             cols <= CLUSTER * LANES * CHUNKS * VEC; LANES a power of two, LANES * ROWS a multiple of a warp;
//                   RAGGED: LANES >= 2 * VEC, else cols % VEC == 0 and all rows aligned to VEC elements;
//                   CLUSTER > 1: sm_90, LANES > 32 and ROWS == 1
// source            threads a row and clusters for long rows: Dao-AILab/quack; the variance is of centred elements,
//                   which are at hand, so that a large mean costs no digits
#include "norm.cuh"
#include "rows.cuh"
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

#ifndef W
#define W T  // of weight and bias
#endif
#ifndef MEAN
#define MEAN 1  // 1: layernorm; 0: rmsnorm, which takes the mean as 0
#endif
#ifndef RESIDUAL
#define RESIDUAL 0  // 1: h = x + residual is what is normalised, and is stored
#endif
#ifndef BIAS
#define BIAS 0
#endif
#ifndef STATS
#define STATS 0  // 1: mean and rstd are stored
#endif
#ifndef OUT
#define OUT same  // or e4m3 or int8: y is quantised, with a scale a row
#endif

constexpr bool quantised = Out::OUT != Out::same;
constexpr Format format = format_of<Out::OUT>;

/// The largest magnitude of floats, where NaN is above all.
struct Magnitudes {
#if __CUDA_ARCH__ >= 800
    float largest = 0.0f;
    __device__ __forceinline__ void take(float x) {
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(largest) : "f"(fabsf(x)), "f"(largest));
    }
    __device__ __forceinline__ void take(Magnitudes other) { take(other.largest); }
    __device__ __forceinline__ unsigned bits() const { return __float_as_uint(largest); }
#else
    unsigned largest = 0;
    __device__ __forceinline__ void take(float x) { take(Magnitudes{__float_as_uint(fabsf(x))}); }
    __device__ __forceinline__ void take(Magnitudes other) { largest = max(largest, other.largest); }
    __device__ __forceinline__ unsigned bits() const { return largest; }
#endif
};
struct SquaresLargest {
    float squares;
    unsigned largest;
};
struct SquaresLargestLanes {
    template <int N>
    static __device__ __forceinline__ SquaresLargest over(SquaresLargest x) {
        return {SumLanes::over<N>(x.squares), MaxBitsLanes::over<N>(x.largest)};
    }
};

extern "C" __global__ void __launch_bounds__(LANES* ROWS, BLOCKS)
    norm_rows(const T* x, const T* residual, const W* weight, const W* bias, T* sum, void* y, float* scales,
              float* mean_out, float* rstd_out, long long rows, int cols, long long ldx, long long ldy, float eps,
              float offset) {
    cluster_begin<CLUSTER>();
    const int rank = blockIdx.x % CLUSTER;
    const long long row = static_cast<long long>(blockIdx.x / CLUSTER) * ROWS + threadIdx.y;
    const unsigned zero = cols >> 31;
    x += row * ldx;
    T* const to = static_cast<T*>(y) + row * ldy;  // or bytes, where y is quantised
    unsigned char* const to_bytes = static_cast<unsigned char*>(y) + row * ldy;
    if (RESIDUAL) {
        residual += row * cols;
        sum += row * cols;
    }

    // 1. All loads are issued before the first is used. A row beyond the last has no columns, but meets the barriers.
    const RowPart<LANES, VEC, CHUNKS, RAGGED, CLUSTER> part{x, row < rows ? cols : 0, rank};
    const bool lone = RAGGED && part.has_single;
    const bool y_fits = (quantised ? part.fits(to_bytes) : part.fits(to));
    const bool weights_fit = !RAGGED || is_aligned_for<VEC>(weight + part.head);
    const bool bias_fits = !RAGGED || !BIAS || is_aligned_for<VEC>(bias + part.head);
    Vec<T, VEC> raw[CHUNKS];
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        raw[i] = splat<T, VEC>(0.0f);
        load_once_if(part.has(i), raw[i], x + part.column(i));
    }
    float single = lone ? to_float(x[part.single]) : 0.0f;
    float value[VEC];
    if constexpr (RESIDUAL) {
        const bool fits = part.fits(residual), sum_fits = part.fits(sum);
        Vec<T, VEC> added[CHUNKS];
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            added[i] = splat<T, VEC>(0.0f);
            load_anywhere_if(part.has(i), added[i], residual + part.column(i), fits);
        }
        if (lone) {
            const T rounded = from_float<T>(single + to_float(residual[part.single]));
            sum[part.single] = rounded;
            single = to_float(rounded);
        }
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            float other[VEC];
            to_floats(raw[i], value);
            to_floats(added[i], other);
#pragma unroll
            for (int j = 0; j < VEC; ++j) value[j] += other[j];
            raw[i] = from_floats<T>(value);
            store_anywhere_if(part.has(i), sum + part.column(i), value, sum_fits);
        }
    }

    // 2. The mean.
    float mean = 0.0f;
    if constexpr (MEAN) {
        float total = single;
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            to_floats(raw[i], value);
#pragma unroll
            for (int j = 0; j < VEC; ++j) total += value[j];
        }
        mean = row_reduce<LANES, ROWS, CLUSTER, 0, SumLanes>(total, rank) / static_cast<float>(cols);
    }

    // 3. The mean square of what is around it. Beyond the row's end the mean is taken as 0, as the elements are. A
    //    rmsnorm that is quantised and not biased finds its largest product by a weight along the way.
    constexpr bool product = quantised && !MEAN && !BIAS;
    float held[quantised ? CHUNKS : 1][VEC];
    Magnitudes largest;
    SquaresLargest all{lone ? (single - mean) * (single - mean) : 0.0f, 0};
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        const float around = part.has(i) ? mean : 0.0f;
        restate<1>(raw[i], zero);
        to_floats(raw[i], value);
#pragma unroll
        for (int j = 0; j < VEC; ++j) all.squares = fmaf(value[j] - around, value[j] - around, all.squares);
        if constexpr (product) {
            float w[VEC];
            load_shared_row<VEC>(part.has(i), w, weight + part.column(i), weights_fit);
#pragma unroll
            for (int j = 0; j < VEC; ++j) largest.take(held[i][j] = value[j] * (w[j] + offset));
        }
    }
    if constexpr (product) {
        if (lone) largest.take(single *= to_float(weight[part.single]) + offset);
        all.largest = largest.bits();
        all = row_reduce<LANES, ROWS, CLUSTER, 0, SquaresLargestLanes>(all, rank);
    } else {
        all.squares = row_reduce<LANES, ROWS, CLUSTER, MEAN, SumLanes>(all.squares, rank);
    }
    const float rstd = rsqrtf(all.squares / static_cast<float>(cols) + eps);
    if (STATS && rank == 0 && threadIdx.x == 0 && row < rows) {
        if (MEAN) mean_out[row] = mean;
        rstd_out[row] = rstd;
    }

    // 4. The results; where they are quantised they are held until the row's largest magnitude is known.
    if constexpr (!product) {
        const auto normalised = [=](float h, float w, float b) { return fmaf((h - mean) * rstd, w + offset, b); };
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            float(&result)[VEC] = held[quantised ? i : 0];
            restate<2>(raw[i], zero);
            to_floats(raw[i], value);
            float w[VEC], b[VEC] = {};
            load_shared_row<VEC>(part.has(i), w, weight + part.column(i), weights_fit);
            if (BIAS) load_shared_row<VEC>(part.has(i), b, bias + part.column(i), bias_fits);
#pragma unroll
            for (int j = 0; j < VEC; ++j) result[j] = normalised(value[j], w[j], b[j]);
            if constexpr (!quantised) {
                store_anywhere_if(part.has(i), to + part.column(i), result, y_fits);
            } else {
                Magnitudes these;
#pragma unroll
                for (int j = 0; j < VEC; ++j) these.take(result[j]);
                if (part.has(i)) largest.take(these);
            }
        }
        if (lone) {
            single = normalised(single, to_float(weight[part.single]), BIAS ? to_float(bias[part.single]) : 0.0f);
            if constexpr (!quantised)
                to[part.single] = from_float<T>(single);
            else
                largest.take(single);
        }
        if constexpr (quantised)
            all.largest = row_reduce<LANES, ROWS, CLUSTER, MEAN + 1, MaxBitsLanes>(largest.bits(), rank);
    }
    if constexpr (quantised) {
        // A product has yet to be multiplied by rstd. What then exceeds floats is divided by what makes it 0.
        const float size = __uint_as_float(all.largest);
        const float scale = row_scale<format>(__float_as_uint(product ? size * rstd : size));
        const float inverse = __fdividef(1.0f, scale), whole = product ? rstd * inverse : inverse;
        const float factor = whole > 3.4e38f ? 3.4e38f : whole;
        if (rank == 0 && threadIdx.x == 0 && row < rows) scales[row] = scale;
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
#pragma unroll
            for (int j = 0; j < VEC; ++j) value[j] = held[i][j] * factor;
            if (y_fits)
                store_if(part.has(i), to_bytes + part.column(i), narrowed<format>(value));
            else if (part.has(i))
                store_anywhere(to_bytes + part.column(i), narrowed<format>(value), false);
        }
        if (lone) {
            const float one[1] = {single * factor};
            to_bytes[part.single] = narrowed<format>(one).lane[0];
        }
    }
}
