// gemm's reference on the device, for problems too large for the CPU: everything in double.
//
// a, b, c, bias  as in gemm_naive.cu; c is only read, and only without BETA0
// value          double, contiguous [m, n]: the result
// magnitude      likewise: the sum of the magnitudes of the terms, from which error bounds are made
// launch         grid = ceil(m / 64) * ceil(n / 64), block = (16, 16), no dynamic shared memory
// source         the shared-memory tile of the CUDA C++ Programming Guide; a thread takes four rows of four columns,
//                so that the two operations of a product bound it, not its loads
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
    constexpr int size = 64, depth = 16, each = 4;  // a tile; what a thread takes is 16 rows or columns apart
    __shared__ double a_tile[depth][size + 1], b_tile[depth][size + 1];  // [k][row], [k][col]; padded: writes spread
    const unsigned tile_cols = (n - 1) / size + 1;
    const long long row0 = static_cast<long long>(blockIdx.x / tile_cols) * size;
    const long long col0 = static_cast<long long>(blockIdx.x % tile_cols) * size;
    const int tx = threadIdx.x, ty = threadIdx.y;

    // 1. Sums over k, 16 at a time; what lies outside counts as zero. Neighbours read along the operand's rows.
    double sum[each][each] = {}, sum_of_magnitudes[each][each] = {};
    for (long long k0 = 0; k0 < k; k0 += depth) {
        for (int i = ty * 16 + tx; i < size * depth; i += 256) {
            const int a_i = TRANS_A ? i % size : i / depth, a_s = TRANS_A ? i / size : i % depth;
            const long long a_row = row0 + a_i, a_k = k0 + a_s;
            a_tile[a_s][a_i] = a_row < m && a_k < k ? exact(a + (TRANS_A ? a_k * lda + a_row : a_row * lda + a_k)) : 0;
            const int b_i = TRANS_B ? i / depth : i % size, b_s = TRANS_B ? i % depth : i / size;
            const long long b_col = col0 + b_i, b_k = k0 + b_s;
            b_tile[b_s][b_i] = b_col < n && b_k < k ? exact(b + (TRANS_B ? b_col * ldb + b_k : b_k * ldb + b_col)) : 0;
        }
        __syncthreads();
        for (int i = 0; i < depth; ++i) {
            double left[each], right[each];
            for (int r = 0; r < each; ++r) left[r] = a_tile[i][ty + 16 * r];
            for (int s = 0; s < each; ++s) right[s] = b_tile[i][tx + 16 * s];
            for (int r = 0; r < each; ++r)
                for (int s = 0; s < each; ++s) {
                    sum[r][s] = fma(left[r], right[s], sum[r][s]);
                    sum_of_magnitudes[r][s] = fma(fabs(left[r]), fabs(right[s]), sum_of_magnitudes[r][s]);
                }
        }
        __syncthreads();
    }

    // 2. The rest of the formula.
    for (int r = 0; r < each; ++r)
        for (int s = 0; s < each; ++s) {
            const long long row = row0 + ty + 16 * r, col = col0 + tx + 16 * s;
            if (row >= m || col >= n) continue;
            const double old = BETA0 ? 0 : beta * exact(c + row * ldc + col);
            const double shift = BIAS ? exact(bias + col) : 0;
            value[row * n + col] = ACTIVATION(ACT)(alpha * sum[r][s] + old + shift);
            magnitude[row * n + col] = fabs(alpha) * sum_of_magnitudes[r][s] + fabs(old) + fabs(shift);
        }
}
