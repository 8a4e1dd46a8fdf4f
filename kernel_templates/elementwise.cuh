// elementwise: what the kernels are made of that are written from an expression (autotune ops --show --chain TEXT)
//
// Tensors are [batch, rows, cols], the last dimension contiguous; one whose extent is 1 where y's is not stands for
// all. Arithmetic is float.
#ifndef AUTOTUNE_ELEMENTWISE_CUH
#define AUTOTUNE_ELEMENTWISE_CUH

#include "common.cuh"
#include "philox.cuh"

// ---- The steps of float that activations.cuh and chains are made of. Conditions are bool.

template <class F>
__device__ __forceinline__ F constant(double value);
template <>
__device__ __forceinline__ float constant<float>(double value) {
    return static_cast<float>(value);
}

__device__ __forceinline__ float select(bool which, float yes, float no) { return which ? yes : no; }
__device__ __forceinline__ bool both(bool a, bool b) { return a && b; }
__device__ __forceinline__ bool either(bool a, bool b) { return a || b; }
__device__ __forceinline__ bool negated(bool a) { return !a; }
__device__ __forceinline__ float abs_of(float a) { return fabsf(a); }
/// NaN where either is, unlike fmaxf.
__device__ __forceinline__ float max_of(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
#else
    return a > b || a != a ? a : b;
#endif
}
__device__ __forceinline__ float min_of(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float smaller;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
    return smaller;
#else
    return a < b || a != a ? a : b;
#endif
}
/// 1 / a, good to 2^-23.
__device__ __forceinline__ float inverse_of(float a) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
}
__device__ __forceinline__ float exp_of(float a) { return expf(a); }
__device__ __forceinline__ float log_of(float a) { return logf(a); }
__device__ __forceinline__ float sqrt_of(float a) { return sqrtf(a); }
__device__ __forceinline__ float rsqrt_of(float a) { return rsqrtf(a); }
__device__ __forceinline__ float erf_of(float a) { return erff(a); }
__device__ __forceinline__ float tanh_of(float a) { return tanhf(a); }

/// 1 / (1 + e^-a), good to 2^-21 and |a| * 2^-23; below 2^-126 it is 0.
__device__ __forceinline__ float logistic_of(float a) { return inverse_of(1.0f + exp_natural(-a)); }

/// The part of the normal distribution below `a`. What is beyond |a| is 2 to the power of a polynomial, fitted for the
/// smallest relative error over 1 + a^2, which is 2^-18.4; it falls on and on, so that an infinity gives 0 and 1. Below
/// 2^-126 it is 0.
__device__ __forceinline__ float normal_of(float a) {
    const float size = fabsf(a);
    float power = -0x1.684c2ep-30f;
    power = fmaf(power, size, 0x1.dc65cep-24f);
    power = fmaf(power, size, -0x1.08efdep-18f);
    power = fmaf(power, size, 0x1.4b3ff0p-14f);
    power = fmaf(power, size, -0x1.0679c2p-10f);
    power = fmaf(power, size, 0x1.1b639ap-7f);
    power = fmaf(power, size, -0x1.bafa68p-5f);
    power = fmaf(power, size, -0x1.d5744ap-2f);
    power = fmaf(power, size, -0x1.26b796p+0f);
    power = fmaf(power, size, -0x1.ffff82p-1f);
    const float beyond = exp_binary(power);
    return a < 0.0f ? beyond : 1.0f - beyond;
}
__device__ __forceinline__ float as_f32(float a) { return a; }
__device__ __forceinline__ float as_f16(float a) { return to_float(from_float<__half>(a)); }
__device__ __forceinline__ float as_bf16(float a) { return to_float(from_float<__nv_bfloat16>(a)); }

#include "activations.cuh"

// ---- Where a thread's elements are.

/// N neighbours of a row, of which those from `first` on and before `count` exist: none where `count` is 0 or less, all
/// where it is N or more.
/// Their row is `below` rows under `top`, which is the same for all of a thread's that lie in one column.
struct Site {
    long long batch, row, col, top, below;
    int first, count;
};

/// Of y.
struct Extents {
    long long batch, rows, cols;
};

/// The thread's `item`-th vector where all tensors are packed: y is one row.
template <int THREADS, int N, int ITEMS>
__device__ __forceinline__ Site site_of_row(const Extents& y, int item) {
    const long long start = (static_cast<long long>(blockIdx.x) * (ITEMS * THREADS) + threadIdx.x) * N;
    constexpr long long most = ITEMS * THREADS * N;
    const int left = static_cast<int>(min(most, y.batch * y.rows * y.cols - start));
    return {0, 0, start + item * (THREADS * N), 0, 0, 0, left - item * (THREADS * N)};
}

/// At the row `item` * APART below `top`, unless that is beyond the last.
template <int APART, int ITEMS, bool ONE_BATCH>
__device__ __forceinline__ Site site_below(const Extents& y, long long top, long long col, int first, int count,
                                           int item) {
    constexpr long long most = ITEMS * APART;
    const int rows_left = static_cast<int>(min(most, max(0ll, y.batch * y.rows - top)));
    if (item * APART >= rows_left) count = 0;
    const long long outer = top + item * APART, batch = ONE_BATCH ? 0 : outer / y.rows, row = outer - batch * y.rows;
    return {batch, row, col, ONE_BATCH ? top : row, ONE_BATCH ? item * APART : 0, first, count};
}

/// The same where rows count: a block of BX threads along a row and BY rows, each thread with ITEMS rows at one column.
template <int BX, int BY, int N, int ITEMS, bool ONE_BATCH>
__device__ __forceinline__ Site site_of_tile(const Extents& y, int item) {
    const unsigned across = static_cast<unsigned>((y.cols + BX * N - 1) / (BX * N));
    const unsigned down = blockIdx.x / across;
    const long long top = static_cast<long long>(down) * (BY * ITEMS) + threadIdx.y;
    const long long col = (static_cast<long long>(blockIdx.x - down * across) * BX + threadIdx.x) * N;
    const int count = static_cast<int>(min(static_cast<long long>(N), y.cols - col));
    return site_below<BY, ITEMS, ONE_BATCH>(y, top, col, 0, count, item);
}

/// The same where rows of y, at `data`, start anywhere: vectors are those of whole sectors of 32 bytes, so a row's
/// first and last may be short. A thread's ITEMS rows are so many apart that all start at one place of a sector, and
/// their vectors at one column. Threads across rows are counted in 32 bits: one for ITEMS rows, and up to BY beyond the
/// last.
template <int BX, int BY, int N, int ITEMS, bool ONE_BATCH, class T>
__device__ __forceinline__ Site site_of_ragged(const Extents& y, const T* data, long long row_stride, int item) {
    constexpr int sector = 32 / sizeof(T), step = N > sector ? N : sector;
    const unsigned across = static_cast<unsigned>((y.cols + step - 1 + BX * N - 1) / (BX * N));
    const unsigned down = blockIdx.x / across, t = down * BY + threadIdx.y;
    const long long top = static_cast<long long>(t / step) * (step * ITEMS) + t % step;
    const int past = static_cast<int>(reinterpret_cast<unsigned long long>(data + top * row_stride) / sizeof(T) % step);
    const long long col = (static_cast<long long>(blockIdx.x - down * across) * BX + threadIdx.x) * N - past;
    const int first = col < 0 ? static_cast<int>(-col) : 0;
    const int count = first < N ? static_cast<int>(min(static_cast<long long>(N + 16), y.cols - col)) : 0;
    return site_below<step, ITEMS, ONE_BATCH>(y, top, col, first, count, item);
}

// ---- Tensors.

/// N elements as loaded, by pieces of at most 16 bytes.
template <class T, int N>
struct Pieces {
    static constexpr int size = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    Vec<T, size> piece[N / size];
};

/// N elements at any address that is one of an element, of which 16 bytes before and after may be read, too.
template <int N, class T, class Load>
__device__ __forceinline__ Pieces<T, N> load_unaligned(const T* p, Load load_vector) {
    constexpr int wide = 16 / sizeof(T), words = N * sizeof(T) / 4;
    const unsigned past = static_cast<unsigned>(reinterpret_cast<unsigned long long>(p)) % 16;
    const T* const aligned = p - past / sizeof(T);
    unsigned word[words + 4];
#pragma unroll
    for (int i = 0; i <= words / 4; ++i) {
        const Vec<T, wide> v = load_vector(aligned + i * wide);
#pragma unroll
        for (int k = 0; k < 4; ++k) word[4 * i + k] = reinterpret_cast<const unsigned*>(&v)[k];
    }
#pragma unroll
    for (int i = 0; i < words + 2; ++i) word[i] = past & 8 ? word[i + 2] : word[i];
#pragma unroll
    for (int i = 0; i < words + 1; ++i) word[i] = past & 4 ? word[i + 1] : word[i];
    Pieces<T, N> raw;
#pragma unroll
    for (int i = 0; i < words; ++i)
        reinterpret_cast<unsigned*>(&raw)[i] =
            sizeof(T) == 2 ? __funnelshift_r(word[i], word[i + 1], 8 * (past & 2)) : word[i];
    return raw;
}

/// An input. ONE_*: it has one element where y has more.
template <class T, bool ONE_BATCH, bool ONE_ROW, bool ONE_COL>
struct Operand {
    const T* data;
    long long batch_stride, row_stride;

    /// WHOLE: every vector is whole and aligned. RAGGED: any may be neither.
    template <int N, bool WHOLE, bool RAGGED>
    __device__ __forceinline__ Pieces<T, N> load(const Site& at) const {
        Pieces<T, N> raw;
        if (at.count <= 0) return raw;
        const T* from = data + (ONE_BATCH ? 0 : at.batch * batch_stride) + (ONE_ROW ? 0 : at.top * row_stride) +
                        (ONE_COL ? 0 : at.col) + (ONE_ROW ? 0 : at.below * row_stride);
        constexpr int size = Pieces<T, N>::size;
        if constexpr (ONE_COL) {
            raw.piece[0].lane[0] = *from;
        } else if (WHOLE || (at.count >= N && (!RAGGED || (at.first == 0 && is_aligned<size>(from))))) {
#pragma unroll
            for (int i = 0; i < N / size; ++i) {
                if constexpr (ONE_BATCH || ONE_ROW)
                    raw.piece[i] = load_readonly<size>(from + i * size);
                else
                    raw.piece[i] = load_once<size>(from + i * size);
            }
        } else if (RAGGED && size * sizeof(T) == 16 && at.col >= size && at.count >= N + size) {
            raw = load_unaligned<N>(from, [](const T* p) {
                if constexpr (ONE_BATCH || ONE_ROW)
                    return load_readonly<16 / sizeof(T)>(p);
                else
                    return load_once<16 / sizeof(T)>(p);
            });
        } else {
#pragma unroll
            for (int i = 0; i < N; ++i)
                if (i >= at.first && i < at.count) raw.piece[i / size].lane[i % size] = from[i];
        }
        return raw;
    }

    template <int N>
    __device__ __forceinline__ static void to_floats(const Pieces<T, N>& raw, float (&x)[N]) {
        constexpr int size = Pieces<T, N>::size;
        if constexpr (ONE_COL) {
            const float one = to_float(raw.piece[0].lane[0]);
#pragma unroll
            for (int j = 0; j < N; ++j) x[j] = one;
        } else {
#pragma unroll
            for (int i = 0; i < N / size; ++i) {
                float part[size];
                ::to_floats(raw.piece[i], part);
#pragma unroll
                for (int j = 0; j < size; ++j) x[i * size + j] = part[j];
            }
        }
    }
};

/// y.
template <class T>
struct Result {
    T* data;
    long long batch_stride, row_stride;

    template <int N, bool WHOLE>
    __device__ __forceinline__ void store(const Site& at, const float (&x)[N]) const {
        if (at.count <= 0) return;
        T* to = data + at.batch * batch_stride + at.top * row_stride + at.col + at.below * row_stride;
        constexpr int size = Pieces<T, N>::size;
        if (WHOLE || (at.count >= N && at.first == 0)) {
#pragma unroll
            for (int i = 0; i < N / size; ++i) {
                float part[size];
#pragma unroll
                for (int j = 0; j < size; ++j) part[j] = x[i * size + j];
                ::store(to + i * size, from_floats<T>(part));
            }
        } else {
#pragma unroll
            for (int i = 0; i < N; ++i)
                if (i >= at.first && i < at.count) to[i] = from_float<T>(x[i]);
        }
    }
};

/// The random bits of N elements, the first of them number `index` of y, of which a call makes eight. EVEN: `index` is
/// a multiple of N. It is negative where a vector begins before y does: shifted, not divided, it leads up to 0.
template <int N, bool EVEN>
__device__ __forceinline__ void draw(long long seed, unsigned offset, unsigned use, long long index,
                                     unsigned (&bits)[N]) {
    const unsigned start = static_cast<unsigned>(index) % 8;
    const long long call = index >> 3;
    if (EVEN ? N % 8 == 0 : N % 8 == 0 && start == 0) {
#pragma unroll
        for (int j = 0; j < N; j += 8) {
            const Philox eight = random_bits(seed, offset, use, call + j / 8);
#pragma unroll
            for (int k = 0; k < 4 && 2 * k < N; ++k) {
                bits[j + 2 * k] = eight.word[k];
                if (2 * k + 1 < N) bits[j + 2 * k + (N > 1)] = halves_exchanged(eight.word[k]);
            }
        }
        return;
    }
    // The words from the first element's on, which may come of one call more than whole ones would.
    constexpr int calls = EVEN ? (N + 7) / 8 : (N + 14) / 8, words = (N + 2) / 2;
    unsigned word[4 * calls + 3];
#pragma unroll
    for (int i = 0; i < calls; ++i) {
        const Philox eight = random_bits(seed, offset, use, call + i);
#pragma unroll
        for (int k = 0; k < 4; ++k) word[4 * i + k] = eight.word[k];
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) word[4 * calls + k] = 0;
#pragma unroll
    for (int k = 0; k <= words; ++k) word[k] = start & 4 ? word[k + 2] : word[k];
#pragma unroll
    for (int k = 0; k < words; ++k) word[k] = start & 2 ? word[k + 1] : word[k];
#pragma unroll
    for (int j = 0; j < N; ++j) {
        const bool odd = start & 1;
        bits[j] = (odd ? j % 2 == 0 : j % 2 == 1) ? halves_exchanged(odd ? word[(j + 1) / 2] : word[j / 2])
                                                   : (odd ? word[(j + 1) / 2] : word[j / 2]);
    }
}

#endif
