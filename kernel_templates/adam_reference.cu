// adam in double: what stands in for the CPU reference where that would take seconds
//
// p, g, m, v ...    as in adam.cu; each value and magnitude: double, [count], as tuner/references/adam.cpp derives them
// launch            grid = any, block = 256
#include "common.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef P
#define P float
#endif
#ifndef G
#define G float
#endif

extern "C" __global__ void __launch_bounds__(256)
    adam_reference(const P* p, const G* g, const float* m, const float* v, const long long* ends, const float* rates,
                   const float* decays, long long count, int tensors, float beta1, float beta2, float eps,
                   float correction1, float correction2, double* p_value, double* p_magnitude, double* m_value,
                   double* m_magnitude, double* v_value, double* v_magnitude) {
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL) {
        int tensor = 0;
        while (tensor + 1 < tensors && ends[tensor] <= i) ++tensor;
        const double old = to_float(p[i]), grad = to_float(g[i]), one = 1.0;
        const double kept = beta1 * static_cast<double>(m[i]), fresh = (one - beta1) * grad;
        const double mean = kept + fresh, size = fabs(kept) + fabs(fresh);
        const double square = beta2 * static_cast<double>(v[i]) + (one - beta2) * grad * grad;
        const double root = sqrt(square / correction2) + eps;
        const double pull = decays[tensor] * old;
        p_value[i] = old - rates[tensor] * (mean / correction1 / root + pull);
        p_magnitude[i] =
            fabs(old) + fabs(static_cast<double>(rates[tensor])) * (size / correction1 / root + fabs(pull));
        m_value[i] = mean;
        m_magnitude[i] = size;
        v_value[i] = square;
        v_magnitude[i] = fabs(square);
    }
}
