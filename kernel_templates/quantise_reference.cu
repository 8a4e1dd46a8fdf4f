// quantise in floats, as the rule says it: what stands in for the CPU reference where that would take seconds
//
// x                 T, [groups, size], packed
// q_value, q_magnitude  double, [groups, size], or half as many bytes for int4; scale_value, scale_magnitude: [groups]
// launch            quantise_reference_scale  grid = any, block = 256; a block takes a group at a time
//                   quantise_reference        grid = any, block = 256
#include "narrow.cuh"
#include "reference.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef FORMAT
#define FORMAT e4m3
#endif

constexpr Format format = Format::FORMAT;

extern "C" __global__ void __launch_bounds__(256)
    quantise_reference_scale(const T* x, double* value, double* magnitude, long long groups, long long size) {
    for (long long group = blockIdx.x; group < groups; group += gridDim.x) {
        float amax = 0.0f;
        for (long long c = threadIdx.x; c < size; c += 256) amax = fmaxf(amax, fabsf(to_float(x[group * size + c])));
        amax = block_combine(amax, [](float a, float b) { return fmaxf(a, b); });
        if (threadIdx.x == 0) value[group] = magnitude[group] = fmaxf(amax, 1.2621774e-29f) / limit_of<format>;
    }
}

/// The nearest number of the format, by the definition; ties to even.
__device__ double nearest(float x) {
    if (format == Format::int8 || format == Format::int4) return x != x ? 0.0 : rint(static_cast<double>(x));
    if (x != x) return x;
    const int mantissa = format == Format::e4m3 ? 3 : 2, lowest = format == Format::e4m3 ? -6 : -14;
    int exponent = lowest;
    while (exponent < 15 && fabsf(x) >= ldexpf(2.0f, exponent)) ++exponent;
    const double unit = ldexp(1.0, exponent - mantissa), limit = limit_of<format>;
    return fmax(-limit, fmin(limit, rint(x / unit) * unit));
}

extern "C" __global__ void __launch_bounds__(256)
    quantise_reference(const T* x, double* value, double* magnitude, const double* scale, long long outputs,
                       long long size) {
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < outputs; i += gridDim.x * 256LL) {
        const auto at = [&](long long k) {
            return nearest(to_float(x[k]) * (1.0f / static_cast<float>(scale[k / size])));
        };
        if constexpr (format == Format::int4)
            value[i] = (static_cast<int>(at(2 * i)) & 15) | (static_cast<int>(at(2 * i + 1)) & 15) << 4;
        else
            value[i] = at(i);
        magnitude[i] = fabs(value[i]);
    }
}
