// gemm_mma: one block's tile of op(a) x op(b) on tensor cores, from m16n8k16 products over tiles in shared memory.
//
// A tile in shared memory keeps the order its operand has in global memory, so nothing is transposed by copies:
// an operand with k along its rows (a as it is, b when transposed) lies as MN rows of BK elements and is read by
// ldmatrix; the other kind lies as BK rows of MN elements and is read by ldmatrix.trans.
// source  multistage cp.async pipeline with register double buffering: CUTLASS, "efficient GEMM in CUDA"; XOR swizzle
//         and ldmatrix: the same, and the PTX ISA
#ifndef AUTOTUNE_GEMM_MMA_CUH
#define AUTOTUNE_GEMM_MMA_CUH

#include "gemm.cuh"
#include "mma.cuh"

/// One thread's share of copying an operand's tiles from global to shared memory, in chunks of 8 elements, each moved
/// as pieces of COPY bytes, the alignment of the operand's rows. Elements outside the operand become zeros.
/// With ASYNC the copy is cp.async's; without, `fetch` brings chunks to registers and `deposit` stores them later.
template <class T, int MN, int BK, int THREADS, bool K_ALONG_ROWS, int COPY, bool ASYNC>
struct TileCopy {
    static constexpr int ROWS = K_ALONG_ROWS ? MN : BK;
    static constexpr int COLUMNS = (K_ALONG_ROWS ? BK : MN) / 8;  // chunks a row
    static constexpr int ROW_BYTES = 16 * COLUMNS;
    static constexpr int BYTES = ROWS * ROW_BYTES;
    static constexpr int STEP = THREADS / COLUMNS;  // rows from one chunk of a thread to its next
    static constexpr int CHUNKS = ROWS < STEP ? 1 : ROWS / STEP;
    static_assert(sizeof(T) == 2 && THREADS % COLUMNS == 0 && (ROWS < STEP || ROWS % STEP == 0),
                  "chunks come out even");

    const char* base;    // the operand: an address that is always legal
    const char* source;  // the thread's first chunk of the tile that `fetch` brings next
    long long pitch;     // bytes a row of the operand
    int row, column;     // of that chunk in the tile
    int extent;          // K_ALONG_ROWS: rows of the operand left from `row` on; else bytes of the chunk inside it
    uint4 held[ASYNC ? 1 : CHUNKS];

    /// `first` is the tile's first row (of op(a)) or column (of op(b)), `count` how many there are; `k` the first k.
    __device__ __forceinline__ TileCopy(const T* operand, long long ld, int first, int count, int k) {
        row = static_cast<int>(threadIdx.x) / COLUMNS;
        column = static_cast<int>(threadIdx.x) % COLUMNS;
        base = reinterpret_cast<const char*>(operand);
        pitch = ld * 2;
        const int rows_before = K_ALONG_ROWS ? first : k;
        const int columns_before = K_ALONG_ROWS ? k : first;
        source = base + (static_cast<long long>(rows_before) + row) * pitch +
                 (static_cast<long long>(columns_before) + column * 8) * 2;
        extent = K_ALONG_ROWS ? count - first - row : bytes_inside(count - first - column * 8);
        if (ROWS < STEP && row >= ROWS) extent = 0;
    }

    /// Of a chunk with `elements` elements from its start to the end of its row.
    static __device__ __forceinline__ int bytes_inside(int elements) { return 2 * max(0, min(8, elements)); }

    /// Begins to bring the next tile to `tile`; `k_left` elements of k are left from its start on (0 or fewer: none).
    __device__ __forceinline__ void fetch(unsigned tile, int k_left) {
        const int k_bytes = K_ALONG_ROWS ? bytes_inside(k_left - column * 8) : 0;
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            const int valid = K_ALONG_ROWS ? (i * STEP < extent ? k_bytes : 0) : (i * STEP < k_left - row ? extent : 0);
            const char* chunk = source + i * STEP * pitch;
            if constexpr (ASYNC) {
                if (ROWS >= STEP || row < ROWS)
                    copy_async(tile + swizzled<ROW_BYTES>(row + i * STEP, column), chunk, valid);
            } else {
                held[i] = read(chunk, valid);
            }
        }
        source += K_ALONG_ROWS ? 2 * BK : BK * pitch;
    }

    /// Without ASYNC: stores what `fetch` brought.
    __device__ __forceinline__ void deposit(unsigned char* tile) const {
        if constexpr (!ASYNC) {
            if (ROWS < STEP && row >= ROWS) return;
#pragma unroll
            for (int i = 0; i < CHUNKS; ++i)
                *reinterpret_cast<uint4*>(tile + swizzled<ROW_BYTES>(row + i * STEP, column)) = held[i];
        }
    }

private:
    __device__ __forceinline__ void copy_async(unsigned destination, const char* chunk, int valid) const {
        if constexpr (COPY == 16) {
            cp_async_16(destination, valid > 0 ? chunk : base, valid);
        } else {
#pragma unroll
            for (int piece = 0; piece < 16; piece += COPY) {
                const int inside = max(0, min(COPY, valid - piece));
                cp_async_small<COPY>(destination + piece, inside > 0 ? chunk + piece : base, inside);
            }
        }
    }

    static __device__ __forceinline__ uint4 read(const char* chunk, int valid) {
        uint4 result = make_uint4(0, 0, 0, 0);
        if (COPY > 2 && valid == 16) {
            constexpr int WIDTH = COPY > 2 ? COPY : 4;
            auto* pieces = reinterpret_cast<Word<WIDTH>*>(&result);
#pragma unroll
            for (int piece = 0; piece < 16 / WIDTH; ++piece)
                pieces[piece] = __ldg(reinterpret_cast<const Word<WIDTH>*>(chunk) + piece);
            return result;
        }
        auto* words = reinterpret_cast<unsigned*>(&result);
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            const unsigned element = 2 * e < valid ? __ldg(reinterpret_cast<const unsigned short*>(chunk) + e) : 0u;
            words[e / 2] |= element << (16 * (e % 2));
        }
        return result;
    }
};

/// The tile of one block and how its warps share it.
/// TRANS_A    a is stored [k, m] instead of [m, k]; TRANS_B: b is stored [n, k] instead of [k, n]
/// STAGES     tiles of k that shared memory holds
/// K16        m16n8k16 products and cp.async (sm_80); without, m16n8k8 products of __half and copies through registers
template <class T, int BM, int BN, int BK, int STAGES, int WARPS_M, int WARPS_N, bool TRANS_A, bool TRANS_B, int COPY_A,
          int COPY_B, bool K16>
struct MmaTile {
    static constexpr int THREADS = 32 * WARPS_M * WARPS_N;
    static constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N;  // a warp's part
    static constexpr int M16 = WM / 16, N16 = WN / 16, STEPS = BK / 16;
    static_assert(WM % 16 == 0 && WN % 16 == 0 && BK % 32 == 0 && STAGES >= 2, "whole products, and a stage in flight");

    using CopyA = TileCopy<T, BM, BK, THREADS, !TRANS_A, COPY_A, K16 && COPY_A >= 4>;
    using CopyB = TileCopy<T, BN, BK, THREADS, TRANS_B, COPY_B, K16 && COPY_B >= 4>;
    static constexpr int STAGE_BYTES = CopyA::BYTES + CopyB::BYTES;
    struct Fragments {
        unsigned a[M16][4], b[N16][4];
    };

    float acc[M16][2 * N16][4];

    /// acc = the products over k in [k_begin, k_end); `shared` holds STAGES * STAGE_BYTES, aligned to 128.
    __device__ __forceinline__ void multiply(const T* a, const T* b, int m, int n, int k_begin, int k_end,
                                             long long lda, long long ldb, int row0, int col0, unsigned char* shared) {
        CopyA copy_a(a, lda, row0, m, k_begin);
        CopyB copy_b(b, ldb, col0, n, k_begin);
        const unsigned base = shared_address(shared);
        int k_left = k_end - k_begin;  // from the start of the tile that is fetched next
        const int tiles = (k_left + BK - 1) / BK;
#pragma unroll
        for (int i = 0; i < M16; ++i)
#pragma unroll
            for (int j = 0; j < 2 * N16; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.0f;

        const auto fetch = [&](int slot) {
            copy_a.fetch(base + slot * STAGE_BYTES, k_left);
            copy_b.fetch(base + slot * STAGE_BYTES + CopyA::BYTES, k_left);
            k_left = max(k_left - BK, 0);
        };
        const auto deposit = [&](int slot) {
            copy_a.deposit(shared + slot * STAGE_BYTES);
            copy_b.deposit(shared + slot * STAGE_BYTES + CopyA::BYTES);
        };

        // 1. Fill all stages but one. A group is committed even when it is empty, so that groups count tiles.
#pragma unroll
        for (int s = 0; s < STAGES - 1; ++s) {
            fetch(s);
            deposit(s);
            if constexpr (K16) cp_async_commit();
        }
        await_oldest();

        // 2. At each step of 16 along k, load the next step's fragments, then multiply this step's. With four steps or
        //    more, half of the last step's products go before the barrier, so that they run while warps wait; with two,
        //    that costs more than it hides (measured on an H200: BK 64 +2 %, BK 32 -10 %).
        constexpr int ROWS_BEFORE_BARRIER = STEPS > 2 ? M16 / 2 : 0;
        Fragments fragments[2];
        load_fragments(fragments[0], base, 0);
        int read_slot = 0, write_slot = STAGES - 1;
        for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
            for (int step = 0; step < STEPS; ++step) {
                const bool last = step == STEPS - 1;
                // The slot written here was last read before the barrier of the tile before.
                if (step == 0) {
                    fetch(write_slot);
                    if constexpr (K16) cp_async_commit();
                }
                if (last) {
                    multiply_rows(fragments[step % 2], 0, ROWS_BEFORE_BARRIER);
                    deposit(write_slot);
                    write_slot = read_slot;
                    read_slot = read_slot + 1 == STAGES ? 0 : read_slot + 1;
                    await_oldest();
                }
                load_fragments(fragments[(step + 1) % 2], base + read_slot * STAGE_BYTES, (step + 1) % STEPS);
                multiply_rows(fragments[step % 2], last ? ROWS_BEFORE_BARRIER : 0, M16);
            }
        }

        // 3. Shared memory is free for other use once no copy is under way and all warps are here.
        if constexpr (K16) cp_async_wait<0>();
        __syncthreads();
    }

    /// body(row, col, first, second) for each pair of neighbouring columns this thread holds, counted in the tile.
    template <class Body>
    __device__ __forceinline__ void for_each_pair(Body body) const {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < M16; ++i)
#pragma unroll
            for (int j = 0; j < 2 * N16; ++j)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    body(warp_row() + 16 * i + 8 * half + lane / 4, warp_col() + 8 * j + 2 * (lane % 4),
                         acc[i][j][2 * half], acc[i][j][2 * half + 1]);
    }

private:
    static __device__ __forceinline__ int warp_row() { return static_cast<int>(threadIdx.x) / 32 / WARPS_N * WM; }
    static __device__ __forceinline__ int warp_col() { return static_cast<int>(threadIdx.x) / 32 % WARPS_N * WN; }

    /// The oldest stage in flight has landed for every thread, and every warp is done with the stage before it.
    static __device__ __forceinline__ void await_oldest() {
        if constexpr (K16) cp_async_wait<STAGES - 2>();
        __syncthreads();
    }

    static __device__ __forceinline__ void load_fragments(Fragments& f, unsigned stage, int step) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < M16; ++i) {
            const int row = warp_row() + 16 * i;
            if constexpr (TRANS_A)
                ldmatrix_x4_trans(f.a[i], stage + swizzled<CopyA::ROW_BYTES>(16 * step + lane % 8 + lane / 16 * 8,
                                                                             row / 8 + lane / 8 % 2));
            else
                ldmatrix_x4(f.a[i], stage + swizzled<CopyA::ROW_BYTES>(row + lane % 16, 2 * step + lane / 16));
        }
        stage += CopyA::BYTES;
#pragma unroll
        for (int j = 0; j < N16; ++j) {
            const int col = warp_col() + 16 * j;
            if constexpr (TRANS_B)
                ldmatrix_x4(f.b[j], stage + swizzled<CopyB::ROW_BYTES>(col + lane % 8 + lane / 16 * 8,
                                                                       2 * step + lane / 8 % 2));
            else
                ldmatrix_x4_trans(f.b[j],
                                  stage + swizzled<CopyB::ROW_BYTES>(16 * step + lane % 16, col / 8 + lane / 16));
        }
    }

    /// The products of rows 16 * begin to 16 * end. Columns go back and forth, so that neighbours share an operand.
    __device__ __forceinline__ void multiply_rows(const Fragments& f, int begin, int end) {
#pragma unroll
        for (int i = begin; i < end; ++i)
#pragma unroll
            for (int jj = 0; jj < 2 * N16; ++jj) {
                const int j = i % 2 ? 2 * N16 - 1 - jj : jj;
                const unsigned b0 = f.b[j / 2][j % 2 * 2], b1 = f.b[j / 2][j % 2 * 2 + 1];
                if constexpr (K16) {
                    mma_16816<T>(acc[i][j], f.a[i], b0, b1);
                } else {
                    mma_1688(acc[i][j], f.a[i][0], f.a[i][1], b0);
                    mma_1688(acc[i][j], f.a[i][2], f.a[i][3], b1);
                }
            }
    }
};

/// Stores a BM x BN tile that lies in shared memory as rows of BN elements, swizzled, to c: in 16-byte pieces where
/// c's rows allow it, else by neighbouring elements a warp.
template <int BM, int BN, int THREADS, class T>
__device__ __forceinline__ void store_tile(T* c, long long ldc, int m, int n, int row0, int col0,
                                           const unsigned char* tile) {
    const bool aligned = (reinterpret_cast<unsigned long long>(c) | static_cast<unsigned long long>(2 * ldc)) % 16 == 0;
    if (aligned) {
        for (int chunk = threadIdx.x; chunk < BM * BN / 8; chunk += THREADS) {
            const int row = chunk / (BN / 8), column = chunk % (BN / 8);
            const int left = n - col0 - column * 8;
            if (row0 + row >= m || left <= 0) continue;
            T* out = c + (row0 + row) * ldc + col0 + column * 8;
            const auto values = load<8>(reinterpret_cast<const T*>(tile + swizzled<2 * BN>(row, column)));
            if (left >= 8) {
                store(out, values);
            } else {
#pragma unroll
                for (int e = 0; e < 8; ++e)
                    if (e < left) out[e] = values.lane[e];
            }
        }
    } else {
        for (int element = threadIdx.x; element < BM * BN; element += THREADS) {
            const int row = element / BN, col = element % BN;
            if (row0 + row < m && col0 + col < n)
                c[(row0 + row) * ldc + col0 + col] =
                    reinterpret_cast<const T*>(tile + swizzled<2 * BN>(row, col / 8))[col % 8];
        }
    }
}

#endif
