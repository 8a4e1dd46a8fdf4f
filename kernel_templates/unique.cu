// unique: of a sorted x, one of each run of equal elements, in their order, and how many these are
//
// x        T, [n], sorted: equal elements are neighbours; -0 equals 0, and NaN NaN
// y        T, [n]: the first counts[0] are written, the rest is left alone; counts: long long, [1]
// launch   unique        grid = tiles = ceil(n / (THREADS * VEC * UNROLL)), block = THREADS, a tile of dynamic shared
//                        memory; words: as of a row of RowWords: a tile waits for those before it
//          unique_pack   the same without these: what starts a run of a tile goes to its place in parts: T,
//                        [tiles * tile], and how many these are to part_counts: unsigned, [tiles]
//          unique_place  grid = ceil(tiles / (THREADS / 32)), block = THREADS: from parts to y, a warp a tile
// needs    x aligned to VEC elements, VEC * UNROLL <= 32
//
// A thread holds its elements in registers, and which of them start a run as bits of one word. What starts a run is
// packed in shared memory, so that stores are of neighbours.
#include "tiles.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T int
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef VEC
#define VEC 4  // elements a load
#endif
#ifndef UNROLL
#define UNROLL 8  // loads a thread
#endif

using Element = T;  // which may be of two words

constexpr int warps = THREADS / 32;
constexpr int tile_size = THREADS * VEC * UNROLL;

template <class X>
__device__ __forceinline__ bool same(X a, X b) {
    const float one = to_float(a), other = to_float(b);
    return one == other || (one != one && other != other);
}
__device__ __forceinline__ bool same(int a, int b) { return a == b; }
__device__ __forceinline__ bool same(long long a, long long b) { return a == b; }

/// `x` of another lane.
template <class X>
__device__ __forceinline__ X from_lane(X x, int lane) {
    if constexpr (sizeof(X) == 2) {
        const unsigned short bits = reinterpret_cast<const unsigned short&>(x);
        const unsigned short other =
            static_cast<unsigned short>(__shfl_sync(all_lanes, static_cast<unsigned>(bits), lane));
        return reinterpret_cast<const X&>(other);
    } else {
        return __shfl_sync(all_lanes, x, lane);
    }
}

/// Counts of vectors of a warp, of which a word holds several: they are added over lanes together.
constexpr int bits_of_count = VEC < 8 ? 8 : 16, together = 32 / bits_of_count;
constexpr int words = (UNROLL + together - 1) / together;

/// Packs what starts a run of the block's tile; how many these are. No barrier after.
__device__ __forceinline__ unsigned pack_tile(const T* x, long long n, T* packed_tile) {
    __shared__ unsigned slots[warps];
    const long long first = static_cast<long long>(blockIdx.x) * tile_size;
    const int length = static_cast<int>(min(static_cast<long long>(tile_size), n - first));
    const int lane = static_cast<int>(threadIdx.x % 32);
    x += first;

    // 1. The last lane has the element before the warp's, too.
    Vec<T, VEC> v[UNROLL];
    load_tile<VEC, UNROLL, false>(v, x, length);
    const int start = tile_column<VEC, UNROLL>(0) - lane * VEC;  // of the warp
    Element previous{};
    if (lane == 31 && start < length && first + start > 0) previous = x[start - 1];

    // 2. Which elements start a run.
    unsigned starts = 0;
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        const Element last = v[i].lane[VEC - 1];
        const Element left = from_lane(lane == 31 ? previous : last, (lane + 31) % 32);
        previous = last;
#pragma unroll
        for (int j = 0; j < VEC; ++j)
            if (!same(v[i].lane[j], j > 0 ? v[i].lane[j > 0 ? j - 1 : 0] : left)) starts |= 1u << (i * VEC + j);
    }
    if (first == 0 && threadIdx.x == 0) starts |= 1u;
    if (length < tile_size) {
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            const int room = min(VEC, max(0, length - tile_column<VEC, UNROLL>(i)));
            starts &= ~(((1u << VEC) - (1u << room)) << (i * VEC));
        }
    }

    // 3. How many do before each vector of the warp, before the warp, and before the tile.
    unsigned through[words], mine[words];
#pragma unroll
    for (int k = 0; k < words; ++k) {
        mine[k] = 0;
#pragma unroll
        for (int i = k * together; i < min(UNROLL, (k + 1) * together); ++i)
            mine[k] |= static_cast<unsigned>(__popc(starts >> (i * VEC) & ((1u << VEC) - 1)))
                       << (i % together * bits_of_count);
        through[k] = mine[k];
#pragma unroll
        for (int offset = 1; offset < 32; offset *= 2) {
            const unsigned other = __shfl_up_sync(all_lanes, through[k], offset);
            if (lane >= offset) through[k] += other;
        }
    }
    int before[UNROLL], so_far = 0;
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        constexpr unsigned mask = (1u << bits_of_count) - 1;
        const int k = i / together, shift = i % together * bits_of_count;
        before[i] = so_far + static_cast<int>((through[k] - mine[k]) >> shift & mask);
        so_far += static_cast<int>(__shfl_sync(all_lanes, through[k], 31) >> shift & mask);
    }
    const LaneScan<unsigned> in_tile = scan_warps<warps>(static_cast<unsigned>(so_far), slots);

    // 4. They are packed.
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        T* to = packed_tile + in_tile.before + before[i];
#pragma unroll
        for (int j = 0; j < VEC; ++j)
            if (starts >> (i * VEC + j) & 1) *to++ = v[i].lane[j];
    }
    return in_tile.all;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    unique(const T* x, T* y, long long* counts, long long n, Published* words) {
    extern __shared__ uint4 shared_words[];
    T* const packed_tile = reinterpret_cast<T*>(shared_words);
    const unsigned all = pack_tile(x, n, packed_tile);
    const unsigned long long below =
        before_tile(RowWords{words, gridDim.x, 0}, blockIdx.x, static_cast<unsigned long long>(all));
    y += below;
    for (unsigned k = threadIdx.x; k < all; k += THREADS) y[k] = packed_tile[k];
    if (threadIdx.x == 0 && blockIdx.x + 1 == gridDim.x) counts[0] = static_cast<long long>(below + all);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    unique_pack(const T* x, T* parts, unsigned* part_counts, long long n) {
    extern __shared__ uint4 shared_words[];
    T* const packed_tile = reinterpret_cast<T*>(shared_words);
    const unsigned all = pack_tile(x, n, packed_tile);
    __syncthreads();
    parts += static_cast<long long>(blockIdx.x) * tile_size;
    for (unsigned k = threadIdx.x; k < all; k += THREADS) parts[k] = packed_tile[k];
    if (threadIdx.x == 0) part_counts[blockIdx.x] = all;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    unique_place(const T* parts, const unsigned* part_counts, T* y, long long* counts, unsigned tiles) {
    __shared__ unsigned long long slots[warps];
    const unsigned first = blockIdx.x * warps, warp = threadIdx.x / 32, lane = threadIdx.x % 32, tile = first + warp;
    unsigned long long sum = 0;
#pragma unroll 8
    for (unsigned k = threadIdx.x; k < first; k += THREADS) sum += part_counts[k];
    sum = sum_of_lanes(sum);
    if (lane == 0) slots[warp] = sum;
    __syncthreads();
    if (tile >= tiles) return;
    unsigned long long below = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) below += slots[w];
    for (unsigned k = first; k < tile; ++k) below += part_counts[k];
    const unsigned all = part_counts[tile];
    parts += static_cast<long long>(tile) * tile_size;
    y += below;
#pragma unroll 4
    for (unsigned k = lane; k < all; k += 32) y[k] = parts[k];
    if (lane == 0 && tile + 1 == tiles) counts[0] = static_cast<long long>(below + all);
}
