// reduce, argreduce in double: what stands in for the CPU reference where that would take seconds
//
// x                 T, [outer, n, inner], packed
// value, magnitude  double, [outer, inner]: the result, and what its error bound is counted in, as
//                   tuner/references/reduce.cpp derives it
// launch            grid = any, block = 256; a block takes a result at a time
#include "reference.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef T
#define T __nv_bfloat16
#endif
#ifndef KIND
#define KIND sum
#endif

enum class Kind { sum, prod, mean, min, max, l1, l2, argmin, argmax };
constexpr Kind kind = Kind::KIND;
constexpr bool least = kind == Kind::min || kind == Kind::argmin;
constexpr bool ordered = least || kind == Kind::max || kind == Kind::argmax;

struct Part {
    double value, size;  // of an ordered kind `size` is the index
};

__device__ Part join(Part a, Part b) {
    if constexpr (ordered) {
        const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        if (a_nan != b_nan) return a_nan ? a : b;
        if (!a_nan && a.value != b.value) return (a.value < b.value) == least ? a : b;
        return a.size <= b.size ? a : b;
    } else {
        return kind == Kind::prod ? Part{a.value * b.value, 0.0} : Part{a.value + b.value, a.size + b.size};
    }
}

extern "C" __global__ void __launch_bounds__(256)
    reduce_reference(const T* x, double* value, double* magnitude, long long outer, long long n, long long inner) {
    constexpr double infinity = -minus_infinity;
    for (long long output = blockIdx.x; output < outer * inner; output += gridDim.x) {
        const T* from = x + output / inner * n * inner + output % inner;
        Part mine{kind == Kind::prod ? 1.0 : ordered ? (least ? infinity : -infinity) : 0.0, ordered ? 1e300 : 0.0};
        for (long long k = threadIdx.x; k < n; k += 256) {
            const double e = to_float(from[k * inner]);
            const double term = kind == Kind::l1 ? fabs(e) : kind == Kind::l2 ? e * e : e;
            mine = join(mine, {term, ordered ? static_cast<double>(k) : fabs(term)});
        }
        const Part all = block_combine(mine, [](Part a, Part b) { return join(a, b); });
        if (threadIdx.x != 0) continue;
        if constexpr (kind == Kind::argmin || kind == Kind::argmax) {
            value[output] = magnitude[output] = all.size;
        } else {
            const double scale = kind == Kind::mean ? 1.0 / static_cast<double>(n) : 1.0;
            const double result = kind == Kind::l2 ? sqrt(all.value) : all.value * scale;
            value[output] = result;
            const bool summed = kind == Kind::sum || kind == Kind::mean || kind == Kind::l1;
            magnitude[output] = summed ? all.size * scale : fabs(result);
        }
    }
}
