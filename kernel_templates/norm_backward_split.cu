// The backward pass of layernorm and rmsnorm for rows of any length: row gradients and sums over rows apart
//
//     as norm_backward_rows.cu, whose tensors these are, aligned anyhow
// norm_backward_columns  writes parts: float, [1 + BIAS, gridDim.y, cols]; grid = (ceil(cols / 32), any),
//                        block = (32, 16); runs first, since dx may take the place of what it reads
// norm_backward_long     writes dx; grid = min(rows, 2^31 - 1), block = THREADS, a power of two, 64 or more; a row is
//                        read twice
#include "rows.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef W
#define W T  // of weight
#endif
#ifndef MEAN
#define MEAN 1  // 1: layernorm; 0: rmsnorm
#endif
#ifndef BIAS
#define BIAS 0  // 1: dbias is wanted
#endif
#ifndef DH
#define DH 0  // 1: dh is added
#endif
#ifndef THREADS
#define THREADS 512  // threads a row
#endif

extern "C" __global__ void __launch_bounds__(512)
    norm_backward_columns(const T* x, const T* dy, const float* mean, const float* rstd, float* parts, long long rows,
                          int cols, long long ldx, long long lddy) {
    __shared__ float2 slots[16][33];
    const long long c = static_cast<long long>(blockIdx.x) * 32 + threadIdx.x;
    const long long step = static_cast<long long>(gridDim.y) * 16;
    float2 sums = make_float2(0.0f, 0.0f);
    if (c < cols) {
#pragma unroll 4
        for (long long row = static_cast<long long>(blockIdx.y) * 16 + threadIdx.y; row < rows; row += step) {
            const float b = to_float(dy[row * lddy + c]);
            const float a = to_float(x[row * ldx + c]);
            sums.x = fmaf(b, (a - (MEAN ? mean[row] : 0.0f)) * rstd[row], sums.x);
            if (BIAS) sums.y += b;
        }
    }
    slots[threadIdx.y][threadIdx.x] = sums;
    __syncthreads();
    if (threadIdx.y != 0 || c >= cols) return;
    float2 total = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        total.x += slots[i][threadIdx.x].x;
        total.y += slots[i][threadIdx.x].y;
    }
    parts[static_cast<long long>(blockIdx.y) * cols + c] = total.x;
    if (BIAS) parts[static_cast<long long>(gridDim.y + blockIdx.y) * cols + c] = total.y;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    norm_backward_long(const T* x, const T* dy, const W* weight, const float* mean, const float* rstd, const T* dh,
                       T* dx, long long rows, int cols, long long ldx, long long lddy, long long lddx, float offset) {
    int turn = 0;
    for (long long row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
        const T* const from_x = x + row * ldx;
        const T* const from_dy = dy + row * lddy;
        const float row_mean = MEAN ? mean[row] : 0.0f, row_rstd = rstd[row];
        float2 means = make_float2(0.0f, 0.0f);
#pragma unroll 4
        for (int c = threadIdx.x; c < cols; c += THREADS) {
            const float g = to_float(from_dy[c]) * (to_float(weight[c]) + offset);
            means.x = fmaf(g, (to_float(from_x[c]) - row_mean) * row_rstd, means.x);
            if (MEAN) means.y += g;
        }
        means = row_reduce<THREADS, 1, 1, 0, SumLanes, 2>(means, 0, turn);
        means.x /= static_cast<float>(cols);
        means.y /= static_cast<float>(cols);
#pragma unroll 4
        for (int c = threadIdx.x; c < cols; c += THREADS) {
            const float g = to_float(from_dy[c]) * (to_float(weight[c]) + offset);
            const float xhat = (to_float(from_x[c]) - row_mean) * row_rstd;
            float result = row_rstd * (g - means.y - xhat * means.x);
            if (DH) result += to_float(dh[row * cols + c]);
            dx[row * lddx + c] = from_float<T>(result);
        }
    }
}
