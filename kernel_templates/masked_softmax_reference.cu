// masked_softmax in double: what stands in for the CPU reference where that would take seconds
//
// value, magnitude  double, as x: as tuner/references/masked_softmax.cpp derives them
// launch            grid = any, block = 256; a block takes a row at a time
#include "reference.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef MASK
#define MASK keep
#endif
#ifndef CAUSAL
#define CAUSAL 0
#endif

enum class Mask { none, keep, add };

extern "C" __global__ void __launch_bounds__(256)
    masked_softmax_reference(const T* x, const void* mask, double* value, double* magnitude, long long rows, int heads,
                             int queries, int keys, float scale) {
    const double common = 8.0 + 0.25 * sqrt(static_cast<double>(keys));
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const long long query = row % queries, head = row / queries % heads, in = row / queries / heads;
        const long long from = ((Mask::MASK == Mask::keep ? in : head) * queries + query) * keys;
        const auto z = [=](long long c) -> double {
            if (CAUSAL && c + queries > query + keys) return minus_infinity;
            if (Mask::MASK == Mask::keep && static_cast<const unsigned char*>(mask)[from + c] == 0)
                return minus_infinity;
            const double more = Mask::MASK == Mask::add ? to_float(static_cast<const T*>(mask)[from + c]) : 0.0;
            return scale * static_cast<double>(to_float(x[row * keys + c])) + more;
        };
        const double max = block_max(keys, z);
        const double sum = block_sum(keys, [=](long long c) { return z(c) == minus_infinity ? 0.0 : exp(z(c) - max); });
        const double size =
            block_sum(keys, [=](long long c) { return z(c) == minus_infinity ? 0.0 : exp(z(c) - max) * fabs(z(c)); });
        for (int c = threadIdx.x; c < keys; c += 256) {
            const bool nothing = z(c) == minus_infinity && !isnan(sum);
            const double y = nothing ? 0.0 : exp(z(c) - max) / sum, distance = fmin(max - z(c), 1000.0);
            value[row * keys + c] = y;
            magnitude[row * keys + c] =
                nothing ? 0.0 : y * (common + 1.25 * distance + 0.5 * (distance + 2.0 * fabs(max) + size / sum));
        }
    }
}
