// layernorm and rmsnorm, a row of any length read twice, thrice where it is quantised, or staged in shared memory
//
//     h = x (+ residual, rounded to T and stored as sum), y = (h - mean) * rstd * (weight + offset) (+ bias)
//     with rstd = 1 / sqrt(mean((h - mean)^2) + eps); rmsnorm is without mean
//
// x, y              T, row-major [rows, cols], ldx and ldy elements from row to row; y may be x. OUT e4m3 or int8: y is
//                   of that type, y / scale rounded, with scale = max |y| / limit a row
// residual, sum     T, [rows, cols], packed; sum may be residual or x
// weight, bias      W, [cols]
// scales, mean, rstd  float, [rows]
// launch            grid = CLUSTER * any, up to rows and 2^31 - 1, block = THREADS, cluster = CLUSTER
//                   STAGED: dynamic shared memory of `ring` tiles of THREADS * UNROLL vectors
// needs             THREADS a power of two, 64 or more; cols + THREADS * VEC * UNROLL < 2^31
//                   STAGED: sm_80, no RESIDUAL, and a row has at most `ring` tiles; CLUSTER > 1: sm_90 and STAGED
// source            means and squares around them of parts are combined as in Chan, Golub & LeVeque 1983
#include "norm.cuh"
#include "row_tiles.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef THREADS
#define THREADS 512  // threads a block
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef UNROLL
#define UNROLL 2  // loads of a tile
#endif
#ifndef STAGED
#define STAGED 0  // 1: a row stays in shared memory, where those to come arrive meanwhile (sm_80)
#endif
#ifndef THROUGH_L1
#define THROUGH_L1 1  // 0: STAGED tiles are copied past the first-level cache
#endif
#ifndef RAGGED
#define RAGGED 1  // 0: rows are made of whole, aligned vectors
#endif
#ifndef CLUSTER
#define CLUSTER 1  // blocks a row (sm_90)
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

using Tiles = RowTiles<STAGED, T, THREADS, VEC, UNROLL, RAGGED, CLUSTER, THROUGH_L1>;
using Part = Tiles::Part;
static_assert(!STAGED || !RESIDUAL, "what is read again is then the sum");
extern __shared__ uint4 shared[];

constexpr bool quantised = Out::OUT != Out::same;
constexpr Format format = format_of<Out::OUT>;

/// Count, mean, and sum of squares around the mean; a rmsnorm has the mean 0.
struct Moments {
    float count, mean, squares;
};
__device__ __forceinline__ Moments combine(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (!MEAN) return {count, 0.0f, a.squares + b.squares};
    const float part = count > 0.0f ? __fdividef(b.count, count) : 0.0f, apart = b.mean - a.mean;
    return {count, fmaf(apart, part, a.mean), a.squares + b.squares + apart * apart * a.count * part};
}
struct MomentsLanes {
    template <int N>
    static __device__ __forceinline__ Moments over(Moments mine) {
#pragma unroll
        for (int offset = N / 2; offset > 0; offset /= 2) {
            const Moments other{__shfl_xor_sync(all_lanes, mine.count, offset),
                                __shfl_xor_sync(all_lanes, mine.mean, offset),
                                __shfl_xor_sync(all_lanes, mine.squares, offset)};
            // In the same order on both sides, so that all lanes get the same bits.
            mine = (threadIdx.x & offset) ? combine(other, mine) : combine(mine, other);
        }
        return mine;
    }
};

/// One tile of a row: what is normalised, with `sum` written where there is a residual and `first` says so.
struct Source {
    const T *x, *residual;
    T* sum;
    bool residual_fits, sum_fits;

    __device__ __forceinline__ void load_tile(float (&value)[UNROLL][VEC], const Tiles& tiles, const Part& part,
                                              int tile, bool first) const {
        if constexpr (!RESIDUAL) {
            tiles.read(value, part, tile, 0.0f);
            return;
        }
        const int base = tile * Part::tile;
        Vec<T, VEC> raw[UNROLL], added[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            raw[i] = added[i] = splat<T, VEC>(0.0f);
            if (part.has(i, base)) {
                if (first)
                    raw[i] = load_once<VEC>(x + part.column(i, base));
                else
                    raw[i] = load_anywhere<VEC>(sum + part.column(i, base), sum_fits);
                if (first) added[i] = load_anywhere<VEC>(residual + part.column(i, base), residual_fits);
            }
        }
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            to_floats(raw[i], value[i]);
            if (first) {
                float other[VEC];
                to_floats(added[i], other);
#pragma unroll
                for (int j = 0; j < VEC; ++j) value[i][j] = to_float(from_float<T>(value[i][j] + other[j]));
                if (part.has(i, base)) {
                    T* const to = sum + part.column(i, base);
                    if (sum_fits) {
                        store(to, from_floats<T>(value[i]));
                    } else {
#pragma unroll
                        for (int j = 0; j < VEC; ++j) to[j] = from_float<T>(value[i][j]);
                    }
                }
            }
        }
    }
    __device__ __forceinline__ float load_single(int c) const {
        if (!RESIDUAL) return to_float(x[c]);
        sum[c] = from_float<T>(to_float(x[c]) + to_float(residual[c]));
        return to_float(sum[c]);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    norm_two_pass(const T* x, const T* residual, const W* weight, const W* bias, T* sum, void* y, float* scales,
                  float* mean_out, float* rstd_out, long long rows, int cols, long long ldx, long long ldy, float eps,
                  float offset, int ring) {
    __shared__ Exchange<CLUSTER> exchanges[2];
    open_exchanges(exchanges);
    const int rank = blockIdx.x % CLUSTER, step = gridDim.x / CLUSTER;
    long long row = blockIdx.x / CLUSTER;
    Tiles tiles{x, row, step, rows, ldx, cols, rank, shared, ring};
    fill_rings<STAGED>(ring, tiles);
    for (int turn = 0; row < rows; row += step, ++turn) {
        const Part part{x + row * ldx, cols, rank};
        tiles.start(x + row * ldx);
        Source from{x + row * ldx, nullptr, nullptr, false, false};
        if (RESIDUAL) {
            from.residual = residual + row * cols;
            from.sum = sum + row * cols;
            from.residual_fits = part.fits(from.residual);
            from.sum_fits = part.fits(from.sum);
        }
        T* const to = static_cast<T*>(y) + row * ldy;  // or bytes, where y is quantised
        unsigned char* const to_bytes = static_cast<unsigned char*>(y) + row * ldy;
        const bool y_fits = quantised ? part.fits(to_bytes) : part.fits(to);
        const bool weights_fit = is_aligned_for<VEC>(weight + part.head);
        const bool bias_fits = BIAS && is_aligned_for<VEC>(bias + part.head);

        // 1. Each thread combines the moments of its tiles, and its single element, which was under way meanwhile.
        Moments mine{0.0f, 0.0f, 0.0f};
        float single = 0.0f;
        if (part.has_single) single = from.load_single(part.single);
        float value[UNROLL][VEC];
        for (int tile = 0; tile < part.tiles(); ++tile) {
            tiles.await(tile);
            from.load_tile(value, tiles, part, tile, true);
            Moments these{0.0f, 0.0f, 0.0f};
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
                if (part.has(i, tile * Part::tile)) these.count += VEC;
#pragma unroll
                for (int j = 0; j < VEC; ++j) these.mean += value[i][j];
            }
            these.mean = MEAN && these.count > 0.0f ? __fdividef(these.mean, these.count) : 0.0f;
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
                if (part.has(i, tile * Part::tile)) {
#pragma unroll
                    for (int j = 0; j < VEC; ++j) {
                        const float apart = value[i][j] - these.mean;
                        these.squares = fmaf(apart, apart, these.squares);
                    }
                }
            }
            mine = combine(mine, these);
        }
        if (part.has_single) mine = combine(mine, {1.0f, MEAN ? single : 0.0f, MEAN ? 0.0f : single * single});

        // 2. The row's.
        const Moments all = row_reduce<THREADS, 1, CLUSTER, 0, MomentsLanes, 2>(mine, rank, turn, &exchanges[0]);
        const float mean = all.mean, rstd = rsqrtf(all.squares / static_cast<float>(cols) + eps);
        if (STATS && rank == 0 && threadIdx.x == 0) {
            if (MEAN) mean_out[row] = mean;
            rstd_out[row] = rstd;
        }

        // 3. The results; where they are quantised, only their largest magnitude at first.
        const auto normalised = [=](float h, float w, float b) { return fmaf((h - mean) * rstd, w + offset, b); };
        if (part.has_single)
            single = normalised(single, to_float(weight[part.single]), BIAS ? to_float(bias[part.single]) : 0.0f);
        unsigned largest = part.has_single ? __float_as_uint(fabsf(single)) : 0;
        float inverse = 1.0f;
#pragma unroll 1
        for (int pass = quantised ? 0 : 1; pass < 2; ++pass) {
            if (quantised && pass == 1) {
                largest = row_reduce<THREADS, 1, CLUSTER, 1, MaxBitsLanes, 2>(largest, rank, turn, &exchanges[1]);
                const float scale = row_scale<format>(largest);
                inverse = __fdividef(1.0f, scale);
                if (rank == 0 && threadIdx.x == 0) scales[row] = scale;
            }
            for (int k = 0; k < part.tiles(); ++k) {
                const int tile = Tiles::in_last_pass(k, part.tiles());
                float w[UNROLL][VEC], b[UNROLL][VEC] = {};
#pragma unroll
                for (int i = 0; i < UNROLL; ++i) {
                    const int c = part.column(i, tile * Part::tile);
                    load_shared_row<VEC>(part.has(i, tile * Part::tile), w[i], weight + c, weights_fit);
                    if (BIAS) load_shared_row<VEC>(part.has(i, tile * Part::tile), b[i], bias + c, bias_fits);
                }
                from.load_tile(value, tiles, part, tile, false);
                if (pass == 1) tiles.release();
#pragma unroll
                for (int i = 0; i < UNROLL; ++i) {
                    const bool has = part.has(i, tile * Part::tile);
                    const int c = part.column(i, tile * Part::tile);
#pragma unroll
                    for (int j = 0; j < VEC; ++j) value[i][j] = normalised(value[i][j], w[i][j], b[i][j]);
                    if constexpr (!quantised) {
                        store_anywhere_if(has, to + c, value[i], y_fits);
                    } else if (pass == 0) {
#pragma unroll
                        for (int j = 0; j < VEC; ++j) {
                            const unsigned bits = __float_as_uint(fabsf(value[i][j]));
                            if (has) largest = bits > largest ? bits : largest;
                        }
                    } else {
#pragma unroll
                        for (int j = 0; j < VEC; ++j) value[i][j] *= inverse;
                        if (has) store_anywhere(to_bytes + c, narrowed<format>(value[i]), y_fits);
                    }
                }
            }
        }
        if (part.has_single) {
            if constexpr (!quantised) {
                to[part.single] = from_float<T>(single);
            } else {
                const float one[1] = {single * inverse};
                to_bytes[part.single] = narrowed<format>(one).lane[0];
            }
        }
    }
    close_exchanges<CLUSTER>();
}
