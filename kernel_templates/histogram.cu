// histogram: counts[b] = how many of x fall into bin b
//
// x        T, [n], aligned anyhow; a whole number is its own bin, a float's is floor((x - low) * (bins / (high - low)))
//          where low <= x <= high, with high in the last bin; what has no bin is not counted, NaN neither
// counts   long long, [bins]; partial: unsigned, [parts, bins]
// launch   histogram_parts   grid = parts * ranges, block = THREADS, (range + 1) * COPIES * 4 bytes of dynamic shared
//                            memory: the blocks of a part each count `range` of the bins, at most 2^22. Bytes that one
//                            block counts have a range of at least 256, whatever the bins
//          histogram_sum     grid = ceil(bins / 32), block = (32, 32)
//          histogram_clear   grid = ceil(bins / 256), block = 256
//          histogram_global  grid = parts, block = THREADS: atomics in global memory, for bins that fit no block
// needs    COPIES a power of two up to 32; part < 2^31 - THREADS * VEC * UNROLL
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T float
#endif
#ifndef THREADS
#define THREADS 512
#endif
#ifndef VEC
#define VEC 4  // elements a load
#endif
#ifndef UNROLL
#define UNROLL 4  // loads in flight
#endif
#ifndef COPIES
#define COPIES 8  // counters a bin: neighbouring lanes count apart
#endif

constexpr int step = THREADS * VEC;

struct Bins {
    int count;
    float low, high, factor;
};

__device__ __forceinline__ Bins make_bins(int count, float low, float high) {
    return {count, low, high, __fdiv_rn(static_cast<float>(count), __fsub_rn(high, low))};
}

/// Below bins.count, or at least 2^31 where x has none.
template <class X>
__device__ __forceinline__ unsigned bin_of(X x, const Bins& bins) {
    const float value = to_float(x);
    if (!(value >= bins.low && value <= bins.high)) return ~0u;
    return static_cast<unsigned>(
        min(static_cast<int>(__fmul_rn(__fsub_rn(value, bins.low), bins.factor)), bins.count - 1));
}
__device__ __forceinline__ unsigned bin_of(unsigned char x, const Bins&) { return x; }
__device__ __forceinline__ unsigned bin_of(int x, const Bins&) { return static_cast<unsigned>(x); }

/// Its bin less `base`, or more than `width` where that is not its: a float of the last bin may be given one beyond.
/// The sum with 2^23, rounded towards zero, has the whole part in its low bits; what is negative, or NaN, gives more.
template <class X>
__device__ __forceinline__ unsigned slot_of(X x, const Bins& bins, unsigned base) {
    const float value = to_float(x);
    const float whole = __fadd_rz(__fmul_rn(__fsub_rn(value, bins.low), bins.factor), 8388608.0f);
    return value <= bins.high ? __float_as_uint(whole) - (0x4b000000u + base) : ~0u;
}
__device__ __forceinline__ unsigned slot_of(unsigned char x, const Bins&, unsigned base) { return x - base; }
__device__ __forceinline__ unsigned slot_of(int x, const Bins&, unsigned base) { return x - base; }
template <class X>
constexpr bool may_be_beyond = true;
template <>
constexpr bool may_be_beyond<unsigned char> = false;
template <>
constexpr bool may_be_beyond<int> = false;

/// Calls count(element) for each of a part.
template <class Count>
__device__ __forceinline__ void each_element(const T* x, int length, Count count) {
    const RowParts parts = row_parts<VEC>(x, length);
    const T* const body = x + parts.head;
    const int t = static_cast<int>(threadIdx.x);
    if (t < parts.head) count(x[t]);
    if (t < parts.tail) count(body[parts.body + t]);
    for (int c = t * VEC; c < parts.body; c += UNROLL * step) {
        Vec<T, VEC> raw[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i)
            if (c + i * step < parts.body) raw[i] = load_once<VEC>(body + c + i * step);
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            if (c + i * step >= parts.body) break;
#pragma unroll
            for (int j = 0; j < VEC; ++j) count(raw[i].lane[j]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    histogram_parts(const T* x, unsigned* partial, long long n, long long part, int bin_count, int range, int ranges,
                    float low, float high) {
    extern __shared__ unsigned counters[];
    const unsigned base = blockIdx.x % ranges * range;
    const unsigned width = min(static_cast<unsigned>(range), bin_count - base);
    for (unsigned i = threadIdx.x; i < static_cast<unsigned>(range + 1) * COPIES; i += THREADS) counters[i] = 0;
    __syncthreads();
    const unsigned number = blockIdx.x / ranges, copy = threadIdx.x % COPIES;
    const long long first = number * part;
    const int length = static_cast<int>(min(part, n - first));
    const Bins bins = make_bins(bin_count, low, high);
    unsigned* const mine = counters + copy;
    if (sizeof(T) == 1 && range >= 256) {
        each_element(x + first, length, [&](T x) { atomicAdd(mine + slot_of(x, bins, 0) * COPIES, 1u); });
    } else {
        each_element(x + first, length, [&](T x) {
            const unsigned slot = slot_of(x, bins, base);
            if (slot < width + may_be_beyond<T>) atomicAdd(mine + slot * COPIES, 1u);
        });
    }
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < width; bin += THREADS) {
        unsigned sum = 0;
        // Threads start at different copies, which lie in different banks.
#pragma unroll
        for (int i = 0; i < COPIES; ++i) sum += counters[bin * COPIES + (i + threadIdx.x) % COPIES];
        if (may_be_beyond<T> && base + bin + 1 == static_cast<unsigned>(bin_count))
            for (int i = 0; i < COPIES; ++i) sum += counters[(bin + 1) * COPIES + i];
        partial[static_cast<long long>(number) * bin_count + base + bin] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(1024)
    histogram_sum(const unsigned* partial, long long* counts, int parts, int bin_count) {
    __shared__ long long slots[32][33];
    const int bin = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
    long long sum = 0;
    if (bin < bin_count) {
#pragma unroll 8
        for (int p = static_cast<int>(threadIdx.y); p < parts; p += 32)
            sum += partial[static_cast<long long>(p) * bin_count + bin];
    }
    slots[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = warp_reduce(slots[threadIdx.x][threadIdx.y], [](long long a, long long b) { return a + b; });
    const int mine = static_cast<int>(blockIdx.x * 32 + threadIdx.y);
    if (threadIdx.x == 0 && mine < bin_count) counts[mine] = sum;
}

extern "C" __global__ void __launch_bounds__(256) histogram_clear(long long* counts, int bin_count) {
    const int bin = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
    if (bin < bin_count) counts[bin] = 0;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    histogram_global(const T* x, unsigned long long* counts, long long n, long long part, int bin_count, float low,
                     float high) {
    const long long first = blockIdx.x * part;
    const unsigned all = static_cast<unsigned>(bin_count);
    const Bins bins = make_bins(bin_count, low, high);
    each_element(x + first, static_cast<int>(min(part, n - first)), [&](T x) {
        const unsigned bin = bin_of(x, bins);
        if (bin < all) atomicAdd(counts + bin, 1ull);
    });
}
