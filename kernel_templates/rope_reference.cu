// rope in double: what stands in for the CPU reference where that would take seconds
//
// x                 T, [tokens, heads, DIM], ldx elements from token to token; of them `count` heads from `first` on
// value, magnitude  double, [tokens, count, DIM]: the result, and its error bound as tuner/references/rope.cpp derives
// it launch            grid = any, block = 256
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef CONVENTION
#define CONVENTION half
#endif

enum class Convention { half, interleaved };

extern "C" __global__ void __launch_bounds__(256)
    rope_reference(const T* x, double* value, double* magnitude, const long long* positions, const float* table,
                   long long tokens, int first, int count, int dim, int rot, long long ldx, float base, int turned) {
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < tokens * count * dim; i += gridDim.x * 256LL) {
        const long long token = i / dim / count;
        const int e = static_cast<int>(i % dim);
        const T* from = x + token * ldx + (first + i / dim % count) * dim;
        if (e >= rot || !turned) {
            value[i] = to_float(from[e]);
            magnitude[i] = fabs(value[i]);
            continue;
        }
        const bool half = Convention::CONVENTION == Convention::half;
        const int pair = half ? e % (rot / 2) : e / 2;
        const bool second = half ? e >= rot / 2 : e % 2 != 0;
        const double a = to_float(from[half ? pair : 2 * pair]),
                     b = to_float(from[half ? pair + rot / 2 : 2 * pair + 1]);
        const double angle = positions[token] * pow(static_cast<double>(base), -2.0 * pair / rot);
        const double cosine = table ? table[positions[token] * rot + pair] : cos(angle);
        const double sine = table ? table[positions[token] * rot + rot / 2 + pair] : sin(angle);
        value[i] = second ? b * cosine + a * sine : a * cosine - b * sine;
        magnitude[i] = 4 * (fabs(a) + fabs(b));
    }
}
