// rows: the threads of a row: which columns each has, and what they agree on across warps, block and cluster.
//
// A row belongs to LANES threads of a block, times CLUSTER blocks. The block is (LANES, ROWS).
#ifndef AUTOTUNE_ROWS_CUH
#define AUTOTUNE_ROWS_CUH

#include "common.cuh"

/// The columns of a row that a thread has: CHUNKS vectors of VEC a tile, and where rows are RAGGED at most one single
/// element, which lies outside of whole vectors. A kernel that holds its row has one tile.
template <int LANES, int VEC, int CHUNKS, bool RAGGED, int CLUSTER = 1>
struct RowPart {
    static constexpr int tile = LANES * VEC * CHUNKS * CLUSTER;
    int head, end;   // whole vectors are in [head, end)
    int first;       // this thread's first column
    int single = 0;  // the column of its single element
    bool has_single = false;

    /// `row` is of the tensor whose vectors are aligned; `rank` is the block's in its cluster.
    template <class T>
    __device__ __forceinline__ RowPart(const T* row, int cols, int rank = 0) : head{0}, end{cols} {
        const int t = static_cast<int>(threadIdx.x);
        if constexpr (RAGGED) {
            const RowParts parts = row_parts<VEC>(row, cols);
            head = parts.head;
            end = parts.head + parts.body;
            has_single = rank == 0 && t < parts.head + parts.tail;
            single = t < head ? t : end + t - head;
        }
        first = head + (rank * LANES + t) * VEC;
    }
    __device__ __forceinline__ int column(int chunk, int base = 0) const {
        return first + base + chunk * CLUSTER * LANES * VEC;
    }
    __device__ __forceinline__ bool has(int chunk, int base = 0) const { return column(chunk, base) < end; }
    /// Whether column c is among this thread's.
    __device__ __forceinline__ bool owns(int c) const {
        if (RAGGED && has_single && c == single) return true;
        return c >= first && c < end && (c - first) % (CLUSTER * LANES * VEC) < VEC;
    }
    __device__ __forceinline__ int tiles() const { return (end - head + tile - 1) / tile; }
    /// Whether the vectors of another row's tensor are aligned too.
    template <class T>
    __device__ __forceinline__ bool fits(const T* row) const {
        return !RAGGED || is_aligned<VEC>(row + head);
    }
};

// ---- Loads and stores of the threads that have something there, under a predicate: branches would be a fifth of the
// instructions of a row.

/// As `load_once` where `has`; elsewhere `v` stays.
template <int N, class T>
__device__ __forceinline__ void load_once_if(bool has, Vec<T, N>& v, const T* p) {
    constexpr int bytes = sizeof(T) * N;
    auto& word = reinterpret_cast<Word<bytes>&>(v);
    if constexpr (bytes == 16) {
        asm volatile(
            "{\n.reg .pred has;\nsetp.ne.s32 has, %5, 0;\n"
            "@has ld.global" L2_KEPT ".v4.u32 {%0, %1, %2, %3}, [%4]" L2_OPERAND(6) ";\n}"
            : "+r"(word.x), "+r"(word.y), "+r"(word.z), "+r"(word.w)
            : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(has)) L2_POLICY
            : "memory");
    } else if constexpr (bytes == 8) {
        asm volatile(
            "{\n.reg .pred has;\nsetp.ne.s32 has, %3, 0;\n"
            "@has ld.global" L2_KEPT ".v2.u32 {%0, %1}, [%2]" L2_OPERAND(4) ";\n}"
            : "+r"(word.x), "+r"(word.y)
            : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(has)) L2_POLICY
            : "memory");
    } else if constexpr (bytes == 4) {
        asm volatile(
            "{\n.reg .pred has;\nsetp.ne.s32 has, %2, 0;\n"
            "@has ld.global" L2_KEPT ".u32 %0, [%1]" L2_OPERAND(3) ";\n}"
            : "+r"(word)
            : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(has)) L2_POLICY
            : "memory");
    } else {
        if (has) v = load_once<N>(p);
    }
}

/// As `store` where `has`.
template <int N, class T>
__device__ __forceinline__ void store_if(bool has, T* p, const Vec<T, N>& v) {
    constexpr int bytes = sizeof(T) * N;
    const auto& word = reinterpret_cast<const Word<bytes>&>(v);
    if constexpr (bytes == 16) {
        asm volatile(
            "{\n.reg .pred has;\nsetp.ne.s32 has, %5, 0;\n@has st.global.v4.u32 [%4], {%0, %1, %2, %3};\n}" ::"r"(
                word.x),
            "r"(word.y), "r"(word.z), "r"(word.w), "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(has))
            : "memory");
    } else if constexpr (bytes == 8) {
        asm volatile(
            "{\n.reg .pred has;\nsetp.ne.s32 has, %3, 0;\n@has st.global.v2.u32 [%2], {%0, %1};\n}" ::"r"(word.x),
            "r"(word.y), "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(has))
            : "memory");
    } else if constexpr (bytes == 4) {
        asm volatile("{\n.reg .pred has;\nsetp.ne.s32 has, %2, 0;\n@has st.global.u32 [%1], %0;\n}" ::"r"(word),
                     "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(has))
                     : "memory");
    } else {
        if (has) store(p, v);
    }
}

/// As `load_anywhere` where `has`; elsewhere `v` stays.
template <int N, class T>
__device__ __forceinline__ void load_anywhere_if(bool has, Vec<T, N>& v, const T* p, bool aligned) {
    if (aligned)
        load_once_if(has, v, p);
    else if (has)
        v = load_anywhere<N>(p, false);
}
/// As `store_if` of the floats rounded, at `p`, which need not be aligned unless `aligned` says so.
template <class T, int N>
__device__ __forceinline__ void store_anywhere_if(bool has, T* p, const float (&x)[N], bool aligned) {
    if (aligned)
        store_if(has, p, from_floats<T>(x));
    else if (has)
        store_anywhere(p, x, false);
}

/// Whether `load_shared_row` may take its vectors whole.
template <int N, class T>
__device__ __forceinline__ bool is_aligned_for(const T* p) {
    return reinterpret_cast<unsigned long long>(p) % (N * sizeof(T) > 16 ? 16 : N * sizeof(T)) == 0;
}

/// Says packed elements in another way in each PASS, `zero` being 0 in a way that no compiler can know. Otherwise ptxas
/// finds the floats of one pass in the next and keeps those, in twice the registers.
template <int PASS, class T, int N>
__device__ __forceinline__ void restate(Vec<T, N>& v, unsigned zero) {
    if constexpr (sizeof(T) * N >= 4 && sizeof(T) == 2) {
#pragma unroll
        for (int i = 0; i < static_cast<int>(sizeof v / 4); ++i) {
            unsigned& word = reinterpret_cast<unsigned*>(&v)[i];
            word = PASS % 2 == 1 ? word ^ zero : word + zero;
        }
    }
}

/// As `load_readonly` where `has`; elsewhere `v` stays.
template <int N, class T>
__device__ __forceinline__ void load_readonly_if(bool has, Vec<T, N>& v, const T* p) {
    constexpr int bytes = sizeof(T) * N;
    auto& word = reinterpret_cast<Word<bytes>&>(v);
    if constexpr (bytes == 16) {
        asm volatile("{\n.reg .pred has;\nsetp.ne.s32 has, %5, 0;\n@has ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
                     : "+r"(word.x), "+r"(word.y), "+r"(word.z), "+r"(word.w)
                     : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(has)));
    } else if constexpr (bytes == 8) {
        asm volatile("{\n.reg .pred has;\nsetp.ne.s32 has, %3, 0;\n@has ld.global.nc.v2.u32 {%0, %1}, [%2];\n}"
                     : "+r"(word.x), "+r"(word.y)
                     : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(has)));
    } else if constexpr (bytes == 4) {
        asm volatile("{\n.reg .pred has;\nsetp.ne.s32 has, %2, 0;\n@has ld.global.nc.u32 %0, [%1];\n}"
                     : "+r"(word)
                     : "l"(__cvta_generic_to_global(p)), "r"(static_cast<int>(has)));
    } else {
        if (has) v = load_readonly<N>(p);
    }
}

/// Loads what a thread has of a row that it holds, `fill` where the row has ended. All loads are issued before the
/// first is used.
template <class T, int VEC, int CHUNKS, int LANES, bool RAGGED, int CLUSTER>
__device__ __forceinline__ void load_row(Vec<T, VEC> (&raw)[CHUNKS], float& single, const T* row,
                                         const RowPart<LANES, VEC, CHUNKS, RAGGED, CLUSTER>& part, float fill) {
    single = fill;
    if (RAGGED && part.has_single) single = to_float(row[part.single]);
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        raw[i] = splat<T, VEC>(fill);
        load_once_if(part.has(i), raw[i], row + part.column(i));
    }
}

/// The maximum of what a thread holds of a row of logits, and the sum of the exponentials below it.
template <bool RAGGED, class T, int VEC, int CHUNKS>
__device__ __forceinline__ MaxSum exps_of(Vec<T, VEC> (&raw)[CHUNKS], float single, unsigned zero) {
    MaxSum mine{single, 0.0f};
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) mine.max = greatest(mine.max, raw[i]);
    const ExpBelow below{mine.max};
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        float value[VEC];
        restate<1>(raw[i], zero);
        to_floats(raw[i], value);
#pragma unroll
        for (int j = 0; j < VEC; ++j) mine.sum += below.of(value[j]);
    }
    if (RAGGED) mine.sum += below.of(single);
    mine.sum *= below.correction;
    return mine;
}

/// The gradient of one element of a softmax, or of its LOGARITHM, whose result is y, given its row's sum: of y * dy, or
/// of dy.
template <bool LOGARITHM>
__device__ __forceinline__ float softmax_gradient(float y, float dy, float sum) {
    return LOGARITHM ? dy - exp_natural(y) * sum : y * (dy - sum);
}

/// Where `has`, N elements that many rows share, as floats; where they are wider than a load, as several. They are
/// loaded where the call stands: moved before a barrier, they would hold their registers across it.
template <int N, class T>
__device__ __forceinline__ void load_shared_row(bool has, float (&x)[N], const T* p, bool aligned) {
    constexpr int n = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    if (aligned) {
#pragma unroll
        for (int i = 0; i < N; i += n) {
            Vec<T, n> v = splat<T, n>(0.0f);
            load_readonly_if(has, v, p + i);
            float part[n];
            to_floats(v, part);
#pragma unroll
            for (int j = 0; j < n; ++j) x[i + j] = part[j];
        }
    } else {
#pragma unroll
        for (int j = 0; j < N; ++j) x[j] = has ? to_float(p[j]) : 0.0f;
    }
}

// ---- Clusters. Their blocks meet before the first remote write, as it needs them all to run, with nothing to hand
// over: a release waits for all that a thread has under way in memory.

template <int CLUSTER>
__device__ __forceinline__ void cluster_begin() {
#if __CUDA_ARCH__ >= 900
    if constexpr (CLUSTER > 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
template <int CLUSTER>
__device__ __forceinline__ void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
    if constexpr (CLUSTER > 1) asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
template <int CLUSTER>
__device__ __forceinline__ void cluster_wait() {
#if __CUDA_ARCH__ >= 900
    if constexpr (CLUSTER > 1) asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/// Writes `value` to where `slot` lies in the shared memory of block `rank` of the cluster.
template <class Value>
__device__ __forceinline__ void store_remote(Value* slot, int rank, const Value& value) {
#if __CUDA_ARCH__ >= 900
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(static_cast<unsigned>(__cvta_generic_to_shared(slot))), "r"(rank));
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(Value) / 4); ++i)
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address + 4 * i),
                     "r"(reinterpret_cast<const unsigned*>(&value)[i])
                     : "memory");
#endif
}

// ---- Values that the blocks of a cluster exchange row by row, while stores and copies of rows are under way: sent by
// bulk copies, which an mbarrier counts, as a cluster's barrier would wait for those too.

template <int CLUSTER>
struct Exchange {
    uint4 mine[2], peers[2][CLUSTER];  // in turns
    unsigned long long arrived[2];
};

#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ unsigned at_rank(const void* p, int rank) {
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(static_cast<unsigned>(__cvta_generic_to_shared(p))), "r"(rank));
    return address;
}
#endif

/// Called by all threads at a kernel's start; and `close_exchanges` in the end, so that no block goes while another
/// writes to it.
template <int CLUSTER, int COUNT>
__device__ __forceinline__ void open_exchanges(Exchange<CLUSTER> (&exchanges)[COUNT]) {
#if __CUDA_ARCH__ >= 900
    if constexpr (CLUSTER > 1) {
        if (threadIdx.x == 0) {
            for (int k = 0; k < 2 * COUNT; ++k)
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(
                                 static_cast<unsigned>(__cvta_generic_to_shared(&exchanges[k / 2].arrived[k % 2])))
                             : "memory");
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        cluster_begin<CLUSTER>();
        cluster_wait<CLUSTER>();
    }
#endif
}
template <int CLUSTER>
__device__ __forceinline__ void close_exchanges() {
    cluster_begin<CLUSTER>();
    cluster_wait<CLUSTER>();
}

/// The `value` of each block of the cluster, by thread modulo CLUSTER; `round` counts the calls.
template <int CLUSTER, class Value>
__device__ __forceinline__ Value exchanged(Exchange<CLUSTER>& exchange, const Value& value, int rank, int round) {
    static_assert(sizeof(Value) <= 16, "a value is one copy");
    const int turn = round % 2;
#if __CUDA_ARCH__ >= 900
    const unsigned arrived = static_cast<unsigned>(__cvta_generic_to_shared(&exchange.arrived[turn]));
    if (threadIdx.x == 0) {
        uint4 words{};
        reinterpret_cast<Value&>(words) = value;
        exchange.mine[turn] = words;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(arrived), "r"(16 * CLUSTER)
                     : "memory");
#pragma unroll
        for (int to = 0; to < CLUSTER; ++to)
            asm volatile(
                "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];" ::"r"(
                    at_rank(&exchange.peers[turn][rank], to)),
                "r"(static_cast<unsigned>(__cvta_generic_to_shared(&exchange.mine[turn]))),
                "r"(at_rank(&exchange.arrived[turn], to))
                : "memory");
    }
    unsigned done = 0;
    while (done == 0)
        asm volatile(
            "{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\nselp.u32 %0, 1, 0, done;\n}"
            : "=r"(done)
            : "r"(arrived), "r"(round / 2 % 2)
            : "memory");
#endif
    return reinterpret_cast<const Value&>(exchange.peers[turn][threadIdx.x % CLUSTER]);
}

// ---- What the threads of a row agree on. `over<N>` combines over groups of N neighbouring lanes.

struct SumLanes {
    template <int N>
    static __device__ __forceinline__ float over(float x) {
        return warp_sum<N>(x);
    }
    template <int N>
    static __device__ __forceinline__ float2 over(float2 x) {
        return make_float2(warp_sum<N>(x.x), warp_sum<N>(x.y));
    }
};
/// NaN does not count.
struct MaxLanes {
    template <int N>
    static __device__ __forceinline__ float over(float x) {
        return warp_max<N>(x);
    }
};
/// Of magnitudes as bits: NaN is above all.
struct MaxBitsLanes {
    template <int N>
    static __device__ __forceinline__ unsigned over(unsigned x) {
        return warp_reduce<N>(x, [](unsigned a, unsigned b) { return a > b ? a : b; });
    }
};
struct MaxSumLanes {
    template <int N>
    static __device__ __forceinline__ MaxSum over(MaxSum x) {
        return warp_combine<N>(x);
    }
};
/// Of powers of 2.
struct BinaryMaxSumLanes {
    template <int N>
    static __device__ __forceinline__ MaxSum over(MaxSum x) {
        return warp_combine<N, true>(x);
    }
};
/// The maximum and the sum of exponentials of MaxSum, and a plain sum beside them.
struct MaxSumTotal {
    MaxSum exps;
    float total = 0.0f;
};
struct MaxSumTotalLanes {
    template <int N>
    static __device__ __forceinline__ MaxSumTotal over(MaxSumTotal x) {
        return {warp_combine<N>(x.exps), warp_sum<N>(x.total)};
    }
};

/// A barrier of the threads of row threadIdx.y of a block, which the others need not reach. Its number is a constant,
/// as a computed one would take all 16 that a block may have.
template <int LANES, int ROWS, int ROW = 0>
__device__ __forceinline__ void barrier_of_row() {
    static_assert(ROWS < 16, "__syncthreads takes one of a block's 16 barriers");
    if constexpr (ROWS == 1) {
        __syncthreads();
    } else if constexpr (ROW < ROWS) {
        if (threadIdx.y == ROW)
            asm volatile("bar.sync %0, %1;" ::"n"(ROW + 1), "n"(LANES) : "memory");
        else
            barrier_of_row<LANES, ROWS, ROW + 1>();
    }
}

/// `value` combined over all threads of a row; each of them gets it. USE tells the calls of a kernel apart, from 0 in
/// their order: each has its own slots, so there is one barrier a call. A call in a loop has TURNS 2, and says which
/// `turn` it is, and where a cluster's values are exchanged. APART: the rows of a block do not call it at the same
/// time.
template <int LANES, int ROWS, int CLUSTER, int USE, class Lanes, int TURNS = 1, bool APART = false, class Value>
__device__ __forceinline__ Value row_reduce(Value value, int rank = 0, int turn = 0,
                                            Exchange<CLUSTER>* exchange = nullptr) {
    constexpr int width = LANES < 32 ? LANES : 32;
    constexpr int warps = LANES / width;
    value = Lanes::template over<width>(value);
    if constexpr (warps > 1) {
        __shared__ Value slots[TURNS][ROWS][warps];
        if (threadIdx.x % 32 == 0) slots[turn % TURNS][threadIdx.y][threadIdx.x / 32] = value;
        if constexpr (APART)
            barrier_of_row<LANES, ROWS>();
        else
            __syncthreads();
        value = Lanes::template over<warps>(slots[turn % TURNS][threadIdx.y][threadIdx.x % warps]);
    }
    if constexpr (CLUSTER > 1 && TURNS > 1) {
        value = Lanes::template over<CLUSTER>(exchanged(*exchange, value, rank, turn));
    } else if constexpr (CLUSTER > 1) {
        __shared__ Value peers[CLUSTER];
        if constexpr (USE == 0) cluster_wait<CLUSTER>();
        if (threadIdx.x < CLUSTER) store_remote(&peers[rank], threadIdx.x, value);
        cluster_arrive<CLUSTER>();
        cluster_wait<CLUSTER>();
        value = Lanes::template over<CLUSTER>(peers[threadIdx.x % CLUSTER]);
    }
    return value;
}

#endif
