// quantise, a group of any size read twice: q = x / scale rounded, scale = the group's largest magnitude / the limit
//
// x        T, [groups, size], packed, aligned anyhow: a group is what shares a scale
// q        bytes, [groups, size], or half as many for int4; scale: float, [groups]
// partial  float, [groups, parts]
// launch   quantise_amax   grid = groups * parts, block = THREADS
//          quantise_apply  grid = groups * ceil(size / (THREADS * VEC * UNROLL)), block = THREADS
// needs    size % VEC == 0
#include "narrow.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef FORMAT
#define FORMAT e4m3
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef UNROLL
#define UNROLL 4  // loads in flight
#endif
#ifndef ALIGNED
#define ALIGNED 1  // 1: groups of x are aligned to VEC elements, and those of q to what becomes of them
#endif

constexpr Format format = Format::FORMAT;
constexpr int warps = THREADS / 32;
constexpr int step = THREADS * VEC;

__device__ __forceinline__ float block_max(float mine) {
    __shared__ float slots[warps];
    mine = warp_max(mine);
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = mine;
    __syncthreads();
    return warp_max<warps>(slots[threadIdx.x % warps]);
}

// 1. The largest magnitude of each part, which is a block's tiles, far apart: blocks go through a group from its start
// to its end together.
extern "C" __global__ void __launch_bounds__(THREADS)
    quantise_amax(const T* x, float* partial, long long size, int parts) {
    const long long group = blockIdx.x / parts;
    const int part = static_cast<int>(blockIdx.x % parts);
    x += group * size;
    Magnitude<T, VEC> mine;
    for (long long c = static_cast<long long>(part) * (UNROLL * step) + threadIdx.x * VEC; c < size;
         c += static_cast<long long>(parts) * (UNROLL * step)) {
        Vec<T, VEC> raw[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            raw[i] = splat<T, VEC>(0.0f);
            if (c + i * step < size) raw[i] = load_anywhere<VEC>(x + c + i * step, ALIGNED);
        }
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) mine.take(raw[i]);
    }
    const float amax = block_max(mine.value());
    if (threadIdx.x == 0) partial[blockIdx.x] = amax;
}

// 2. The group's scale from its parts, again in each block. What was read last is in the cache still, so blocks go from
// the end.
extern "C" __global__ void __launch_bounds__(THREADS)
    quantise_apply(const T* x, unsigned char* q, float* scale, const float* partial, long long size, int parts) {
    const unsigned block = gridDim.x - 1 - blockIdx.x;
    const unsigned pieces = static_cast<unsigned>((size + step * UNROLL - 1) / (step * UNROLL));
    const long long group = block / pieces, first = static_cast<long long>(block % pieces) * (step * UNROLL);
    x += group * size + first;
    q += (group * size + first) * bits_of<format> / 8;
    const int length = static_cast<int>(min(static_cast<long long>(step * UNROLL), size - first));
    Vec<T, VEC> raw[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        const int c = i * step + static_cast<int>(threadIdx.x) * VEC;
        if (c < length) raw[i] = load_anywhere<VEC>(x + c, ALIGNED);
    }
    float amax = 0.0f;
    for (int p = static_cast<int>(threadIdx.x); p < parts; p += THREADS) amax = fmaxf(amax, partial[group * parts + p]);
    const float divisor = scale_of<format>(block_max(amax));
    if (threadIdx.x == 0 && first == 0) scale[group] = divisor;
    const float factor = factor_of(divisor);
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        const int c = i * step + static_cast<int>(threadIdx.x) * VEC;
        if (c >= length) break;
        float value[VEC];
        to_floats(raw[i], value);
#pragma unroll
        for (int j = 0; j < VEC; ++j) value[j] *= factor;
        store_anywhere(q + c * bits_of<format> / 8, narrowed<format>(value), ALIGNED);
    }
}
