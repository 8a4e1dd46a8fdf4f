// What host and device compute alike, to the bit: the input generator, the narrow types, and the judgement of one
// element. g++ compiles it into the library and NVRTC into device/support.cu, so there is one text for both.
//
// Only operations that IEEE 754 rounds exactly are used, and never fused: whole numbers wherever they can do it.
// NVRTC has no standard headers, so the types are built-in ones.
#ifndef AUTOTUNE_DEVICE_SUPPORT_MATH_H
#define AUTOTUNE_DEVICE_SUPPORT_MATH_H

#ifdef __CUDACC__
#define AUTOTUNE_BOTH __host__ __device__ __forceinline__
#else
#define AUTOTUNE_BOTH inline
#endif

namespace autotune::support {

using U32 = unsigned int;
using U64 = unsigned long long;
using I64 = long long;

// ---- Arithmetic that no compiler may fuse. The host's file is compiled with -ffp-contract=off.

AUTOTUNE_BOTH double add(double a, double b) {
#ifdef __CUDA_ARCH__
    return __dadd_rn(a, b);
#else
    return a + b;
#endif
}

AUTOTUNE_BOTH double multiply(double a, double b) {
#ifdef __CUDA_ARCH__
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

AUTOTUNE_BOTH U64 bits_of(double x) { return __builtin_bit_cast(U64, x); }
AUTOTUNE_BOTH double double_of(U64 bits) { return __builtin_bit_cast(double, bits); }
AUTOTUNE_BOTH double magnitude_of(double x) { return double_of(bits_of(x) & 0x7fffffffffffffffULL); }
AUTOTUNE_BOTH bool is_nan(double x) { return (bits_of(x) & 0x7fffffffffffffffULL) > 0x7ff0000000000000ULL; }
AUTOTUNE_BOTH bool is_finite(double x) { return (bits_of(x) & 0x7ff0000000000000ULL) != 0x7ff0000000000000ULL; }
AUTOTUNE_BOTH double round_down(double x) {
#ifdef __CUDA_ARCH__
    return floor(x);
#else
    return __builtin_floor(x);
#endif
}
AUTOTUNE_BOTH double round_to_whole(double x) {
#ifdef __CUDA_ARCH__
    return rint(x);
#else
    return __builtin_rint(x);
#endif
}
/// 2^exponent, within a double's normal range.
AUTOTUNE_BOTH double power_of_two(int exponent) { return double_of(static_cast<U64>(exponent + 1023) << 52); }

// ---- Random bits: Philox4x32-10, Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.

struct Four {
    U32 lane[4];
};

AUTOTUNE_BOTH Four philox(Four counter, U32 key0, U32 key1) {
    for (int round = 0; round < 10; ++round) {
        const U64 left = 0xD2511F53ULL * counter.lane[0];
        const U64 right = 0xCD9E8D57ULL * counter.lane[2];
        counter = Four{{static_cast<U32>(right >> 32) ^ counter.lane[1] ^ key0, static_cast<U32>(right),
                        static_cast<U32>(left >> 32) ^ counter.lane[3] ^ key1, static_cast<U32>(left)}};
        key0 += 0x9E3779B9U;
        key1 += 0xBB67AE85U;
    }
    return counter;
}

/// The bits of elements 4 * block to 4 * block + 3.
AUTOTUNE_BOTH Four random_bits(U64 seed, U64 stream, U64 block) {
    return philox(Four{{static_cast<U32>(block), static_cast<U32>(block >> 32), static_cast<U32>(stream),
                        static_cast<U32>(stream >> 32)}},
                  static_cast<U32>(seed), static_cast<U32>(seed >> 32));
}

/// Flipped into a stream to draw the further digits of f64.
constexpr U64 finer_stream = 1ULL << 63;

AUTOTUNE_BOTH U32 mix(U32 x) {  // the finaliser of MurmurHash3
    x = (x ^ x >> 16) * 0x85ebca6bU;
    x = (x ^ x >> 13) * 0xc2b2ae35U;
    return x ^ x >> 16;
}

// ---- The standard normal by its inverse distribution: a table over 32 steps an octave of the tail's probability and
// straight lines between, all in whole numbers of 2^-24. The host makes the table (device/fill.cpp) and hands it over.

constexpr int normal_table_size = 32 + 26 * 32 + 1;

/// Where entry i stands: the low 31 random bits, whose tail probability is (bits + 1/2) / 2^32.
AUTOTUNE_BOTH U64 normal_table_position(int i) {
    if (i < 32) return static_cast<U64>(i);
    const int octave = (i - 32) / 32, step = (i - 32) % 32;
    return static_cast<U64>(32 + step) << octave;
}

/// In units of 2^-24.
AUTOTUNE_BOTH I64 normal_fixed(U32 bits, const int* table) {
    const U32 tail = bits & 0x7fffffffU;
    I64 size;
    if (tail < 32) {
        size = table[tail];
    } else {
        int top = 5;
        while (tail >> (top + 1)) ++top;
        const int octave = top - 5;
        const int at = 32 + octave * 32 + static_cast<int>((tail >> octave) & 31U);
        const I64 part = static_cast<I64>(tail & ((1U << octave) - 1U));
        size = table[at] + (((static_cast<I64>(table[at + 1]) - table[at]) * part) >> octave);
    }
    return bits & 0x80000000U ? -size : size;
}

// ---- A bijection of [0, n): a Feistel network over the next power of four, walked until it lands inside.

AUTOTUNE_BOTH U64 permuted(U64 index, U64 n, U64 seed, U64 stream, U64 row) {
    if (n <= 1) return 0;
    int half = 1;
    while (half < 32 && (1ULL << (2 * half)) < n) ++half;
    const U32 mask = half == 32 ? 0xffffffffU : (1U << half) - 1U;
    const Four key = philox(Four{{static_cast<U32>(row), static_cast<U32>(row >> 32), static_cast<U32>(stream),
                                  static_cast<U32>(stream >> 32) ^ 0x5bd1e995U}},
                            static_cast<U32>(seed), static_cast<U32>(seed >> 32));
    U64 at = index;
    do {
        U32 left = static_cast<U32>(at >> half) & mask, right = static_cast<U32>(at) & mask;
        for (int round = 0; round < 8; ++round) {
            const U32 next = left ^ (mix(right ^ (key.lane[round & 3] + static_cast<U32>(round))) & mask);
            left = right;
            right = next;
        }
        at = static_cast<U64>(left) << half | right;
    } while (at >= n);
    return at;
}

// ---- Element types, in the order of autotune::DType.

enum Type { f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i16, i8, u8, u32, boolean };

AUTOTUNE_BOTH bool is_floating(int type) { return type <= f8e5m2; }
AUTOTUNE_BOTH int bytes_of(int type) {
    switch (type) {
        case f64:
        case i64:
            return 8;
        case f32:
        case i32:
        case u32:
            return 4;
        case f16:
        case bf16:
        case i16:
            return 2;
        default:
            return 1;
    }
}
AUTOTUNE_BOTH int exponent_bits(int type) {
    switch (type) {
        case f64:
            return 11;
        case f32:
        case bf16:
            return 8;
        case f8e4m3:
            return 4;
        default:
            return 5;
    }
}
AUTOTUNE_BOTH int mantissa_bits(int type) {
    switch (type) {
        case f64:
            return 52;
        case f32:
            return 23;
        case f16:
            return 10;
        case bf16:
            return 7;
        case f8e4m3:
            return 3;
        default:
            return 2;
    }
}

/// A narrow floating type from a double: to nearest, ties to even; too large becomes an infinity, and in e4m3, which
/// has none, the largest number.
AUTOTUNE_BOTH U32 encode_narrow(double x, int type) {
    const int exponents = exponent_bits(type), mantissas = mantissa_bits(type);
    const int bias = (1 << (exponents - 1)) - 1;
    const U64 raw = bits_of(x);
    const U32 sign = static_cast<U32>(raw >> 63) << (exponents + mantissas);
    const U32 infinity = ((1U << exponents) - 1U) << mantissas;
    const U32 top = type == f8e4m3 ? 0x7eU : infinity;
    if (is_nan(x)) return sign | infinity | (type == f8e4m3 ? 7U : 1U << (mantissas - 1));
    const int exponent = static_cast<int>(raw >> 52 & 0x7ff) - 1023;
    U32 result = 0;
    if (exponent == 1024) {
        result = top;
    } else if (exponent > -1023) {
        const U64 mantissa = (raw & 0xfffffffffffffULL) | 1ULL << 52;
        const int lowest = 1 - bias;
        const int drop = 52 - mantissas + (exponent < lowest ? lowest - exponent : 0);
        if (drop < 54) {
            const U64 rest = mantissa & ((1ULL << drop) - 1), tie = 1ULL << (drop - 1);
            U64 kept = mantissa >> drop;
            if (rest > tie || (rest == tie && (kept & 1))) ++kept;
            // A carry out of the mantissa raises the exponent by itself.
            const U64 base = exponent < lowest ? 0 : static_cast<U64>(exponent + bias - 1) << mantissas;
            const U64 whole = base + kept;
            result = whole > top ? top : static_cast<U32>(whole);
        }
    }
    return sign | result;
}

AUTOTUNE_BOTH double decode_narrow(U32 bits, int type) {
    const int exponents = exponent_bits(type), mantissas = mantissa_bits(type);
    const int bias = (1 << (exponents - 1)) - 1;
    const U64 sign = static_cast<U64>(bits >> (exponents + mantissas) & 1U) << 63;
    const int exponent = static_cast<int>(bits >> mantissas & ((1U << exponents) - 1U));
    const U64 mantissa = bits & ((1U << mantissas) - 1U);
    const bool all_ones = exponent == (1 << exponents) - 1;
    if (type == f8e4m3 ? all_ones && mantissa == 7 : all_ones)
        return double_of(sign | 0x7ff0000000000000ULL | mantissa << (52 - mantissas));
    if (exponent == 0)
        return double_of(sign | bits_of(multiply(static_cast<double>(mantissa), power_of_two(1 - bias - mantissas))));
    return double_of(sign | static_cast<U64>(exponent - bias + 1023) << 52 | mantissa << (52 - mantissas));
}

/// The bits of an element of `type`. Whole types round to nearest and stop at their ends; a boolean is x > 0.
AUTOTUNE_BOTH U64 encode(double x, int type) {
    if (type == f64) return bits_of(x);
    if (is_floating(type)) return encode_narrow(x, type);
    if (type == boolean) return x > 0 ? 1 : 0;
    if (is_nan(x)) return 0;
    const bool is_unsigned = type == u8 || type == u32;
    const int width = 8 * bytes_of(type);
    const double top = power_of_two(is_unsigned ? width : width - 1);
    const double whole = round_to_whole(x);
    if (whole >= top) return is_unsigned ? (1ULL << width) - 1 : (1ULL << (width - 1)) - 1;
    if (whole < (is_unsigned ? 0.0 : -top)) return is_unsigned ? 0 : 1ULL << (width - 1);
    return static_cast<U64>(static_cast<I64>(whole));
}

/// The element at `address`, unaligned addresses too; whole numbers beyond 2^53 are rounded.
AUTOTUNE_BOTH U64 load_bits(const unsigned char* address, int bytes) {
    U64 bits = 0;
    for (int i = 0; i < bytes; ++i) bits |= static_cast<U64>(address[i]) << (8 * i);
    return bits;
}

AUTOTUNE_BOTH void store_bits(unsigned char* address, int bytes, U64 bits) {
    for (int i = 0; i < bytes; ++i) address[i] = static_cast<unsigned char>(bits >> (8 * i));
}

AUTOTUNE_BOTH double decode(U64 bits, int type) {
    switch (type) {
        case f64:
            return double_of(bits);
        case f32:
            return static_cast<double>(__builtin_bit_cast(float, static_cast<U32>(bits)));
        case f16:
        case bf16:
        case f8e4m3:
        case f8e5m2:
            return decode_narrow(static_cast<U32>(bits), type);
        case i64:
            return static_cast<double>(static_cast<I64>(bits));
        case i32:
            return static_cast<double>(static_cast<int>(static_cast<U32>(bits)));
        case i16:
            return static_cast<double>(static_cast<short>(bits & 0xffff));
        case i8:
            return static_cast<double>(static_cast<signed char>(bits & 0xff));
        case boolean:
            return (bits & 0xff) != 0 ? 1.0 : 0.0;
        default:
            return static_cast<double>(bits);
    }
}

// ---- Fills.

enum Kind { normal, uniform, constant, integers, permutation, sorted, lengths, special, zero };

struct Fill {
    int kind, type;
    U64 seed, stream;
    double low, high;
    U64 modulus;   ///< permutation and sorted: elements a row; 0: all
    U64 elements;  ///< of the tensor
};

/// A whole number in [low, high]; ranges beyond 2^32 have gaps.
AUTOTUNE_BOTH double whole_between(const Fill& fill, U32 bits) {
    const double span = add(add(fill.high, -fill.low), 1.0);
    if (!(span > 1.0)) return fill.low;
    const double step = round_down(multiply(span, multiply(static_cast<double>(bits), power_of_two(-32))));
    return add(fill.low, step);
}

/// Zeros of both signs, subnormals, the smallest normal numbers, large numbers whose square is finite; ends of whole
/// types; the rest ordinary.
AUTOTUNE_BOTH double special_value(const Fill& fill, U32 bits, const int* table) {
    const U32 which = mix(bits) % 16;
    if (!is_floating(fill.type)) {
        const double top = power_of_two(8 * bytes_of(fill.type) - 1);
        const double edges[] = {0, 1, -1, 2.0 * top, -top};
        return which < 5 ? edges[which] : whole_between(fill, bits);
    }
    const int bias = (1 << (exponent_bits(fill.type) - 1)) - 1;
    const double normal_least = power_of_two(1 - bias);
    const double subnormal_least = multiply(normal_least, power_of_two(-mantissa_bits(fill.type)));
    const double large = power_of_two(bias / 2);
    const double edges[] = {
        0.0, -0.0, subnormal_least, -subnormal_least, add(normal_least, -subnormal_least), normal_least, large, -large,
        1.0, -1.0};
    if (which < 10) return edges[which];
    return multiply(static_cast<double>(normal_fixed(bits, table)), power_of_two(-24));
}

/// Element `index` before it is rounded to its type. bits, more: its random words; `more` only adds digits to f64.
AUTOTUNE_BOTH double fill_value(const Fill& fill, U64 index, U32 bits, U32 more, const int* table) {
    const U64 row_length = fill.modulus ? fill.modulus : fill.elements;
    switch (fill.kind) {
        case normal: {
            const I64 fixed = normal_fixed(bits, table);
            if (fill.type != f64) return multiply(static_cast<double>(fixed), power_of_two(-24));
            const I64 finer = fixed * (1LL << 29) + static_cast<I64>(more >> 3);
            return multiply(static_cast<double>(finer), power_of_two(-53));
        }
        case uniform: {
            if (!is_floating(fill.type)) return whole_between(fill, bits);
            const U64 wide = static_cast<U64>(bits) << 21 | more >> 11;
            const double share = fill.type == f64 ? multiply(static_cast<double>(wide), power_of_two(-53))
                                                  : multiply(static_cast<double>(bits), power_of_two(-32));
            return add(fill.low, multiply(add(fill.high, -fill.low), share));
        }
        case constant:
            return fill.low;
        case integers:
            return whole_between(fill, bits);
        case permutation:
            return static_cast<double>(
                permuted(index % row_length, row_length, fill.seed, fill.stream, index / row_length));
        case sorted: {
            const double at =
                add(static_cast<double>(index % row_length), multiply(static_cast<double>(bits), power_of_two(-32)));
            const double whole = is_floating(fill.type) ? 0.0 : 1.0;
            const double span = add(add(fill.high, -fill.low), whole);
            // A quotient is rounded exactly on both sides, and rounding keeps order.
            const double value = add(fill.low, multiply(span, at / static_cast<double>(row_length)));
            if (is_floating(fill.type)) return value;
            const double down = round_down(value);
            return down > fill.high ? fill.high : down;
        }
        case lengths:
            return index == 0 ? fill.high : index == 1 ? fill.low : whole_between(fill, bits);
        case special:
            return special_value(fill, bits, table);
        default:
            return 0.0;
    }
}

// ---- The judgement of one element.

struct Judgement {
    bool good;
    bool not_finite;  ///< bad, and not finite where the reference is
    double bound;
    double ratio;  ///< error over bound, 0 where either is not finite; 1e300 where the bound is 0 and the error is not
};

struct Limits {
    double of_value, of_magnitude, absolute;
};

/// A strided tensor, as autotune_compare takes it.
constexpr int most_dimensions = 8;
struct View {
    int type, rank;
    U64 elements;
    U64 extent[most_dimensions];
    I64 stride[most_dimensions];  ///< in elements
};

/// What autotune_compare counts; first_bad starts as all ones, the rest as 0.
struct Tally {
    U64 bad, still_poison, not_finite, first_bad, largest_ratio_bits;
};

/// NaN matches NaN, an infinity itself; a finite reference too large for the type may have become an infinity.
AUTOTUNE_BOTH Judgement judge(double got, double want, double magnitude, const Limits& limits, int type) {
    if (is_nan(want)) return {is_nan(got), false, 0.0, 0.0};
    if (!is_finite(want)) return {got == want, false, 0.0, 0.0};
    const double size = magnitude_of(want);
    const double terms = is_nan(magnitude) ? size : magnitude;
    const double bound =
        add(add(multiply(limits.of_value, size), multiply(limits.of_magnitude, terms)), limits.absolute);
    if (!is_finite(got)) {
        if (is_floating(type) && type != f8e4m3 && decode(encode(want, type), type) == got)
            return {true, false, bound, 0.0};
        return {false, true, bound, 0.0};
    }
    const double error = magnitude_of(add(got, -want));
    const double ratio = error == 0 ? 0.0 : bound > 0 ? error / bound : 1e300;
    return {error <= bound, false, bound, ratio};
}

}  // namespace autotune::support
#endif
