// narrow: floats to and from the formats of quantise and dequantise, four, or a vector, at a time.
#ifndef AUTOTUNE_NARROW_CUH
#define AUTOTUNE_NARROW_CUH

#include "common.cuh"

/// Named as the field `format` names them. int4: two a byte, the first in the low half.
enum class Format { int8, int4, e4m3, e5m2 };

/// The largest magnitude that a group is scaled to.
template <Format format>
constexpr float limit_of = format == Format::int8   ? 127.0f
                           : format == Format::int4 ? 7.0f
                           : format == Format::e4m3 ? 448.0f
                                                    : 57344.0f;
template <Format format>
constexpr int bits_of = format == Format::int4 ? 4 : 8;

/// What a group of the largest magnitude `amax` is divided by: amax / limit to the nearest, at least 2^-96 / limit, so
/// that its reciprocal is finite. A quotient by a constant is corrected by its exact rest (Markstein 1990), which takes
/// two instructions instead of a division's ten.
template <Format format>
__device__ __forceinline__ float scale_of(float amax) {
    constexpr float limit = limit_of<format>, reciprocal = 1.0f / limit;
    const float size = fmaxf(amax, 1.2621774e-29f), about = size * reciprocal;
    const float quotient = fmaf(fmaf(-about, limit, size), reciprocal, about);
    return size < -minus_infinity ? quotient : size;
}

/// 1 / scale to the nearest, 0 for an infinity: the division's own steps without its care for subnormals, which no
/// scale is.
__device__ __forceinline__ float factor_of(float scale) {
    float about;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(about) : "f"(scale));
    const float factor = fmaf(about, -fmaf(scale, about, -1.0f), about);
    return scale < -minus_infinity ? factor : 0.0f;
}

/// The nearest of an 8-bit float type, ties to even; beyond its largest number that number. NaN stays NaN.
template <Format format>
__device__ __forceinline__ unsigned small_float(float x) {
    constexpr int mantissa = format == Format::e4m3 ? 3 : 2, bias = format == Format::e4m3 ? 7 : 15;
    constexpr unsigned largest = format == Format::e4m3 ? 0x7e : 0x7b;
    const unsigned bits = __float_as_uint(x), sign = bits >> 24 & 0x80, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return sign | 0x7f;
    unsigned made;
    if (size < static_cast<unsigned>(128 - bias) << 23) {  // subnormal: a whole number of the smallest one
        const float unit = __uint_as_float(static_cast<unsigned>(127 + bias - 1 + mantissa) << 23);
        made = static_cast<unsigned>(__float2int_rn(__uint_as_float(size) * unit));
    } else {
        constexpr int drop = 23 - mantissa;
        made = ((size + (1u << (drop - 1)) - 1 + (size >> drop & 1)) >> drop) - ((127 - bias) << mantissa);
    }
    return sign | min(made, largest);
}

/// Two in the low half of a word, `low` in the low byte.
template <Format format>
__device__ __forceinline__ unsigned small_pair(float low, float high) {
#if __CUDA_ARCH__ >= 890
    unsigned short made;
    if constexpr (format == Format::e4m3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(made) : "f"(high), "f"(low));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(made) : "f"(high), "f"(low));
    return made;
#else
    return small_float<format>(low) | small_float<format>(high) << 8;
#endif
}

/// N floats of magnitudes up to the limit, and little beyond, as bytes; NaN becomes 0 in the integer formats.
template <Format format, int N>
__device__ __forceinline__ Vec<unsigned char, N * bits_of<format> / 8> narrowed(const float (&x)[N]) {
    constexpr int bytes = N * bits_of<format> / 8;
    Vec<unsigned char, bytes> made;
    unsigned word[bytes < 4 ? 1 : bytes / 4];
    if constexpr (format == Format::int4) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const unsigned nibble = static_cast<unsigned>(__float2int_rn(x[i])) & 15u;
            word[i / 8] = i % 8 == 0 ? nibble : word[i / 8] | nibble << 4 * (i % 8);
        }
    } else if constexpr (format == Format::int8) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const unsigned byte = static_cast<unsigned>(__float2int_rn(x[i])) & 255u;
            word[i / 4] = i % 4 == 0 ? byte : word[i / 4] | byte << 8 * (i % 4);
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            const unsigned pair = small_pair<format>(x[i], N == 1 ? 0.0f : x[i + (N > 1)]);
            word[i / 4] = i % 4 == 0 ? pair : word[i / 4] | pair << 16;
        }
    }
    if constexpr (bytes >= 4) {
#pragma unroll
        for (int k = 0; k < bytes / 4; ++k) reinterpret_cast<unsigned*>(&made)[k] = word[k];
    } else {
        reinterpret_cast<Word<bytes>&>(made) = static_cast<Word<bytes>>(word[0]);
    }
    return made;
}

/// One byte of an 8-bit float type: its bits are those of a half but for the exponent's bias.
template <Format format>
__device__ __forceinline__ float widened_byte(unsigned byte) {
    if constexpr (format == Format::e5m2) {
        return __half2float(__ushort_as_half(static_cast<unsigned short>(byte << 8)));
    } else {
        if ((byte & 0x7f) == 0x7f) return __uint_as_float(0x7fffffff);
        const unsigned half = (byte & 0x80) << 8 | (byte & 0x7f) << 7;
        return __half2float(__ushort_as_half(static_cast<unsigned short>(half))) * 256.0f;
    }
}

#if __CUDA_ARCH__ >= 890
/// The two in the low half of a word.
template <Format format>
__device__ __forceinline__ float2 small_pair_as_floats(unsigned word) {
    unsigned halves;
    if constexpr (format == Format::e4m3)
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<unsigned short>(word)));
    else
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(static_cast<unsigned short>(word)));
    return __half22float2(reinterpret_cast<const __half2&>(halves));
}
#endif

template <Format format, int N>
__device__ __forceinline__ void widened(const Vec<unsigned char, N * bits_of<format> / 8>& v, float (&x)[N]) {
    constexpr int bytes = N * bits_of<format> / 8;
    unsigned word[bytes < 4 ? 1 : bytes / 4];
    if constexpr (bytes >= 4) {
#pragma unroll
        for (int k = 0; k < bytes / 4; ++k) word[k] = reinterpret_cast<const unsigned*>(&v)[k];
    } else {
        word[0] = reinterpret_cast<const Word<bytes>&>(v);
    }
#if __CUDA_ARCH__ >= 890
    if constexpr (format == Format::e4m3 || format == Format::e5m2) {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            const float2 pair = small_pair_as_floats<format>(word[i / 4] >> 8 * (i % 4));
            x[i] = pair.x;
            if (i + 1 < N) x[i + (N > 1)] = pair.y;
        }
        return;
    }
#endif
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if constexpr (format == Format::int4)
            x[i] = static_cast<float>(static_cast<int>(word[i / 8] << (28 - 4 * (i % 8))) >> 28);
        else if constexpr (format == Format::int8)
            x[i] = static_cast<float>(static_cast<int>(word[i / 4] << (24 - 8 * (i % 4))) >> 24);
        else
            x[i] = widened_byte<format>(word[i / 4] >> 8 * (i % 4) & 255u);
    }
}

// ---- Magnitudes. NaN does not count.

/// The largest magnitude of vectors, folded in by pairs of 16-bit elements where the device can.
template <class T, int N>
struct Magnitude {
#if __CUDA_ARCH__ >= 800
    static constexpr bool by_pairs = sizeof(T) == 2 && N % 2 == 0;
#else
    static constexpr bool by_pairs = false;
#endif
    float single = 0.0f;
    unsigned pairs = 0;

    __device__ __forceinline__ void take(const Vec<T, N>& v) {
        if constexpr (by_pairs) {
#pragma unroll
            for (int k = 0; k < N / 2; ++k)
                pairs = greater_pair(v.lane, pairs, reinterpret_cast<const unsigned*>(&v)[k] & 0x7fff7fffu);
        } else {
            float x[N];
            to_floats(v, x);
#pragma unroll
            for (int j = 0; j < N; ++j) single = fmaxf(single, fabsf(x[j]));
        }
    }
    __device__ __forceinline__ float value() const {
        if constexpr (by_pairs) {
            const float2 both = unpack_pair(static_cast<const T*>(nullptr), pairs);
            return fmaxf(fmaxf(both.x, both.y), single);
        } else {
            return single;
        }
    }
};

#endif
