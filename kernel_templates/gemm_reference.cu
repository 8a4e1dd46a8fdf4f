// gemm's reference on the device, for problems too large for the CPU: everything in double.
//
// a, b, c, bias  as in gemm_naive.cu; c is only read, and only without BETA0
// value          double, contiguous [m, n]: the result
// magnitude      likewise: the sum of the magnitudes of the terms, from which error bounds are made
// launch         grid = ceil(m / 32) * ceil(n / 32), block = (32, 8), no dynamic shared memory
// source         the shared-memory tile of the CUDA C++ Programming Guide; a thread takes four rows of one column
#include "gemm.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T float
#endif
#ifndef TRANS_A
#define TRANS_A 0
#endif
#ifndef TRANS_B
#define TRANS_B 0
#endif
#ifndef BIAS
#define BIAS 0
#endif
#ifndef BETA0
#define BETA0 1
#endif
#ifndef ACT
#define ACT none
#endif

__device__ __forceinline__ double exact(const T* p) { return to_float(*p); }

extern "C" __global__ void __launch_bounds__(256)
    gemm_reference(const T* a, const T* b, const T* c, const T* bias, double* value, double* magnitude, int m, int n,
                   int k, long long lda, long long ldb, long long ldc, float alpha, float beta) {
    __shared__ double a_tile[32][33], b_tile[32][33];  // [row][k], [k][col]; padded, so that transposed writes spread
    const unsigned tile_cols = (n - 1) / 32 + 1;
    const long long row0 = static_cast<long long>(blockIdx.x / tile_cols) * 32;
    const long long col0 = static_cast<long long>(blockIdx.x % tile_cols) * 32;
    const int tx = threadIdx.x, ty = threadIdx.y;

    // 1. Sums over k, 32 at a time; what lies outside counts as zero. tx runs along the operand's rows.
    double sum[4] = {}, sum_of_magnitudes[4] = {};
    for (long long k0 = 0; k0 < k; k0 += 32) {
        for (int i = ty; i < 32; i += 8) {
            const long long a_row = TRANS_A ? row0 + tx : row0 + i, a_k = TRANS_A ? k0 + i : k0 + tx;
            const bool in_a = a_row < m && a_k < k;
            a_tile[TRANS_A ? tx : i][TRANS_A ? i : tx] =
                in_a ? exact(a + (TRANS_A ? a_k * lda + a_row : a_row * lda + a_k)) : 0;
            const long long b_col = TRANS_B ? col0 + i : col0 + tx, b_k = TRANS_B ? k0 + tx : k0 + i;
            const bool in_b = b_col < n && b_k < k;
            b_tile[TRANS_B ? tx : i][TRANS_B ? i : tx] =
                in_b ? exact(b + (TRANS_B ? b_col * ldb + b_k : b_k * ldb + b_col)) : 0;
        }
        __syncthreads();
        for (int i = 0; i < 32; ++i) {
            const double b_value = b_tile[i][tx];
            for (int r = 0; r < 4; ++r) {
                const double product = a_tile[ty + 8 * r][i] * b_value;
                sum[r] += product;
                sum_of_magnitudes[r] += fabs(product);
            }
        }
        __syncthreads();
    }

    // 2. The rest of the formula.
    const long long col = col0 + tx;
    for (int r = 0; r < 4; ++r) {
        const long long row = row0 + ty + 8 * r;
        if (row >= m || col >= n) continue;
        const double old = BETA0 ? 0 : beta * exact(c + row * ldc + col);
        const double shift = BIAS ? exact(bias + col) : 0;
        value[row * n + col] = ACTIVATION(ACT)(alpha * sum[r] + old + shift);
        magnitude[row * n + col] = fabs(alpha) * sum_of_magnitudes[r] + fabs(old) + fabs(shift);
    }
}
