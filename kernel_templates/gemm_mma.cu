// gemm, tensor cores: c[m, n] = act(alpha * op(a) x op(b) + beta * c + bias[n]) for __half and __nv_bfloat16
//
// a       T, rows of lda elements: [m, k], or [k, m] with TRANS_A; b likewise: [k, n], or [n, k] with TRANS_B
// c       T, [m, n], rows of ldc elements; never read with BETA0. bias: [n], read with BIAS
// partial float, [SPLITS, m, n rounded up to 8], only with SPLITS > 1: block z writes the sums of its part of k, and
//         gemm_mma_sum adds the parts in order, so the result is the same in every run
// launch  gemm_mma: grid = (ceil(m / BM) * ceil(n / BN), 1, SPLITS), block = 32 * WARPS_M * WARPS_N, dynamic shared
//         memory = max(STAGES * (BM + BN) * BK, BM * BN) * 2 bytes
//         gemm_mma_sum: grid = ceil(m * (n rounded up to 8) / 8 / 256), block = 256
// needs   sm_80, or MMA_K == 8 and __half (sm_75); rows of a aligned to COPY_A bytes, of b to COPY_B (2, 4, 8 or 16);
//         any m, n, k from 1
// source  gemm_mma.cuh names the ideas
#include "gemm_mma.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef MMA_K
#if __CUDA_ARCH__ >= 800
#define MMA_K 16  // k of one product: 16 with cp.async (sm_80), or 8 with copies through registers (sm_75)
#else
#define MMA_K 8
#endif
#endif
#ifndef T
#define T __half
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
#ifndef BM
#define BM 128  // rows of c a block
#endif
#ifndef BN
#define BN 128  // columns of c a block
#endif
#ifndef BK
#define BK 32  // k a stage
#endif
#ifndef STAGES
#define STAGES 2  // tiles of k in shared memory, all but one in flight
#endif
#ifndef WARPS_M
#define WARPS_M 2
#endif
#ifndef WARPS_N
#define WARPS_N 4
#endif
#ifndef GROUP
#define GROUP 8  // tiles down before the next column of tiles
#endif
#ifndef SPLITS
#define SPLITS 1  // parts of k
#endif
#ifndef COPY_A
#define COPY_A 16  // bytes a copy
#endif
#ifndef COPY_B
#define COPY_B 16
#endif

/// An element of c from its sum of products; `at` is read only where beta counts.
__device__ __forceinline__ float finish(float sum, const T* at, const T* bias, int col, float alpha, float beta) {
    float value = alpha * sum;
    if (!BETA0) value = fmaf(beta, to_float(*at), value);
    if (BIAS) value += to_float(bias[col]);
    return ACTIVATION(ACT)(value);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS_M * WARPS_N)
    gemm_mma(const T* a, const T* b, T* c, const T* bias, float* partial, int m, int n, int k, long long lda,
             long long ldb, long long ldc, float alpha, float beta) {
    extern __shared__ __align__(128) unsigned char shared[];
    using Tile = MmaTile<T, BM, BN, BK, STAGES, WARPS_M, WARPS_N, TRANS_A, TRANS_B, COPY_A, COPY_B, MMA_K == 16>;

    // 1. This block's tile of c, and its part of k in whole stages.
    const TilePosition position = grouped_tile<GROUP>(blockIdx.x, (m - 1) / BM + 1, (n - 1) / BN + 1);
    const int row0 = position.row * BM, col0 = position.col * BN;
    const long long steps = (k - 1) / BK + 1;
    const int k_begin = SPLITS == 1 ? 0 : static_cast<int>(blockIdx.z * steps / SPLITS * BK);
    const int k_end =
        SPLITS == 1 ? k : static_cast<int>(min(static_cast<long long>(k), (blockIdx.z + 1) * steps / SPLITS * BK));

    // 2. The products.
    Tile tile;
    tile.multiply(a, b, m, n, k_begin, k_end, lda, ldb, row0, col0, shared);

#if SPLITS > 1
    // 3. Sums go out as they are. Pairs start at even columns, and rows are padded, so each is one aligned store.
    const long long pitch = (static_cast<long long>(n) + 7) / 8 * 8;
    float* part = partial + pitch * m * blockIdx.z;
    tile.for_each_pair([&](int row, int col, float first, float second) {
        if (row0 + row < m && col0 + col < n)
            *reinterpret_cast<float2*>(part + (row0 + row) * pitch + col0 + col) = make_float2(first, second);
    });
#else
    // 3. Each thread finishes its elements and leaves them in shared memory, from where rows go out whole: a fragment
    //    alone would store 16 bytes of each of eight rows.
    tile.for_each_pair([&](int row, int col, float first, float second) {
        const T* at = c + (row0 + row) * ldc + col0 + col;
        const bool inside = row0 + row < m && col0 + col < n;
        const bool both = inside && col0 + col + 1 < n;
        if (inside) first = finish(first, at, bias, col0 + col, alpha, beta);
        if (both) second = finish(second, at + 1, bias, col0 + col + 1, alpha, beta);
        *reinterpret_cast<unsigned*>(shared + swizzled<2 * BN>(row, col / 8) + col % 8 * 2) =
            pack_pair<T>(first, second);
    });
    __syncthreads();
    store_tile<BM, BN, Tile::THREADS>(c, ldc, m, n, row0, col0, shared);
#endif
}

#if SPLITS > 1
extern "C" __global__ void __launch_bounds__(256)
    gemm_mma_sum(const float* partial, T* c, const T* bias, int m, int n, long long ldc, float alpha, float beta) {
    // 1. A thread takes 8 neighbouring columns of a row.
    const long long pitch = (static_cast<long long>(n) + 7) / 8 * 8;
    const long long at = (static_cast<long long>(blockIdx.x) * 256 + threadIdx.x) * 8;
    if (at >= m * pitch) return;
    const long long row = at / pitch;
    const int col = static_cast<int>(at - row * pitch);

    // 2. Parts are added in the order of k.
    float sum[8] = {};
#pragma unroll
    for (int s = 0; s < SPLITS; ++s) {
        const auto low = load_readonly<4>(partial + pitch * m * s + at);
        const auto high = load_readonly<4>(partial + pitch * m * s + at + 4);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            sum[e] += low.lane[e];
            sum[4 + e] += high.lane[e];
        }
    }

    // 3. Finish, and store in one piece where c allows it.
    T* out = c + row * ldc + col;
    Vec<T, 8> values;
#pragma unroll
    for (int e = 0; e < 8; ++e)
        if (col + e < n) values.lane[e] = from_float<T>(finish(sum[e], out + e, bias, col + e, alpha, beta));
    if (col + 8 <= n && reinterpret_cast<unsigned long long>(out) % 16 == 0) {
        store(out, values);
        return;
    }
#pragma unroll
    for (int e = 0; e < 8; ++e)
        if (col + e < n) out[e] = values.lane[e];
}
#endif
