// dequantise: y[r, c] = q[r, c] * scale of its group
//
// q        bytes, [rows, cols], or half as many for int4; y: T, [rows, cols]; both packed, aligned anyhow
// scale    float, scale[r * scales + c / block]
// launch   grid = ceil(rows / ROWS) * ceil(cols / (LANES * VEC * UNROLL)), block = (LANES, ROWS)
// needs    cols % VEC == 0 and block % VEC == 0
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
#ifndef LANES
#define LANES 256  // threads a row
#endif
#ifndef ROWS
#define ROWS 1  // rows a block
#endif
#ifndef VEC
#define VEC 8  // elements a load
#endif
#ifndef UNROLL
#define UNROLL 2  // loads in flight
#endif
#ifndef ALIGNED
#define ALIGNED 1  // 1: rows of q are aligned to VEC elements, and those of y to a store
#endif

constexpr Format format = Format::FORMAT;
constexpr int step = LANES * VEC;
constexpr int bytes = VEC * bits_of<format> / 8;
constexpr int piece = VEC * sizeof(T) > 16 ? 16 / sizeof(T) : VEC;  // elements a store

extern "C" __global__ void __launch_bounds__(LANES* ROWS)
    dequantise(const unsigned char* q, const float* scale, T* y, long long rows, long long cols, long long scales,
               unsigned long long block) {
    const unsigned pieces = static_cast<unsigned>((cols + step * UNROLL - 1) / (step * UNROLL));
    const long long row = static_cast<long long>(blockIdx.x / pieces) * ROWS + threadIdx.y;
    if (row >= rows) return;
    const long long first = static_cast<long long>(blockIdx.x % pieces) * (step * UNROLL) + threadIdx.x * VEC;
    q += (row * cols + first) * bits_of<format> / 8;
    y += row * cols + first;
    scale += row * scales;
    Vec<unsigned char, bytes> raw[UNROLL];
    float factor[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        if (first + i * step >= cols) break;
        raw[i] = load_anywhere<bytes>(q + i * step * bits_of<format> / 8, ALIGNED);
        const unsigned long long c = first + i * step;
        factor[i] = scale[c >> 32 ? c / block : static_cast<unsigned>(c) / static_cast<unsigned>(block)];
    }
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        if (first + i * step >= cols) break;
        float value[VEC];
        widened<format>(raw[i], value);
#pragma unroll
        for (int k = 0; k < VEC; k += piece) {
            float part[piece];
#pragma unroll
            for (int j = 0; j < piece; ++j) part[j] = value[k + j] * factor[i];
            store_anywhere(y + i * step + k, part, ALIGNED);
        }
    }
}
