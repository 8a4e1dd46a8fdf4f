// attention: o = softmax(scale * q k^T + mask) v in one pass over the keys
//
// q, o    T [batch, q_heads, seq_q, D] at any strides (in elements), rows contiguous and 16-byte aligned
// k, v    T [batch, kv_heads, seq_k, D] likewise; query head h reads key head h / (q_heads / kv_heads)
// CAUSAL  row i sees the keys j <= i + seq_k - seq_q; a row that sees none gives 0
// launch  grid = ceil(seq_q / BQ) * heads with heads = batch * q_heads, block = 32 * WARPS, dynamic shared memory
//         of 2 * DP * max(BQ, (Q_IN_REGS ? 0 : BQ) + 2 * STAGES * BKV) bytes, DP = D rounded up to 16
// needs   T __half or __nv_bfloat16, D % 8 == 0; MMA_K 16 on sm_80 and later, MMA_K 8 on sm_75 with __half
// source  the division of work is FlashAttention-2's (Dao 2023): a warp owns whole rows, P stays in registers, the
//         load of K hides behind P V and that of V behind Q K^T; online normaliser by Milakov & Gimelshein 2018;
//         rescaling only when the maximum has grown a lot is FlashAttention-4's (Dao AI Lab 2025)
#include "common.cuh"
#include "mma.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef D
#define D 128  // elements of a head
#endif
#ifndef CAUSAL
#define CAUSAL 1
#endif
#ifndef BQ
#define BQ 128  // query rows a block
#endif
#ifndef BKV
#define BKV 64  // keys a step
#endif
#ifndef WARPS
#define WARPS 4  // each owns BQ / WARPS whole rows
#endif
#ifndef Q_IN_REGS
#define Q_IN_REGS 0  // 1: q is read from shared memory once instead of once a step
#endif
#ifndef STAGES
#define STAGES 1  // tiles of K and of V; 1: each is loaded while the other is used
#endif
#ifndef BLOCKS
#define BLOCKS 2  // blocks an SM that the registers are cut for
#endif
#ifndef SECTION
#define SECTION 16  // heads whose blocks run side by side and share L2
#endif
#ifndef MMA_K
#define MMA_K 16  // 8: the sm_75 instruction, and copies through registers
#endif

namespace {

constexpr int threads = 32 * WARPS;
constexpr int padded = (D + 15) / 16 * 16;
constexpr int row_bytes = 2 * padded;
constexpr int row_chunks = padded / 8;  // of 16 bytes
constexpr int row_tiles = BQ / (16 * WARPS);
constexpr int key_steps = BKV / 16;
constexpr int dim_steps = padded / 16;
constexpr int kv_tile_bytes = BKV * row_bytes;
constexpr int kv_offset = Q_IN_REGS ? 0 : BQ * row_bytes;
static_assert(BQ % (16 * WARPS) == 0 && BKV % 16 == 0, "whole 16-row tiles a warp, whole 16-key steps");
static_assert(sizeof(T) == 2 && D % 8 == 0, "two-byte elements in 16-byte pieces");

/// p may reach 2^8 before the rows are rescaled: far from any overflow, and seldom exceeded a second time.
constexpr float slack = 8.0f;
/// The shift of a row that has seen no key: below any score, but finite, so that inf - inf never happens.
constexpr float no_shift = -1e30f;

__device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/// The same value, from which the compiler derives nothing before this point: addresses that it would otherwise
/// compute before the loop and keep.
__device__ __forceinline__ unsigned opaque(unsigned x) {
    asm volatile("" : "+r"(x));
    return x;
}

/// Shared memory is named by its 32-bit address throughout: a pointer would take two registers.
__device__ __forceinline__ uint4 read_shared(unsigned address) {
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(address)
                 : "memory");
    return x;
}
__device__ __forceinline__ void write_shared(unsigned address, unsigned x) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(x) : "memory");
}
__device__ __forceinline__ void write_shared(unsigned address, uint4 x) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
}

/// c += a x b for 16 rows, 8 columns and a depth of 16.
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if MMA_K == 16
    mma_16816<T>(c, a, b0, b1);
#else
    mma_1688(c, a[0], a[1], b0);
    mma_1688(c, a[2], a[3], b1);
#endif
}

/// The chunks of a tile of ROWS rows that this thread copies: one a pass, always the same chunk of a row.
template <int ROWS>
struct OwnChunks {
    static constexpr int rows_a_pass = threads / row_chunks;
    static constexpr int passes = (ROWS + rows_a_pass - 1) / rows_a_pass;
    static __device__ __forceinline__ int row(int pass) { return pass * rows_a_pass + threadIdx.x / row_chunks; }
    static __device__ __forceinline__ int chunk() { return threadIdx.x % row_chunks; }
    static __device__ __forceinline__ bool exists(int pass) {
        return (threads % row_chunks == 0 || threadIdx.x < rows_a_pass * row_chunks) &&
               (ROWS % rows_a_pass == 0 || row(pass) < ROWS);
    }
    template <class Each>
    static __device__ __forceinline__ void for_each(Each each) {
#pragma unroll
        for (int pass = 0; pass < passes; ++pass)
            if (exists(pass)) each(swizzled<row_bytes>(row(pass), chunk()));
    }
};

/// Where this thread's part of the next tile lies in global memory. It walks up tile by tile, from its last row to
/// its first, so that one running pointer is all that stays in registers.
template <int ROWS>
struct Source {
    using Own = OwnChunks<ROWS>;
    const T* next;
    long long row_stride;

    /// `first` is the tile's first element.
    __device__ __forceinline__ Source(const T* first, long long stride)
        : next{first + Own::row(Own::passes - 1) * stride + Own::chunk() * 8}, row_stride{stride} {}

    /// Starts the copy into `tile`; rows from `rows_left` on (if ragged) and the padding of D become zeros, for
    /// which the copy names `legal` as its source.
    __device__ __forceinline__ void load(bool ragged, unsigned tile, const T* legal, int rows_left) {
        constexpr int batch = MMA_K == 16 ? 1 : 4;  // what goes through registers is under way together
#pragma unroll
        for (int first = Own::passes - 1; first >= 0; first -= batch) {
            [[maybe_unused]] uint4 piece[batch];
#pragma unroll
            for (int pass = first; pass > first - batch && pass >= 0; --pass) {
                const bool there = (!ragged || Own::row(pass) < rows_left) && (D == padded || Own::chunk() < D / 8);
#if MMA_K == 16
                const unsigned to = tile + swizzled<row_bytes>(Own::row(pass), Own::chunk());
                if (Own::exists(pass)) cp_async_16(to, there ? next : legal, there ? 16 : 0);
#else
                piece[first - pass] = make_uint4(0, 0, 0, 0);
                if (Own::exists(pass) && there) piece[first - pass] = *reinterpret_cast<const uint4*>(next);
#endif
                next -= Own::rows_a_pass * row_stride;
                // Or the compiler keeps the distance of every pass in registers of its own.
                asm volatile("" : "+l"(next));
            }
#if MMA_K != 16
#pragma unroll
            for (int pass = first; pass > first - batch && pass >= 0; --pass)
                if (Own::exists(pass))
                    write_shared(tile + swizzled<row_bytes>(Own::row(pass), Own::chunk()), piece[first - pass]);
#endif
        }
        if (ROWS % Own::rows_a_pass != 0) next += (Own::passes * Own::rows_a_pass - ROWS) * row_stride;
    }
};

__device__ __forceinline__ void commit_loads() {
#if MMA_K == 16
    cp_async_commit();
#endif
}
__device__ __forceinline__ void wait_for_loads() {
#if MMA_K == 16
    cp_async_wait<0>();
#endif
}

/// Whether one of two packed elements is infinite or NaN: its exponent is all ones.
[[maybe_unused]] __device__ __forceinline__ bool pair_is_wild(unsigned pair, __half) {
    return ((pair & 0x7c007c00u) + 0x04000400u) & 0x80008000u;
}
[[maybe_unused]] __device__ __forceinline__ bool pair_is_wild(unsigned pair, __nv_bfloat16) {
    return ((pair & 0x7f807f80u) + 0x00800080u) & 0x80008000u;
}

/// Whether what this thread copied of a tile of V holds an infinity or a NaN.
__device__ __forceinline__ bool own_chunks_are_wild(unsigned tile) {
    bool wild = false;
    OwnChunks<BKV>::for_each([&](int offset) {
        const uint4 x = read_shared(tile + offset);
        wild |= pair_is_wild(x.x, T{}) | pair_is_wild(x.y, T{}) | pair_is_wild(x.z, T{}) | pair_is_wild(x.w, T{});
    });
    return wild;
}

/// A block's work: the rows from row_block * BQ on of one query head.
struct Place {
    int batch, head, row_block;
};

/// SECTION heads at a time, and in each section the longest rows of all its heads first, so that the blocks that
/// start last are the shortest.
__device__ __forceinline__ Place find_place(unsigned block, int heads, int q_heads, int seq_q) {
    const int row_blocks = (seq_q + BQ - 1) / BQ;
    const int section = block / (SECTION * row_blocks);
    const int in_section = block - section * (SECTION * row_blocks);
    const int width = min(SECTION, heads - section * SECTION);
    const int head = section * SECTION + in_section % width;
    const int turn = in_section / width;
    return {head / q_heads, head % q_heads, CAUSAL ? row_blocks - 1 - turn : turn};
}

/// One warp's rows: their scores against a tile of keys, and what has been summed up so far.
struct Rows {
    float s[row_tiles][2 * key_steps][4];  // scores, then probabilities
    float o[row_tiles][2 * dim_steps][4];
    float shift[row_tiles][2];  // p = 2^(c s - shift)
    float sum[row_tiles][2];    // of this lane's columns
    unsigned q[Q_IN_REGS ? dim_steps : 1][row_tiles][4];
    float c;
    unsigned q_lane, k_lane, v_lane;  // where this lane's ldmatrix rows begin

    /// Row `half` of row tile `tile`, counted from the warp's first.
    static __device__ __forceinline__ int row(int tile, int half) {
        return 16 * tile + 8 * half + (threadIdx.x % 32) / 4;
    }

    static __device__ __forceinline__ void load_q(unsigned lane_address, int d, unsigned (&a)[row_tiles][4]) {
#pragma unroll
        for (int i = 0; i < row_tiles; ++i)
            ldmatrix_x4(a[i], swizzled_step<row_bytes>(lane_address, d) + i * 16 * row_bytes);
    }

    /// s = q k^T
    __device__ __forceinline__ void score(unsigned slot) {
        const unsigned q_rows = opaque(q_lane), k_rows = opaque(k_lane + slot);
#pragma unroll
        for (int i = 0; i < row_tiles; ++i)
#pragma unroll
            for (int j = 0; j < 2 * key_steps; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) s[i][j][e] = 0.0f;
#pragma unroll
        for (int d = 0; d < dim_steps; ++d) {
            if (!Q_IN_REGS) load_q(q_rows, d, q[0]);
#pragma unroll
            for (int j = 0; j < key_steps; ++j) {
                unsigned b[4];
                ldmatrix_x4(b, swizzled_step<row_bytes>(k_rows, d) + j * 16 * row_bytes);
#pragma unroll
                for (int i = 0; i < row_tiles; ++i) {
                    multiply(s[i][2 * j], q[Q_IN_REGS ? d : 0][i], b[0], b[1]);
                    multiply(s[i][2 * j + 1], q[Q_IN_REGS ? d : 0][i], b[2], b[3]);
                }
            }
        }
    }

    /// Scores of keys from `visible` on, which are counted from the tile's first, become minus infinity.
    template <class Visible>
    __device__ __forceinline__ void mask(Visible visible) {
#pragma unroll
        for (int i = 0; i < row_tiles; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int end = visible(i, half) - 2 * (threadIdx.x % 4);
#pragma unroll
                for (int j = 0; j < 2 * key_steps; ++j)
#pragma unroll
                    for (int e = 0; e < 2; ++e)
                        if (8 * j + e >= end) s[i][j][2 * half + e] = minus_infinity;
            }
    }

    /// Moves the shift of all rows of the warp where some row's new scores exceed it by more than the slack.
    __device__ __forceinline__ void follow_maximum() {
        float most[row_tiles][2];
        bool grows = false;
#pragma unroll
        for (int i = 0; i < row_tiles; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                most[i][half] = fmaxf(s[i][0][2 * half], s[i][0][2 * half + 1]);
#pragma unroll
                for (int j = 1; j < 2 * key_steps; ++j)
                    most[i][half] = fmaxf(most[i][half], fmaxf(s[i][j][2 * half], s[i][j][2 * half + 1]));
                grows |= fmaf(most[i][half], c, -shift[i][half]) > slack;
            }
        if (!__any_sync(all_lanes, grows)) return;
#pragma unroll
        for (int i = 0; i < row_tiles; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float next = fmaxf(shift[i][half], warp_max<4>(most[i][half]) * c);
                const float factor = power_of_two(shift[i][half] - next);
                shift[i][half] = next;
                sum[i][half] *= factor;
#pragma unroll
                for (int d = 0; d < 2 * dim_steps; ++d)
#pragma unroll
                    for (int e = 0; e < 2; ++e) o[i][d][2 * half + e] *= factor;
            }
    }

    /// Scores become probabilities.
    __device__ __forceinline__ void exponentiate() {
#pragma unroll
        for (int i = 0; i < row_tiles; ++i)
#pragma unroll
            for (int j = 0; j < 2 * key_steps; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    s[i][j][e] = power_of_two(fmaf(s[i][j][e], c, -shift[i][e / 2]));
                    sum[i][e / 2] += s[i][j][e];
                }
    }

    /// o += p v. The compiler moves exponentials between the products by itself, so that the special-function unit and
    /// the tensor core work at once; doing so here changed nothing.
    __device__ __forceinline__ void weigh(unsigned slot) {
        const unsigned v_rows = opaque(v_lane + slot);
        exponentiate();
#pragma unroll
        for (int j = 0; j < key_steps; ++j) {
            unsigned a[row_tiles][4];
#pragma unroll
            for (int i = 0; i < row_tiles; ++i)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    a[i][e] = pack_pair<T>(s[i][2 * j + e / 2][e % 2 * 2], s[i][2 * j + e / 2][e % 2 * 2 + 1]);
#pragma unroll
            for (int d = 0; d < dim_steps; ++d) {
                unsigned b[4];
                ldmatrix_x4_trans(b, swizzled_step<row_bytes>(v_rows, d) + j * 16 * row_bytes);
#pragma unroll
                for (int i = 0; i < row_tiles; ++i) {
                    multiply(o[i][2 * d], a[i], b[0], b[1]);
                    multiply(o[i][2 * d + 1], a[i], b[2], b[3]);
                }
            }
        }
    }

    /// As `weigh`, key by key, for a tile of V in which a key that some rows must not see is infinite or NaN:
    /// the tensor core would give 0 * NaN to those rows.
    template <class Visible>
    __device__ __forceinline__ void weigh_visible(unsigned v_tile, Visible visible) {
        const int lane = threadIdx.x % 32;
        unsigned packed[row_tiles][2 * key_steps][2];
        exponentiate();
#pragma unroll
        for (int i = 0; i < row_tiles; ++i)
#pragma unroll
            for (int j = 0; j < 2 * key_steps; ++j)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    packed[i][j][half] = pack_pair<T>(s[i][j][2 * half], s[i][j][2 * half + 1]);
#pragma unroll 1
        for (int key = 0; key < BKV; ++key) {
            float p[row_tiles][2];
#pragma unroll
            for (int i = 0; i < row_tiles; ++i)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    unsigned mine = 0;
#pragma unroll
                    for (int j = 0; j < 2 * key_steps; ++j) {
                        const unsigned candidate = packed[i][j][half];
                        mine = j == key / 8 ? candidate : mine;
                    }
                    mine = __shfl_sync(all_lanes, mine, lane / 4 * 4 + key % 8 / 2);
                    const Vec<T, 2> both = reinterpret_cast<const Vec<T, 2>&>(mine);
                    p[i][half] = to_float(key % 2 ? both.lane[1] : both.lane[0]);
                }
#pragma unroll
            for (int d = 0; d < 2 * dim_steps; ++d) {
                unsigned pair;
                asm volatile("ld.shared.b32 %0, [%1];"
                             : "=r"(pair)
                             : "r"(v_tile + swizzled<row_bytes>(key, d) + lane % 4 * 4)
                             : "memory");
                const Vec<T, 2> v = reinterpret_cast<const Vec<T, 2>&>(pair);
#pragma unroll
                for (int i = 0; i < row_tiles; ++i)
#pragma unroll
                    for (int half = 0; half < 2; ++half)
                        if (key < visible(i, half)) {
                            o[i][d][2 * half] += p[i][half] * to_float(v.lane[0]);
                            o[i][d][2 * half + 1] += p[i][half] * to_float(v.lane[1]);
                        }
            }
        }
    }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, BLOCKS)
    attention_flash(const T* q, const T* k, const T* v, T* o, int heads, int q_heads, int kv_heads, int seq_q,
                    int seq_k, long long q_batch, long long q_head, long long q_row, long long k_batch,
                    long long k_head, long long k_row, long long v_batch, long long v_head, long long v_row,
                    long long o_batch, long long o_head, long long o_row, float scale) {
    extern __shared__ __align__(128) unsigned char shared[];
    // shared_address(shared), but in 32 bits from the start: NVRTC takes 64, and ptxas then spills in the loop.
    unsigned q_tile;
    asm("mov.u32 %0, shared;" : "=r"(q_tile) : "l"(shared));
    const unsigned k_tile = q_tile + kv_offset;
    const unsigned v_tile = k_tile + STAGES * kv_tile_bytes;
    const int lane = threadIdx.x % 32;
    const int warp_row = threadIdx.x / 32 * 16 * row_tiles;

    // 1. Which rows of which head.
    const Place place = find_place(blockIdx.x, heads, q_heads, seq_q);
    const int first_row = place.row_block * BQ;
    const int kv_head = place.head / (q_heads / kv_heads);

    // 2. Which keys: tiles before `whole` are seen by every row, those before `tiles` by some.
    const int ahead = seq_k - seq_q;
    const int seen_by_first = CAUSAL ? max(0, min(seq_k, first_row + 1 + ahead)) : seq_k;
    const int seen_by_last = CAUSAL ? max(0, min(seq_k, first_row + BQ + ahead)) : seq_k;
    const int tiles = (seen_by_last + BKV - 1) / BKV;
    const int whole = seen_by_first / BKV;

    // 3. Exponentials are powers of two of c * s - shift. A negative scale turns the sign of q instead, so that the
    //    maximum stays the maximum; a zero one becomes the smallest normal, since 0 * -inf would be NaN.
    const bool negative = scale < 0.0f;
    Rows rows;
    rows.c = fabsf(scale) * 1.44269504f;
    if (rows.c == 0.0f) rows.c = 1.2e-38f;
#pragma unroll
    for (int i = 0; i < row_tiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            rows.shift[i][half] = no_shift;
            rows.sum[i][half] = 0.0f;
#pragma unroll
            for (int d = 0; d < 2 * dim_steps; ++d) rows.o[i][d][2 * half] = rows.o[i][d][2 * half + 1] = 0.0f;
        }
    rows.q_lane = q_tile + swizzled<row_bytes>(warp_row + lane % 16, lane / 16);
    rows.k_lane = k_tile + swizzled<row_bytes>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
    rows.v_lane = v_tile + swizzled<row_bytes>(lane % 16, lane / 16);

    // 4. The first loads. With q in registers its tile lies where K and V come later.
    const int first_key = (tiles - 1) * BKV;
    Source<BQ> q_source{q + place.batch * q_batch + place.head * q_head + first_row * q_row, q_row};
    Source<BKV> k_source{k + place.batch * k_batch + kv_head * k_head + first_key * k_row, k_row};
    Source<BKV> v_source{v + place.batch * v_batch + kv_head * v_head + first_key * v_row, v_row};
    const auto turn_q = [&] {
        wait_for_loads();
        OwnChunks<BQ>::for_each([&](int offset) {
            uint4 x = read_shared(q_tile + offset);
            x.x ^= 0x80008000u, x.y ^= 0x80008000u, x.z ^= 0x80008000u, x.w ^= 0x80008000u;
            write_shared(q_tile + offset, x);
        });
    };
    q_source.load(true, q_tile, q, seq_q - first_row);
    commit_loads();
    if (Q_IN_REGS) {
        wait_for_loads();
        if (negative) turn_q();
        __syncthreads();
#pragma unroll
        for (int d = 0; d < dim_steps; ++d) rows.load_q(rows.q_lane, d, rows.q[Q_IN_REGS ? d : 0]);
        __syncthreads();
    }
    if (tiles > 0) {
        k_source.load(true, k_tile, k, seq_k - first_key);
        if (STAGES == 2) v_source.load(true, v_tile, v, seq_k - first_key);
    }
    commit_loads();
    if (!Q_IN_REGS && negative) turn_q();

    // 5. The keys from last to first. What is loaded behind the first use is full: only the last tile is ragged.
    unsigned slot = 0;
    const auto take_tile = [&](bool some_hidden, int n) __attribute__((always_inline)) {
        const auto visible = [&](int tile, int half) {
            const int row_end = first_row + warp_row + Rows::row(tile, half) + ahead + 1;
            return (CAUSAL ? min(seq_k, row_end) : seq_k) - n * BKV;
        };
        // Rows that are all above the diagonal have nothing to do here, but their warp still loads and waits.
        const bool idle = CAUSAL && some_hidden && first_row + warp_row + 16 * row_tiles + ahead <= n * BKV;
        bool wild = false;
        const auto arrive = [&](bool v_is_there) {
            wait_for_loads();
            if (CAUSAL && some_hidden && v_is_there)
                wild = __syncthreads_or(own_chunks_are_wild(v_tile + slot));
            else
                __syncthreads();
        };
        arrive(STAGES == 2);
        if (STAGES == 2) {
            if (n > 0) {
                k_source.load(false, k_tile + (slot ^ kv_tile_bytes), k, BKV);
                v_source.load(false, v_tile + (slot ^ kv_tile_bytes), v, BKV);
            }
        } else {
            v_source.load(some_hidden, v_tile, v, seq_k - n * BKV);
        }
        commit_loads();
        if (!idle) {
            rows.score(slot);
            if (some_hidden) rows.mask(visible);
        }
        if (STAGES == 1) {
            arrive(true);
            if (n > 0) k_source.load(false, k_tile, k, BKV);
            commit_loads();
        }
        if (!idle) {
            rows.follow_maximum();
            if (wild)
                rows.weigh_visible(v_tile + slot, visible);
            else
                rows.weigh(slot);
        }
        if (STAGES == 2) slot ^= kv_tile_bytes;
    };
    int n = tiles - 1;
#pragma unroll 1
    for (; n >= whole; --n) take_tile(true, n);
#pragma unroll 1
    for (; n >= 0; --n) take_tile(false, n);

    // 6. Normalise, and gather the rows in shared memory for whole-line stores. A warp reads back what it wrote, but
    //    with q in registers the place belongs to K and V until all are done.
    wait_for_loads();
    // What the end needs is found again rather than kept: the loop needs every register.
    const int own_thread = opaque(threadIdx.x);
    const int own_lane = own_thread % 32;
    const int own_row = own_thread / 32 * 16 * row_tiles;
    if (Q_IN_REGS || tiles == 0)
        __syncthreads();
    else
        __syncwarp();
#pragma unroll
    for (int i = 0; i < row_tiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float sum = warp_sum<4>(rows.sum[i][half]);
            const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma unroll
            for (int d = 0; d < 2 * dim_steps; ++d)
                write_shared(
                    q_tile + swizzled<row_bytes>(own_row + 16 * i + 8 * half + own_lane / 4, d) + own_lane % 4 * 4,
                    pack_pair<T>(rows.o[i][d][2 * half] * inverse, rows.o[i][d][2 * half + 1] * inverse));
        }
    __syncwarp();
    const Place there = find_place(opaque(blockIdx.x), heads, q_heads, seq_q);
    const int block_row = there.row_block * BQ + own_row;
    o += there.batch * o_batch + there.head * o_head + block_row * o_row;
#pragma unroll 4
    for (int at = own_lane; at < 16 * row_tiles * row_chunks; at += 32) {
        const int row = at / row_chunks, chunk = at % row_chunks;
        if (block_row + row < seq_q && (D == padded || chunk < D / 8))
            *reinterpret_cast<uint4*>(o + row * o_row + chunk * 8) =
                read_shared(q_tile + swizzled<row_bytes>(own_row + row, chunk));
    }
}
