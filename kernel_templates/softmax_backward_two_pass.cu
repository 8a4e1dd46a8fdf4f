// softmax_backward, a row of any length read twice: dx[r, c] = y[r, c] * (dy[r, c] - sum_k y[r, k] dy[r, k])
//     LOG: of log_softmax: dx[r, c] = dy[r, c] - exp(y[r, c]) * sum_k dy[r, k]
//
// y, dy, dx  T, row-major [rows, cols], ldy, lddy and lddx elements from row to row, aligned anyhow; dx may be y or dy
// launch     grid = min(rows, 2^31 - 1), block = THREADS, no dynamic shared memory
// needs      THREADS a power of two, 64 or more; cols + THREADS * VEC * UNROLL < 2^31
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

#ifndef LOG
#define LOG 0  // 1: of log_softmax, y being its result
#endif

using Part = RowPart<THREADS, VEC, UNROLL, true>;

/// The gradient of one element, given its row's sum.
__device__ __forceinline__ float gradient(float y, float dy, float sum) {
    return LOG ? dy - exp_natural(y) * sum : y * (dy - sum);
}

/// This thread's vectors of the tile at `base`, as floats; 0 stands where the row has ended.
__device__ __forceinline__ void load_tile(float (&value)[UNROLL][VEC], const T* x, const Part& part, int base,
                                          bool aligned) {
    Vec<T, VEC> raw[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        raw[i] = splat<T, VEC>(0.0f);
        if (part.has(i, base)) {
            const T* const from = x + part.column(i, base);
            if (aligned) {
                raw[i] = load<VEC>(from);
            } else {
#pragma unroll
                for (int j = 0; j < VEC; ++j) raw[i].lane[j] = from[j];
            }
        }
    }
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) to_floats(raw[i], value[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_backward_two_pass(const T* y, const T* dy, T* dx, long long rows, int cols, long long ldy, long long lddy,
                              long long lddx) {
    int turn = 0;
    for (long long row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
        // 1. The row's sum.
        const T* const from_y = y + row * ldy;
        const T* const from_dy = dy + row * lddy;
        T* const to = dx + row * lddx;
        const Part part{from_y, cols};
        const bool dy_fits = part.fits(from_dy), dx_fits = part.fits(to);
        float single_y = 0.0f, single_dy = 0.0f;
        if (part.has_single) {
            single_y = to_float(from_y[part.single]);
            single_dy = to_float(from_dy[part.single]);
        }
        float sum = LOG ? single_dy : single_y * single_dy;
        float value_y[UNROLL][VEC], value_dy[UNROLL][VEC];
        for (int tile = 0; tile < part.tiles(); ++tile) {
            if (!LOG) load_tile(value_y, from_y, part, tile * Part::tile, true);
            load_tile(value_dy, from_dy, part, tile * Part::tile, dy_fits);
#pragma unroll
            for (int i = 0; i < UNROLL * VEC; ++i)
                sum += LOG ? value_dy[i / VEC][i % VEC] : value_y[i / VEC][i % VEC] * value_dy[i / VEC][i % VEC];
        }
        sum = row_reduce<THREADS, 1, 1, 0, SumLanes, 2>(sum, 0, turn);

        // 2. The gradients, from the row's end: what was read last is the likeliest to be in the cache still.
        if (part.has_single) to[part.single] = from_float<T>(gradient(single_y, single_dy, sum));
        for (int tile = part.tiles() - 1; tile >= 0; --tile) {
            load_tile(value_y, from_y, part, tile * Part::tile, true);
            load_tile(value_dy, from_dy, part, tile * Part::tile, dy_fits);
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
#pragma unroll
                for (int j = 0; j < VEC; ++j) value_dy[i][j] = gradient(value_y[i][j], value_dy[i][j], sum);
                if (part.has(i, tile * Part::tile))
                    store_once_anywhere(to + part.column(i, tile * Part::tile), value_dy[i], dx_fits);
            }
        }
    }
}
