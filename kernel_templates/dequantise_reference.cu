// dequantise in double: what stands in for the CPU reference where that would take seconds
//
// q                 bytes, [groups, size], or half as many for int4; scale: float, [groups]
// value, magnitude  double, [groups, size]
// launch            grid = any, block = 256
#include "narrow.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef FORMAT
#define FORMAT e4m3
#endif

constexpr Format format = Format::FORMAT;

extern "C" __global__ void __launch_bounds__(256)
    dequantise_reference(const unsigned char* q, const float* scale, double* value, double* magnitude, long long count,
                         long long size) {
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL) {
        double whole;
        if constexpr (format == Format::int4) {
            const int half = q[i / 2] >> (i % 2 == 0 ? 0 : 4) & 15;
            whole = half < 8 ? half : half - 16;
        } else if constexpr (format == Format::int8) {
            whole = static_cast<signed char>(q[i]);
        } else {
            whole = widened_byte<format>(q[i]);
        }
        value[i] = whole * scale[i / size];
        magnitude[i] = fabs(value[i]);
    }
}
