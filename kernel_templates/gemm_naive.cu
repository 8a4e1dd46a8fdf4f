// gemm, one thread an element: c[m, n] = act(alpha * op(a) x op(b) + beta * c + bias[n]) for every type and layout
//
// a       T, rows of lda elements: [m, k], or [k, m] with TRANS_A; b likewise: [k, n], or [n, k] with TRANS_B
// c       T, [m, n], rows of ldc elements; never read with BETA0. bias: [n], read with BIAS
// launch  grid = ceil(m / BLOCK_Y) * ceil(n / BLOCK_X), block = (BLOCK_X, BLOCK_Y), no dynamic shared memory
// needs   nothing: this is the variant that always holds, and the one to read first
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
#ifndef BLOCK_X
#define BLOCK_X 32  // threads along a row of c, so that a warp reads and writes neighbours
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 8
#endif

extern "C" __global__ void __launch_bounds__(BLOCK_X* BLOCK_Y)
    gemm_naive(const T* a, const T* b, T* c, const T* bias, int m, int n, int k, long long lda, long long ldb,
               long long ldc, float alpha, float beta) {
    // 1. This thread's element. The grid has one dimension, since its others end at 65535 blocks.
    const unsigned tile_cols = (n - 1) / BLOCK_X + 1;
    const long long row = static_cast<long long>(blockIdx.x / tile_cols) * BLOCK_Y + threadIdx.y;
    const long long col = static_cast<long long>(blockIdx.x % tile_cols) * BLOCK_X + threadIdx.x;
    if (row >= m || col >= n) return;

    // 2. The sum over k.
    const T* a_at = a + (TRANS_A ? row : row * lda);
    const T* b_at = b + (TRANS_B ? col * ldb : col);
    const long long a_step = TRANS_A ? lda : 1, b_step = TRANS_B ? 1 : ldb;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum = fmaf(to_float(a_at[i * a_step]), to_float(b_at[i * b_step]), sum);

    // 3. The rest of the formula.
    T* out = c + row * ldc + col;
    float value = alpha * sum;
    if (!BETA0) value = fmaf(beta, to_float(*out), value);
    if (BIAS) value += to_float(bias[col]);
    *out = from_float<T>(ACTIVATION(ACT)(value));
}
