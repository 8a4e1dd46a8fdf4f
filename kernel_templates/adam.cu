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
#define ALIGNED 1  // 1: all are aligned to a load's elements, of 16 bytes at most
#endif
#ifndef STREAM
#define STREAM 1  // 1: what is written is the first to leave the cache
#endif

template <class T>
constexpr int piece = VEC * sizeof(T) > 16 ? 16 / sizeof(T) : VEC;  // elements a load

template <class T>
__device__ __forceinline__ void load_floats(float (&to)[VEC], const T* p, int count) {
    if (ALIGNED && count >= VEC) {
        constexpr int size = piece<T>;
#pragma unroll
        for (int i = 0; i < VEC; i += size) {
            float part[size];
            to_floats(load_once<size>(p + i), part);
#pragma unroll
            for (int j = 0; j < size; ++j) to[i + j] = part[j];
        }
    } else {
#pragma unroll
        for (int j = 0; j < VEC; ++j) to[j] = j < count ? to_float(p[j]) : 0.0f;
    }
}

template <class T>
__device__ __forceinline__ void store_floats(T* p, const float (&from)[VEC], int count) {
    if (ALIGNED && count >= VEC) {
        constexpr int size = piece<T>;
#pragma unroll
        for (int i = 0; i < VEC; i += size) {
            float part[size];
#pragma unroll
            for (int j = 0; j < size; ++j) part[j] = from[i + j];
            if (STREAM)
                store_once(p + i, from_floats<T>(part));
            else
                store(p + i, from_floats<T>(part));
        }
    } else {
#pragma unroll
        for (int j = 0; j < VEC; ++j)
            if (j < count) p[j] = from_float<T>(from[j]);
    }
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
    float weight[UNROLL][VEC], slope[UNROLL][VEC], mean[UNROLL][VEC], square[UNROLL][VEC];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        const long long at = first + i * (THREADS * VEC);
        const int there = static_cast<int>(min(static_cast<long long>(VEC), count - at));
        if (there <= 0) break;
        load_floats(slope[i], g + at, there);
        load_floats(mean[i], m + at, there);
        load_floats(square[i], v + at, there);
        load_floats(weight[i], p + at, there);
    }

    int tensor = tensor_at(ends, tensors, first - threadIdx.x % 32 * VEC);  // of the warp's first element
    const auto end_of = [&](int number) { return number + 1 < tensors ? __ldg(ends + number) : count; };
    long long end = end_of(tensor);
    float rate = __ldg(rates + tensor), decay = __ldg(decays + tensor);
    const float up1 = 1.0f / correction1, up2 = 1.0f / correction2;
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
        const long long at = first + i * (THREADS * VEC);
        const int there = static_cast<int>(min(static_cast<long long>(VEC), count - at));
        if (there <= 0) break;
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            if (at + j >= end && at + j < count) {
                do end = end_of(++tensor);
                while (at + j >= end);
                rate = __ldg(rates + tensor);
                decay = __ldg(decays + tensor);
            }
            const float grad = slope[i][j];
            mean[i][j] = beta1 * mean[i][j] + (1.0f - beta1) * grad;
            square[i][j] = beta2 * square[i][j] + (1.0f - beta2) * grad * grad;
            const float step = __fdividef(mean[i][j] * up1, root(square[i][j] * up2) + eps);
            weight[i][j] -= rate * (step + decay * weight[i][j]);
        }
        store_floats(m + at, mean[i], there);
        store_floats(v + at, square[i], there);
        store_floats(p + at, weight[i], there);
    }
}
