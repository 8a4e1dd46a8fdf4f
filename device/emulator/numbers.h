#ifndef AUTOTUNE_DEVICE_EMULATOR_NUMBERS_H
#define AUTOTUNE_DEVICE_EMULATOR_NUMBERS_H

#include <cstdint>

namespace autotune::emulator {

// Small floats as bits, to and from float. Branch-free where rows of them are converted. Always inlined: the hot unit
// is built twice, and no function of one build may stand in for one of the other.
#define NUMBERS_INLINE inline __attribute__((always_inline))

NUMBERS_INLINE std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
NUMBERS_INLINE float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
NUMBERS_INLINE std::uint64_t bits_of(double x) { return __builtin_bit_cast(std::uint64_t, x); }
NUMBERS_INLINE double double_of(std::uint64_t bits) { return __builtin_bit_cast(double, bits); }

/// .ftz: a subnormal number as a zero of its sign.
NUMBERS_INLINE float flushed(float x) {
    const std::uint32_t bits = bits_of(x);
    return float_of((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}
/// .sat: to [0, 1], NaN to 0.
NUMBERS_INLINE float saturated(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
NUMBERS_INLINE bool is_nan(float x) { return (bits_of(x) & 0x7fffffffu) > 0x7f800000u; }
NUMBERS_INLINE bool is_nan(double x) { return (bits_of(x) & 0x7fffffffffffffffull) > 0x7ff0000000000000ull; }

NUMBERS_INLINE float float_of_half(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16, rest = half & 0x7fff;
    const std::uint32_t shifted = rest << 13;
    const std::uint32_t normal = shifted + (112u << 23);
    const std::uint32_t special = shifted | 0x7f800000u;
    // A subnormal half is a small whole number times 2^-24.
    const std::uint32_t small = bits_of(static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-24f);
    return float_of(sign | (rest >= 0x7c00 ? special : rest < 0x0400 ? small : normal));
}

/// The nearest half, ties to even; beyond its range an infinity. NaN becomes 0x7fff.
NUMBERS_INLINE std::uint16_t half_of_float(float x) {
    const std::uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    const std::uint32_t odd = magnitude >> 13 & 1;
    const std::uint32_t normal = (magnitude + 0xfff + odd - (112u << 23)) >> 13;
    // Adding 0.5 leaves the half's subnormal bits at the low end, rounded by the addition itself.
    const std::uint32_t small = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
    const std::uint32_t made = magnitude > 0x7f800000u    ? 0x7fffu
                               : magnitude >= 0x477ff000u ? 0x7c00u
                               : magnitude < 0x38800000u  ? small
                                                          : normal;
    return static_cast<std::uint16_t>(magnitude > 0x7f800000u ? 0x7fffu : (sign | made));
}

NUMBERS_INLINE float float_of_bf16(std::uint16_t x) { return float_of(static_cast<std::uint32_t>(x) << 16); }
NUMBERS_INLINE std::uint16_t bf16_of_float(float x) {
    const std::uint32_t bits = bits_of(x);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000u ? 0x7fffu : rounded);
}

/// A double rounded to odd at float's precision: what a narrower format rounds the way the double would.
NUMBERS_INLINE float odd_float(double x) {
    const float near = static_cast<float>(x);
    if (is_nan(x) || static_cast<double>(near) == x || (bits_of(near) & 1) != 0) return near;
    // Inexact and even: the neighbour on the other side of x is odd.
    const bool up = (static_cast<double>(near) < x) == !(bits_of(near) >> 31);
    return float_of(up ? bits_of(near) + 1 : bits_of(near) - 1);
}

/// The nearest number of a format with `exponent` and `mantissa` bits; its bits without the sign. Finite formats
/// (e4m3) have no infinity; `satfinite` turns what is too large into the largest number.
NUMBERS_INLINE std::uint8_t fp8_of_float(float x, bool e4m3) {
    const std::uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffff;
    const auto sign = static_cast<std::uint8_t>(bits >> 24 & 0x80);
    if (magnitude > 0x7f800000u) return 0x7f;
    const int mantissa = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
    const std::uint32_t largest = e4m3 ? 0x7e : 0x7b;
    const int exponent = static_cast<int>(magnitude >> 23) - 127;
    const int least = 1 - bias;
    const int drop = 23 - mantissa + (exponent < least ? least - exponent : 0);
    if (drop > 25) return sign;
    const std::uint32_t whole = (magnitude & 0x7fffff) | 0x800000;
    const std::uint32_t half = 1u << (drop - 1);
    std::uint32_t kept = whole >> drop;
    const std::uint32_t rest = whole & ((1u << drop) - 1);
    if (rest > half || (rest == half && (kept & 1))) ++kept;
    const int field = exponent < least ? 0 : exponent + bias - 1;  // `kept` brings its leading one along
    const std::int64_t made = (static_cast<std::int64_t>(field) << mantissa) + kept;
    return static_cast<std::uint8_t>(
        sign | (made > static_cast<std::int64_t>(largest) ? largest : static_cast<std::uint32_t>(made)));
}
NUMBERS_INLINE float float_of_fp8(std::uint8_t x, bool e4m3) {
    const std::uint32_t sign = static_cast<std::uint32_t>(x & 0x80) << 24;
    const std::uint32_t rest = x & 0x7f;
    const int mantissa = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
    if (e4m3 ? rest == 0x7f : rest > 0x7c) return float_of(0x7fffffff);
    if (!e4m3 && rest == 0x7c) return float_of(sign | 0x7f800000u);
    const std::uint32_t exponent = rest >> mantissa, fraction = rest & ((1u << mantissa) - 1);
    const int power = (exponent ? static_cast<int>(exponent) : 1) - bias - mantissa;
    const auto whole = static_cast<float>(static_cast<std::int32_t>(exponent ? fraction | 1u << mantissa : fraction));
    const float value = whole * float_of(static_cast<std::uint32_t>(power + 127) << 23);
    return float_of(sign | bits_of(value));
}

/// tf32: the nearest, ties away from zero.
NUMBERS_INLINE std::uint32_t tf32_of_float(float x) {
    const std::uint32_t bits = bits_of(x);
    return (bits & 0x7fffffff) >= 0x7f800000u ? bits : (bits + 0x1000) & 0xffffe000u;
}

/// 2^x to about 1e-7, without a fused step, so that all builds give the same bits: a polynomial on [-0.5, 0.5].
NUMBERS_INLINE float exp2_of(float x) {
    const float low = x < -160.0f ? -160.0f : x;
    const float held = low > 160.0f ? 160.0f : low;
    const float whole = (held + 12582912.0f) - 12582912.0f;
    const float f = held - whole;
    float p = 1.5252734e-5f;
    p = p * f + 1.5403530e-4f;
    p = p * f + 1.3333558e-3f;
    p = p * f + 9.6181291e-3f;
    p = p * f + 5.5504109e-2f;
    p = p * f + 2.4022651e-1f;
    p = p * f + 6.9314718e-1f;
    p = p * f + 1.0f;
    const auto n = static_cast<std::int32_t>(whole);
    const std::int32_t first = n / 2, second = n - first;  // in two steps, for results that are subnormal
    const float made = p * float_of(static_cast<std::uint32_t>(first + 127) << 23) *
                       float_of(static_cast<std::uint32_t>(second + 127) << 23);
    return is_nan(x) ? x : made;
}
/// NaN gives way to a number, unless `nan` asks for it; -0 is less than +0.
template <bool nan>
NUMBERS_INLINE float lesser(float a, float b) {
    const float both = a < b ? a : b < a ? b : float_of(bits_of(a) | bits_of(b));
    const bool a_nan = is_nan(a), b_nan = is_nan(b);
    const float lost = nan || (a_nan && b_nan) ? float_of(0x7fffffffu) : a_nan ? b : a;
    return a_nan || b_nan ? lost : both;
}
template <bool nan>
NUMBERS_INLINE float greater(float a, float b) {
    const float both = a > b ? a : b > a ? b : float_of(bits_of(a) & bits_of(b));
    const bool a_nan = is_nan(a), b_nan = is_nan(b);
    const float lost = nan || (a_nan && b_nan) ? float_of(0x7fffffffu) : a_nan ? b : a;
    return a_nan || b_nan ? lost : both;
}
}  // namespace autotune::emulator
#endif
