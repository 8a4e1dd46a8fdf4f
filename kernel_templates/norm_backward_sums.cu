// Adds up the parts of weight gradients: dweight[c] = sum_p parts[0, p, c], dbias[c] = sum_p parts[1, p, c]
//
// parts          float, [gridDim.y, count, cols]
// dweight, dbias W, [cols]
// launch         grid = (ceil(cols / 32), 1 + whether there is a bias), block = (32, 16), no dynamic shared memory
// The order of the additions follows from `count` alone, so equal parts give equal bits.
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef W
#define W __nv_bfloat16
#endif

extern "C" __global__ void __launch_bounds__(512)
    norm_backward_sums(const float* parts, W* dweight, W* dbias, int count, int cols) {
    __shared__ float slots[16][33];
    const long long c = static_cast<long long>(blockIdx.x) * 32 + threadIdx.x;
    const float* const from = parts + static_cast<long long>(blockIdx.y) * count * cols + c;
    float sum[8] = {};
    if (c < cols) {
        int p = threadIdx.y;
        for (; p + 112 < count; p += 128) {
#pragma unroll
            for (int i = 0; i < 8; ++i) sum[i] += from[static_cast<long long>(p + 16 * i) * cols];
        }
        for (; p < count; p += 16) sum[0] += from[static_cast<long long>(p) * cols];
    }
    slots[threadIdx.y][threadIdx.x] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    __syncthreads();
    if (threadIdx.y != 0 || c >= cols) return;
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; ++i) total += slots[i][threadIdx.x];
    (blockIdx.y == 0 ? dweight : dbias)[c] = from_float<W>(total);
}
