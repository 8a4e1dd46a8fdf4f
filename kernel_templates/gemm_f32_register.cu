// gemm in true fp32: c[m, n] = act(alpha * op(a) x op(b) + beta * c + bias[n]), tiles of c in registers
//
// a, b    float, rows of lda and ldb elements: a is [m, k], or [k, m] with TRANS_A; b is [k, n], or [n, k] with TRANS_B
// c       float, [m, n], rows of ldc elements; never read with BETA0. bias: [n], read with BIAS
// launch  grid = ceil(m / BM) * ceil(n / BN), block = THREADS = BM * BN / (TM * TN), dynamic shared memory =
//         STAGES * BK * (BM + BN + 4 for each operand whose contiguous dimension is k) * 4 bytes
// needs   rows of a aligned to COPY_A bytes, of b to COPY_B; ASYNC > 0 needs sm_80; powers of two throughout; a warp
//         takes LANES_M * TM rows and 32 / LANES_M * TN columns, and warps fill the tile; any m, n, k from 1
// source  tiles of a block, a warp and a thread, and the transposed store of a: siboehm/SGEMM_CUDA and NVIDIA/cutlass
#include "gemm.cuh"
#include "mma.cuh"
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
#ifndef BM
#define BM 128  // rows of c a block
#endif
#ifndef BN
#define BN 128  // columns of c a block
#endif
#ifndef BK
#define BK 8  // k a stage
#endif
#ifndef TM
#define TM 8  // rows of c a thread
#endif
#ifndef TN
#define TN 16  // columns of c a thread
#endif
#ifndef LANES_M
#define LANES_M 8  // lanes of a warp along the rows of c
#endif
#ifndef STAGES
#define STAGES 2  // tiles in shared memory
#endif
#ifndef ASYNC
#define ASYNC 0  // asynchronous copies: 0 none, 1 of operands that need no transposing, 2 of both
#endif
#ifndef GROUP
#define GROUP 8  // tiles down before the next column of tiles
#endif
#ifndef BLOCKS
#define BLOCKS 2  // blocks that shall fit a multiprocessor
#endif
#ifndef COPY_A
#define COPY_A 16  // bytes a load, 4 or 16
#endif
#ifndef COPY_B
#define COPY_B 16
#endif

constexpr int threads = BM * BN / (TM * TN);
constexpr int lanes_n = 32 / LANES_M;
constexpr int warps_m = BM / (LANES_M * TM);

/// One operand on its way from global memory to a tile [BK][WIDTH] in shared memory, piece by piece. K_INNER: its
/// contiguous dimension in global memory is k, so a piece is turned on the way, and rows of the tile are padded by 4
/// floats: then the 32 lanes of a warp, which read 32 bytes of each of several rows, write to 32 different banks.
template <int WIDTH, bool K_INNER, int COPY_BYTES>
struct Operand {
    static constexpr bool is_async = ASYNC == 2 || (ASYNC == 1 && !K_INNER);
    static constexpr int vec = K_INNER && is_async ? 1 : COPY_BYTES / 4;  // elements a piece
    static constexpr int pitch = WIDTH + (K_INNER ? 4 : 0);
    static constexpr int pieces = BK * WIDTH / (vec * threads);  // a thread
    static_assert(pieces > 0 && pieces * vec * threads == BK * WIDTH, "threads share a tile evenly");

    // Pieces of the threads go along k by `across`, then along the width; a thread's own are a fixed step apart.
    static constexpr int across = K_INNER ? 8 / vec : WIDTH / vec;
    static constexpr int line = K_INNER ? across * WIDTH : across;  // pieces before k moves on
    static constexpr int in_line = line < threads ? 1 : line / threads;
    static constexpr int k_step = (K_INNER ? 8 : 1) * (line < threads ? threads / line : 1);
    static constexpr int w_step = K_INNER ? threads / across : threads * vec;

    const float* matrix;
    const float* from;  // this thread's first piece of the next tile
    long long ld;
    int k_first, w_first;        // that piece's place in a tile
    int w_origin, w_end, k_end;  // where the block's tile lies along the width, and the matrix's extents
    float staged[is_async ? 1 : pieces * vec];

    __device__ __forceinline__ Operand(const float* start, long long row, int origin, int width, int depth)
        : matrix{start}, ld{row}, w_origin{origin}, w_end{width}, k_end{depth} {
        const int t = static_cast<int>(threadIdx.x);
        k_first = K_INNER ? t % across * vec + t / line * 8 : t / across;
        w_first = K_INNER ? t / across % WIDTH : t % across * vec;
        from = matrix + offset(k_first, w_origin + w_first);
    }

    __device__ __forceinline__ long long offset(int k, int w) const { return K_INNER ? w * ld + k : k * ld + w; }

    /// Starts the copy of the tile at k0, if there is one, into `tile` or into registers. `inside`: all of it lies in
    /// the matrix; otherwise zeros stand for what does not.
    __device__ __forceinline__ void fetch(float* tile, int k0, bool inside) {
        if (inside)
            copy<true>(tile, k0);
        else if (k0 < k_end)
            copy<false>(tile, k0);
    }

    template <bool INSIDE>
    __device__ __forceinline__ void copy(float* tile, int k0) {
#pragma unroll
        for (int i = 0; i < pieces; ++i) {
            const int dk = i / in_line * k_step, dw = i % in_line * w_step;
            const float* piece = from + offset(dk, dw);
            int valid = vec;
            if constexpr (!INSIDE) {
                const int k_left = k_end - (k0 + k_first + dk), w_left = w_end - (w_origin + w_first + dw);
                valid = k_left > 0 && w_left > 0 ? min(vec, K_INNER ? k_left : w_left) : 0;
                if (valid == 0) piece = matrix;
            }
            if constexpr (is_async) {
                const unsigned to = shared_address(tile + (k_first + dk) * pitch + w_first + dw);
                if constexpr (vec == 4)
                    cp_async_16(to, piece, 4 * valid);
                else
                    cp_async_small<4>(to, piece, 4 * valid);
            } else if (INSIDE) {
                const auto loaded = load_readonly<vec>(piece);
#pragma unroll
                for (int j = 0; j < vec; ++j) staged[i * vec + j] = loaded.lane[j];
            } else {
#pragma unroll
                for (int j = 0; j < vec; ++j) staged[i * vec + j] = j < valid ? piece[j] : 0.0f;
            }
        }
        from += K_INNER ? BK : BK * ld;
    }

    /// Finishes in `tile` what `fetch` left in registers.
    __device__ __forceinline__ void put(float* tile) const {
        if constexpr (!is_async) {
#pragma unroll
            for (int i = 0; i < pieces; ++i) {
                float* to = tile + (k_first + i / in_line * k_step) * pitch + w_first + i % in_line * w_step;
                Vec<float, vec> piece;
#pragma unroll
                for (int j = 0; j < vec; ++j) piece.lane[j] = staged[i * vec + j];
                if constexpr (K_INNER) {
#pragma unroll
                    for (int j = 0; j < vec; ++j) to[j * pitch] = piece.lane[j];
                } else {
                    store(to, piece);
                }
            }
        }
    }
};

using OperandA = Operand<BM, !TRANS_A, COPY_A>;
using OperandB = Operand<BN, TRANS_B, COPY_B>;
constexpr int a_floats = BK * OperandA::pitch;
constexpr int stage_floats = a_floats + BK * OperandB::pitch;

/// N values of a tile's row: groups of 4, `step` apart.
template <int N>
__device__ __forceinline__ void load_fragment(float (&fragment)[N], const float* row, int step) {
#pragma unroll
    for (int i = 0; i < N / 4; ++i) {
        const auto four = load<4>(row + i * step);
#pragma unroll
        for (int j = 0; j < 4; ++j) fragment[i * 4 + j] = four.lane[j];
    }
}

/// An element of c from its sum of products; `inside`: it is one, so that c and bias may be read.
__device__ __forceinline__ float finish(float sum, const float* at, const float* bias, int col, bool inside,
                                        float alpha, float beta) {
    float value = alpha * sum;
    if (!BETA0 && inside) value = fmaf(beta, *at, value);
    if (BIAS && inside) value += bias[col];
    return ACTIVATION(ACT)(value);
}

extern "C" __global__ void __launch_bounds__(threads, BLOCKS)
    gemm_f32_register(const float* a, const float* b, float* c, const float* bias, int m, int n, int k, long long lda,
                      long long ldb, long long ldc, float alpha, float beta) {
    extern __shared__ __align__(16) float stages[];

    // 1. This block's tile of c, and this thread's place in it: rows and columns in groups of 4, so that the lanes of a
    //    warp read neighbouring groups.
    const TilePosition position = grouped_tile<GROUP>(blockIdx.x, (m - 1) / BM + 1, (n - 1) / BN + 1);
    const int row0 = position.row * BM, col0 = position.col * BN;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int my_row = warp % warps_m * (LANES_M * TM) + lane % LANES_M * 4;
    const int my_col = warp / warps_m * (lanes_n * TN) + lane / LANES_M * 4;

    OperandA from_a{a, lda, row0, m, k};
    OperandB from_b{b, ldb, col0, n, k};
    const bool whole_width = row0 + BM <= m && col0 + BN <= n;
    const int steps = (k - 1) / BK + 1;
    const auto slot = [](int step) { return stages + step % STAGES * stage_floats; };
    const auto fetch = [&](int step, bool asynchronous) {  // what of the step's tiles is copied that way
        const bool inside = whole_width && (step + 1) * static_cast<long long>(BK) <= k;
        if (OperandA::is_async == asynchronous) from_a.fetch(slot(step), step * BK, inside);
        if (OperandB::is_async == asynchronous) from_b.fetch(slot(step) + a_floats, step * BK, inside);
    };
    const auto put = [&](int step) {
        from_a.put(slot(step));
        from_b.put(slot(step) + a_floats);
    };
    float left[2][TM], right[2][TN];
    const auto load_fragments = [&](int step, int kk) {
        load_fragment(left[kk % 2], slot(step) + my_row + kk * OperandA::pitch, 4 * LANES_M);
        load_fragment(right[kk % 2], slot(step) + a_floats + my_col + kk * OperandB::pitch, 4 * lanes_n);
    };

    // 2. Asynchronous copies are STAGES tiles ahead, those through registers one tile and the next on its way.
#pragma unroll
    for (int step = 0; step < STAGES; ++step) {
        fetch(step, true);
        if (ASYNC) cp_async_commit();
    }
    fetch(0, false);
    put(0);
    fetch(1, false);
    if (ASYNC) cp_async_wait<STAGES - 1>();
    __syncthreads();
    load_fragments(0, 0);

    // 3. Products, one k after the other, while the next k's values are on their way from shared memory. Before the
    // last
    //    k of a tile the block meets: the next tile is there, and nothing more is read of this one.
    float sum[TM][TN] = {};
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int kk = 0; kk < BK; ++kk) {
            if (kk + 1 < BK) {
                load_fragments(step, kk + 1);
            } else if (step + 1 < steps) {
                put(step + 1);
                if (ASYNC) cp_async_wait<STAGES - 2>();
                __syncthreads();
                load_fragments(step + 1, 0);  // BK is even: into the registers of k 0
                fetch(step + STAGES, true);
                if (ASYNC) cp_async_commit();
                fetch(step + 2, false);
            }
            // To and fro along the rows: of each two products in order, one operand stays in the register file's cache.
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int turn = 0; turn < TN; ++turn) {
                    const int j = i % 2 == 0 ? turn : TN - 1 - turn;
                    sum[i][j] = fmaf(left[kk % 2][i], right[kk % 2][j], sum[i][j]);
                }
        }
    }

    // 4. Finish and store, 4 columns at once where c allows it.
    const bool aligned = reinterpret_cast<unsigned long long>(c) % 16 == 0 && ldc % 4 == 0;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = row0 + my_row + i / 4 * (4 * LANES_M) + i % 4;
        if (row >= m) continue;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = col0 + my_col + j / 4 * (4 * lanes_n);
            float* at = c + row * ldc + col;
            Vec<float, 4> out;
#pragma unroll
            for (int e = 0; e < 4; ++e)
                out.lane[e] = finish(sum[i][j + e], at + e, bias, col + e, col + e < n, alpha, beta);
            if (aligned && col + 4 <= n) {
                store(at, out);
            } else {
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (col + e < n) at[e] = out.lane[e];
            }
        }
    }
}
