// What all parts of the hot unit share: applying a function to rows, and the types it is applied to. The parts are
// built twice, each build in a namespace of its own, AUTOTUNE_ROWS: see rows.h and CMakeLists.txt.
#ifndef AUTOTUNE_DEVICE_EMULATOR_ROWS_MAP_H
#define AUTOTUNE_DEVICE_EMULATOR_ROWS_MAP_H

#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "device/emulator/numbers.h"
#include "device/emulator/rows.h"
#include "device/emulator/warp.h"

#define ROWS_INLINE inline __attribute__((always_inline))
#define ROWS_LAMBDA __attribute__((always_inline))

namespace autotune::emulator::AUTOTUNE_ROWS {

// The parts, each with its handlers; null where it has none.
Handler select_integer(const Selector& s);
Handler select_f32(const Selector& s);
Handler select_f64(const Selector& s);
Handler select_half(const Selector& s);
Handler select_compare(const Selector& s);
Handler select_convert(const Selector& s);
Handler select_memory(const Selector& s);
Handler select_mma(const Selector& s);
void multiply_rows(const float* a, const float* b, float* c, int m, int n, int k);

namespace {

// Rows of operands are equal or apart, never shifted, hence `ivdep`.

template <int bytes>
struct Word;
template <>
struct Word<2> {
    using Type = std::uint16_t;
};
template <>
struct Word<4> {
    using Type = std::uint32_t;
};
template <>
struct Word<8> {
    using Type = std::uint64_t;
};

/// What was made where the lane takes part, else what was there: with bits, since a branch is no vector instruction.
template <class D>
ROWS_INLINE D kept(std::uint32_t mask, int lane, D made, D before) {
    using W = typename Word<sizeof(D)>::Type;
    const auto chosen = static_cast<W>(0 - static_cast<W>(mask >> lane & 1));
    const W bits = static_cast<W>((__builtin_bit_cast(W, made) & chosen) |
                                  (__builtin_bit_cast(W, before) & static_cast<W>(~chosen)));
    return __builtin_bit_cast(D, bits);
}

template <class D, class A, class F>
ROWS_INLINE void map1(Warp& w, const Op& op, std::uint32_t mask, F f) {
    D* const d = w.row<D>(op.d);
    const A* const a = w.row<A>(op.a);
    if (mask == all_lanes) {
#pragma GCC ivdep
        for (int i = 0; i < lanes; ++i) d[i] = f(a[i]);
    } else {
#pragma GCC ivdep
        for (int i = 0; i < lanes; ++i) {
            const D made = f(a[i]);
            d[i] = kept(mask, i, made, d[i]);
        }
    }
}

template <class D, class A, class B, class F>
ROWS_INLINE void map2(Warp& w, const Op& op, std::uint32_t mask, F f) {
    D* const d = w.row<D>(op.d);
    const A* const a = w.row<A>(op.a);
    const B* const b = w.row<B>(op.b);
    if (mask == all_lanes) {
#pragma GCC ivdep
        for (int i = 0; i < lanes; ++i) d[i] = f(a[i], b[i]);
    } else {
#pragma GCC ivdep
        for (int i = 0; i < lanes; ++i) {
            const D made = f(a[i], b[i]);
            d[i] = kept(mask, i, made, d[i]);
        }
    }
}

template <class D, class A, class B, class C, class F>
ROWS_INLINE void map3(Warp& w, const Op& op, std::uint32_t mask, F f) {
    D* const d = w.row<D>(op.d);
    const A* const a = w.row<A>(op.a);
    const B* const b = w.row<B>(op.b);
    const C* const c = w.row<C>(op.c);
    if (mask == all_lanes) {
#pragma GCC ivdep
        for (int i = 0; i < lanes; ++i) d[i] = f(a[i], b[i], c[i]);
    } else {
#pragma GCC ivdep
        for (int i = 0; i < lanes; ++i) {
            const D made = f(a[i], b[i], c[i]);
            d[i] = kept(mask, i, made, d[i]);
        }
    }
}

/// As above for what must not be computed for lanes that take no part, or gains nothing from whole rows.
template <class D, class A, class B, class C, class F>
ROWS_INLINE void each3(Warp& w, const Op& op, std::uint32_t mask, F f) {
    D* const d = w.row<D>(op.d);
    const A* const a = w.row<A>(op.a);
    const B* const b = w.row<B>(op.b);
    const C* const c = w.row<C>(op.c);
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        d[i] = f(a[i], b[i], c[i]);
    }
}
template <class D, class A, class B, class F>
ROWS_INLINE void each2(Warp& w, const Op& op, std::uint32_t mask, F f) {
    each3<D, A, B, B>(w, op, mask, [&](A a, B b, B) { return f(a, b); });
}
template <class D, class A, class F>
ROWS_INLINE void each1(Warp& w, const Op& op, std::uint32_t mask, F f) {
    D* const d = w.row<D>(op.d);
    const A* const a = w.row<A>(op.a);
    for (std::uint32_t left = mask; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        d[i] = f(a[i]);
    }
}

ROWS_INLINE void set_predicate(Warp& w, std::int32_t at, std::uint32_t mask, std::uint32_t bits) {
    std::uint32_t& p = w.predicate(at);
    p = (p & ~mask) | (bits & mask);
}

/// Further operands, in Program::extra.
ROWS_INLINE std::int32_t part_of(const Warp& w, const Op& op, int part) {
    return w.extra[op.extra + static_cast<std::uint32_t>(part)];
}

// Types by the size of their products and without their sign.
template <class T>
struct Wide;
template <>
struct Wide<std::uint16_t> {
    using Type = std::uint32_t;
};
template <>
struct Wide<std::int16_t> {
    using Type = std::int32_t;
};
template <>
struct Wide<std::uint32_t> {
    using Type = std::uint64_t;
};
template <>
struct Wide<std::int32_t> {
    using Type = std::int64_t;
};
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;
template <>
struct Wide<std::uint64_t> {
    using Type = u128;
};
template <>
struct Wide<std::int64_t> {
    using Type = s128;
};

template <class T>
struct Unsigned;
template <>
struct Unsigned<std::uint16_t> {
    using Type = std::uint16_t;
};
template <>
struct Unsigned<std::int16_t> {
    using Type = std::uint16_t;
};
template <>
struct Unsigned<std::uint32_t> {
    using Type = std::uint32_t;
};
template <>
struct Unsigned<std::int32_t> {
    using Type = std::uint32_t;
};
template <>
struct Unsigned<std::uint64_t> {
    using Type = std::uint64_t;
};
template <>
struct Unsigned<std::int64_t> {
    using Type = std::uint64_t;
};

template <class T>
constexpr bool is_signed_type = static_cast<T>(-1) < static_cast<T>(1);
template <class T>
constexpr int bits_of_type = static_cast<int>(sizeof(T)) * 8;

// The two small floats, and what .ftz, .sat and .relu do to them.
struct Half {
    static ROWS_INLINE float in(std::uint16_t x) { return float_of_half(x); }
    static ROWS_INLINE std::uint16_t out(float x) { return half_of_float(x); }
    static constexpr std::uint16_t least_normal = 0x0400, one = 0x3c00, nan = 0x7fff, infinity = 0x7c00;
};
struct Brain {
    static ROWS_INLINE float in(std::uint16_t x) { return float_of_bf16(x); }
    static ROWS_INLINE std::uint16_t out(float x) { return bf16_of_float(x); }
    static constexpr std::uint16_t least_normal = 0x0080, one = 0x3f80, nan = 0x7fff, infinity = 0x7f80;
};

/// op.small: bit 0 ftz, bit 1 sat, bit 2 relu, bit 3 NaN wins.
template <class N>
ROWS_INLINE std::uint16_t half_in(std::uint16_t x, int how) {
    return (how & 1) && (x & 0x7fff) < N::least_normal ? x & 0x8000 : x;
}
template <class N>
ROWS_INLINE std::uint16_t half_out(std::uint16_t x, int how) {
    x = half_in<N>(x, how);
    const bool nan = (x & 0x7fff) > N::infinity;
    if (how & 2) x = nan || (x & 0x8000) ? 0 : x > N::one ? N::one : x;
    if (how & 4) x = nan ? N::nan : x & 0x8000 ? 0 : x;
    return x;
}
#define ROWS_WORDS(name)                \
    switch (bytes_of(s.type)) {         \
        case 2:                         \
            return name<std::uint16_t>; \
        case 4:                         \
            return name<std::uint32_t>; \
        case 8:                         \
            return name<std::uint64_t>; \
        default:                        \
            return nullptr;             \
    }

}  // namespace
}  // namespace autotune::emulator::AUTOTUNE_ROWS
#endif
