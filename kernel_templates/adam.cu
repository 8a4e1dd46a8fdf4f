// adam: one step of AdamW over a list of tensors that lie one behind the other
//
//     m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
//     p = p - rate ((m / correction1) / (sqrt(v / correction2) + eps) + decay p)
//
// p           P, [count]; m, v: float, [count]; g: G, [count]; all aligned anyhow
// ends        long long, [tensors]: where each tensor ends, ascending; rate, decay: float, [tensors]
// correction  1 - beta^step
// launch      grid = ceil(count / (THREADS * VEC * UNROLL)), block = THREADS, no dynamic shared memory
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
#ifndef THREADS
#define THREADS 256
#endif
#ifndef VEC
#define VEC 4  // elements a vector
#endif
#ifndef UNROLL
#define UNROLL 1  // vectors a thread
#endif
#ifndef ALIGNED
#define ALIGNED 1  // 1: all are aligned to vectors
#endif

template <class T>
__device__ __forceinline__ Vec<T, VEC> load_part(const T* p, int count) {
    if (ALIGNED && count >= VEC) return load_once<VEC>(p);
    Vec<T, VEC> v;
#pragma unroll
    for (int j = 0; j < VEC; ++j) v.lane[j] = j < count ? p[j] : from_float<T>(0.0f);
    return v;
}

template <class T>
__device__ __forceinline__ void store_part(T* p, const float (&from)[VEC], int count) {
    const Vec<T, VEC> v = from_floats<T>(from);
    if (ALIGNED && count >= VEC) return store(p, v);
#pragma unroll
    for (int j = 0; j < VEC; ++j)
        if (j < count) p[j] = v.lane[j];
}

/// Good to 2^-23, in a third of the time of an exact one.
__device__ __forceinline__ float root(float x) {
    float y;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/// The first tensor that ends behind an element, or the last one: a warp looks at 32 places of the list at once, since
/// each look waits for the one before. The same element in all of its threads.
__device__ __forceinline__ int tensor_at(const long long* ends, int tensors, long long element) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    int first = 0, beyond = tensors - 1;
    while (first < beyond) {
        const int stride = (beyond - first + 31) / 32, at = first + (lane + 1) * stride - 1;
        const bool past = at < beyond && __ldg(ends + at) <= element;
        const int passed = __popc(__ballot_sync(~0u, past)) * stride;
        beyond = min(beyond, first + passed + stride - 1);
        first += passed;
    }
    return first;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    adam(P* p, const G* g, float* m, float* v, const long long* ends, const float* rates, const float* decays,
         long long count, int tensors, float beta1, float beta2, float eps, float correction1, float correction2) {
    const long long first = blockIdx.x * static_cast<long long>(THREADS * VEC * UNROLL) + threadIdx.x * VEC;
    Vec<P, VEC> weights[UNROLL];
    Vec<G, VEC> slopes[UNROLL];
    Vec<float, VEC> means[UNROLL], squares[UNROLL];
    const auto part_of = [&](int i) {
        return static_cast<int>(min(static_cast<long long>(VEC), count - first - i * (THREADS * VEC)));
    };
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        const long long at = first + i * (THREADS * VEC);
        if (part_of(i) <= 0) break;
        slopes[i] = load_part(g + at, part_of(i));
        means[i] = load_part(m + at, part_of(i));
        squares[i] = load_part(v + at, part_of(i));
        weights[i] = load_part(p + at, part_of(i));
    }

    int tensor = tensor_at(ends, tensors, first - threadIdx.x % 32 * VEC);  // of the warp's first element
    const auto end_of = [&](int number) { return number + 1 < tensors ? __ldg(ends + number) : count; };
    long long end = end_of(tensor);
    float rate = __ldg(rates + tensor), decay = __ldg(decays + tensor);
    const float up1 = 1.0f / correction1, up2 = 1.0f / correction2;
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        const long long at = first + i * (THREADS * VEC);
        if (part_of(i) <= 0) break;
        float weight[VEC], slope[VEC], mean[VEC], square[VEC];
        to_floats(weights[i], weight);
        to_floats(slopes[i], slope);
        to_floats(means[i], mean);
        to_floats(squares[i], square);
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            if (at + j >= end && at + j < count) {
                do end = end_of(++tensor);
                while (at + j >= end);
                rate = __ldg(rates + tensor);
                decay = __ldg(decays + tensor);
            }
            mean[j] = beta1 * mean[j] + (1.0f - beta1) * slope[j];
            square[j] = beta2 * square[j] + (1.0f - beta2) * slope[j] * slope[j];
            const float step = __fdividef(mean[j] * up1, root(square[j] * up2) + eps);
            weight[j] -= rate * (step + decay * weight[j]);
        }
        store_part(m + at, mean, part_of(i));
        store_part(v + at, square, part_of(i));
        store_part(p + at, weight, part_of(i));
    }
}
