// quantise, a group held in registers: q = x / scale rounded, scale = the group's largest magnitude / the limit
//
// x        T, [groups, size], packed, aligned anyhow: a group is what shares a scale
// q        bytes, [groups, size], or half as many for int4; scale: float, [groups]
// launch   grid = ceil(groups / ROWS), block = (LANES, ROWS), no dynamic shared memory
// needs    size % VEC == 0 and size <= LANES * CHUNKS * VEC; LANES a power of two, LANES * ROWS a multiple of a warp
#include "narrow.cuh"
#include "rows.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef FORMAT
#define FORMAT e4m3
#endif
#ifndef LANES
#define LANES 16  // threads a group
#endif
#ifndef ROWS
#define ROWS 16  // groups a block
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef CHUNKS
#define CHUNKS 1  // loads a thread
#endif
#ifndef ALIGNED
#define ALIGNED 1  // 1: groups of x are aligned to VEC elements, and those of q to what becomes of them
#endif

constexpr Format format = Format::FORMAT;

extern "C" __global__ void __launch_bounds__(LANES* ROWS)
    quantise_held(const T* x, unsigned char* q, float* scale, long long groups, int size) {
    const long long group = static_cast<long long>(blockIdx.x) * ROWS + threadIdx.y;
    const int width = group < groups ? size : 0;
    x += group * size;
    q += group * size * bits_of<format> / 8;

    // 1. All loads are issued before the first is used.
    Vec<T, VEC> raw[CHUNKS];
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        const int c = (i * LANES + static_cast<int>(threadIdx.x)) * VEC;
        raw[i] = splat<T, VEC>(0.0f);
        if (c < width) raw[i] = load_anywhere<VEC>(x + c, ALIGNED);
    }

    // 2. The group's scale.
    Magnitude<T, VEC> mine;
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) mine.take(raw[i]);
    const float amax = row_reduce<LANES, ROWS, 1, 0, MaxLanes>(mine.value());
    const float divisor = scale_of<format>(amax);
    if (threadIdx.x == 0 && width > 0) scale[group] = divisor;
    const float factor = factor_of(divisor);

    // 3. Scale, round and store.
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
        const int c = (i * LANES + static_cast<int>(threadIdx.x)) * VEC;
        float value[VEC];
        to_floats(raw[i], value);
#pragma unroll
        for (int j = 0; j < VEC; ++j) value[j] *= factor;
        if (c < width) store_anywhere(q + c * bits_of<format> / 8, narrowed<format>(value), ALIGNED);
    }
}
