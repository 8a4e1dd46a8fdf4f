// softmax, a row held in registers: y[r, c] = exp(x[r, c] - max_r) / sum_k exp(x[r, k] - max_r)
//
// Each row is read once and written once; LANES threads hold it, from a part of a warp to a cluster of blocks.
// x, y    T, row-major [rows, cols], ldx and ldy elements from row to row; y may be x
// launch  grid = CLUSTER * ceil(rows / ROWS), block = (LANES, ROWS), cluster = CLUSTER, no dynamic shared memory
// needs   cols <= CLUSTER * LANES * CHUNKS * VEC; LANES a power of two, LANES * ROWS a multiple of a warp;
//         RAGGED: LANES >= 2 * VEC, else cols % VEC == 0 and rows aligned to VEC elements;
//         CLUSTER > 1: sm_90, LANES > 32, ROWS == 1 and ONLINE
// source  threads a row, row in registers, clusters for long rows: Dao-AILab/quack; the pair of maximum and sum:
//         Milakov & Gimelshein 2018
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef LANES
#define LANES 128  // threads a row and block
#endif
#ifndef ROWS
#define ROWS 1  // rows a block
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef CHUNKS
#define CHUNKS 4  // loads a thread
#endif
#ifndef RAGGED
#define RAGGED 0  // 1: rows start and end anywhere, and up to 2 * VEC - 2 elements outside of whole vectors go singly
#endif
#ifndef ONLINE
#define ONLINE (LANES > 32)  // 1: one exchange of (max, sum) pairs; 0: one of maxima, then one of sums
#endif
#ifndef PACKED
#define PACKED 0  // 1: keep elements as loaded and take each exp twice; 0: keep the exponentials as floats
#endif
#ifndef BLOCKS
#define BLOCKS 1  // blocks that shall fit a multiprocessor: bounds the registers of a thread
#endif
#ifndef CLUSTER
#define CLUSTER 1  // blocks a row
#endif

constexpr int warp_lanes = LANES < 32 ? LANES : 32;
constexpr int warps = LANES / warp_lanes;  // a row and block

#if CLUSTER > 1
__device__ __forceinline__ void cluster_begin() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

/// Writes `value` to where `slot` lies in the shared memory of block `rank` of the cluster.
__device__ __forceinline__ void store_remote(MaxSum* slot, int rank, MaxSum value) {
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(static_cast<unsigned>(__cvta_generic_to_shared(slot))), "r"(rank));
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(value.max), "f"(value.sum) : "memory");
}
#endif

/// For PACKED: says v in another way in each PASS, `zero` being 0 in a way that no compiler can know. Otherwise ptxas
/// finds the floats of one pass in the next and keeps those, in twice the registers.
template <int PASS>
__device__ __forceinline__ void restate(Vec<T, VEC>& v, unsigned zero) {
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof v / 4); ++i) {
        unsigned& word = reinterpret_cast<unsigned*>(&v)[i];
        word = PASS == 1 ? word ^ zero : word + zero;
    }
}

/// `value` combined over the threads of a row; `slots` holds one value a warp and serves one call.
template <class Value, class Combine>
__device__ __forceinline__ Value row_reduce(Value value, Value* slots, Combine combine) {
    if constexpr (warps > 1) {
        if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = value;
        __syncthreads();
        value = combine(slots[threadIdx.x % warps]);
    }
    return value;
}

extern "C" __global__ void __launch_bounds__(LANES* ROWS, BLOCKS)
    softmax_rows(const T* x, T* y, long long rows, int cols, long long ldx, long long ldy) {
#if CLUSTER > 1
    cluster_begin();  // met again before the first remote write: by then the block written to is running
#endif
    const int rank = blockIdx.x % CLUSTER;
    const long long row = static_cast<long long>(blockIdx.x / CLUSTER) * ROWS + threadIdx.y;
    int width = row < rows ? cols : 0;  // a row beyond the last has no columns, but meets the barriers
    const auto column = [rank](int i) { return ((i * CLUSTER + rank) * LANES + static_cast<int>(threadIdx.x)) * VEC; };
    const unsigned zero = cols >> 31;
    x += row * ldx;
    y += row * ldy;

    // 1. All loads are issued before the first is used; -inf stands where the row has ended. What is outside of whole
    //    vectors goes one element a thread, all by the first block of the row.
    float single = minus_infinity;
    int single_column = 0;  // counted from the first whole vector
    bool has_single = false;
    bool y_aligned = true;
    if constexpr (RAGGED) {
        const RowParts parts = row_parts<VEC>(x, width);
        x += parts.head;
        y += parts.head;
        width = parts.body;
        y_aligned = is_aligned<VEC>(y);
        const int t = static_cast<int>(threadIdx.x);
        has_single = rank == 0 && t < parts.head + parts.tail;
        single_column = t < parts.head ? t - parts.head : parts.body + t - parts.head;
        if (has_single) single = to_float(x[single_column]);
    }
    Vec<T, VEC> raw[CHUNKS];
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        raw[i] = splat<T, VEC>(minus_infinity);
        if (column(i) < width) raw[i] = load_once<VEC>(x + column(i));
    }

    // 2. The maximum: of this thread's elements, or of the row.
    float max = single;
    float exps[PACKED ? 1 : CHUNKS][VEC];
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        float(&value)[VEC] = exps[PACKED ? 0 : i];
        to_floats(raw[i], value);
#pragma unroll
        for (int j = 0; j < VEC; ++j) max = fmaxf(max, value[j]);
    }
    if constexpr (!ONLINE) {
        __shared__ float slots[ROWS][warps];
        max = row_reduce(warp_max<warp_lanes>(max), slots[threadIdx.y], [](float m) { return warp_max<warps>(m); });
    }

    // 3. The exponentials below it and their sum.
    if constexpr (RAGGED) single = exp_natural(single - pivot(max));
    float sum = RAGGED ? single : 0.0f;
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        float(&value)[VEC] = exps[PACKED ? 0 : i];
        if constexpr (PACKED) {
            restate<1>(raw[i], zero);
            to_floats(raw[i], value);
        }
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            value[j] = exp_natural(value[j] - pivot(max));
            sum += value[j];
        }
    }

    // 4. The row's maximum and sum, and the factor from this thread's exponentials to the results.
    float scale = 1.0f;
    if constexpr (ONLINE) {
        __shared__ MaxSum slots[ROWS][warps];
        MaxSum total = row_reduce(warp_combine<warp_lanes>({max, sum}), slots[threadIdx.y],
                                  [](MaxSum m) { return warp_combine<warps>(m); });
#if CLUSTER > 1
        __shared__ MaxSum peers[CLUSTER];
        cluster_wait();
        if (threadIdx.x < CLUSTER) store_remote(&peers[rank], threadIdx.x, total);
        cluster_arrive();
        cluster_wait();
        total = warp_combine<CLUSTER>(peers[threadIdx.x % CLUSTER]);
#endif
        const float ratio = exp_natural(max - pivot(total.max));
        if constexpr (!PACKED) scale = ratio;
        if constexpr (RAGGED && PACKED) single *= ratio;
        max = total.max;
        sum = total.sum;
    } else {
        __shared__ float slots[ROWS][warps];
        sum = row_reduce(warp_sum<warp_lanes>(sum), slots[threadIdx.y], [](float s) { return warp_sum<warps>(s); });
    }
    scale *= 1.0f / sum;

    // 5. Normalise and store.
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        float(&value)[VEC] = exps[PACKED ? 0 : i];
        if constexpr (PACKED) {
            restate<2>(raw[i], zero);
            to_floats(raw[i], value);
        }
#pragma unroll
        for (int j = 0; j < VEC; ++j) value[j] = (PACKED ? exp_natural(value[j] - pivot(max)) : value[j]) * scale;
        if (column(i) < width) store_once_anywhere(y + column(i), value, !RAGGED || y_aligned);
    }
    if (has_single) y[single_column] = from_float<T>(single * scale);
}
