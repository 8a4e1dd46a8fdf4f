// gemm in fp32 by shared tiles: c[m, n] = act(alpha * op(a) x op(b) + beta * c + bias[n])
//
// The step from one thread a dot product to a fast kernel that is the easiest to follow: a block copies a square tile
// of a and one of b to shared memory, and each element copied is used TILE times. gemm_f32_register.cu goes on from
// here.
//
// a, b    float, rows of lda and ldb elements: a is [m, k], or [k, m] with TRANS_A; b is [k, n], or [n, k] with TRANS_B
// c       float, [m, n], rows of ldc elements; never read with BETA0. bias: [n], read with BIAS
// launch  grid = ceil(m / TILE) * ceil(n / TILE), block = (TILE, TILE / ROWS), no dynamic shared memory
// needs   TILE a multiple of ROWS; any m, n, k from 1
// source  the shared-memory matrix product of the CUDA C++ Programming Guide
#include "gemm.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
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
#ifndef TILE
#define TILE 32  // rows and columns of c a block, and k a step
#endif
#ifndef ROWS
#define ROWS 4  // rows of c a thread
#endif

constexpr int height = TILE / ROWS;  // threads along the rows

/// Copies the tile of `matrix` whose first element is (row0, col0); zeros stand for what lies beyond [rows, cols].
/// TRANSPOSED: the tile is that of the transposed matrix, read along the matrix's rows all the same.
template <bool TRANSPOSED>
__device__ __forceinline__ void copy_tile(float (&tile)[TILE][TILE + 1], const float* matrix, long long ld, int row0,
                                          int col0, int rows, int cols) {
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int x = threadIdx.x, y = threadIdx.y + i * height;  // x goes along a row of memory: loads coalesce
        const int r = TRANSPOSED ? x : y, c = TRANSPOSED ? y : x;
        const long long row = row0 + r, col = col0 + c;
        tile[r][c] = row < rows && col < cols ? matrix[TRANSPOSED ? col * ld + row : row * ld + col] : 0.0f;
    }
}

extern "C" __global__ void __launch_bounds__(TILE* height)
    gemm_f32_tile(const float* a, const float* b, float* c, const float* bias, int m, int n, int k, long long lda,
                  long long ldb, long long ldc, float alpha, float beta) {
    __shared__ float tile_a[TILE][TILE + 1], tile_b[TILE][TILE + 1];  // + 1: a column lies in different banks

    // 1. This block's tile of c; a thread has one column of it, and every height-th row.
    const unsigned tile_cols = (n - 1) / TILE + 1;
    const int row0 = static_cast<int>(blockIdx.x / tile_cols) * TILE,
              col0 = static_cast<int>(blockIdx.x % tile_cols) * TILE;
    float sum[ROWS] = {};

    // 2. k goes by in steps of TILE.
    for (long long k0 = 0; k0 < k; k0 += TILE) {
        copy_tile<TRANS_A>(tile_a, a, lda, row0, static_cast<int>(k0), m, k);
        copy_tile<TRANS_B>(tile_b, b, ldb, static_cast<int>(k0), col0, k, n);
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < TILE; ++kk) {
            const float right = tile_b[kk][threadIdx.x];
#pragma unroll
            for (int i = 0; i < ROWS; ++i) sum[i] = fmaf(tile_a[threadIdx.y + i * height][kk], right, sum[i]);
        }
        __syncthreads();  // the tiles may be overwritten
    }

    // 3. Finish and store.
    const int col = col0 + static_cast<int>(threadIdx.x);
    if (col >= n) return;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int row = row0 + static_cast<int>(threadIdx.y) + i * height;
        if (row >= m) return;
        float* at = c + row * ldc + col;
        float value = alpha * sum[i];
        if (!BETA0) value = fmaf(beta, *at, value);
        if (BIAS) value += bias[col];
        *at = ACTIVATION(ACT)(value);
    }
}
