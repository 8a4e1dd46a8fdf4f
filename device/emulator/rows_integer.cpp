// Whole numbers and bits.
#include "device/emulator/rows_map.h"

namespace autotune::emulator::AUTOTUNE_ROWS {
namespace {

template <class T>
void add(Warp& w, const Op& op, std::uint32_t m) {
    using U = typename Unsigned<T>::Type;
    map2<U, U, U>(w, op, m, [](U a, U b) { return static_cast<U>(a + b); });
}
template <class T>
void sub(Warp& w, const Op& op, std::uint32_t m) {
    using U = typename Unsigned<T>::Type;
    map2<U, U, U>(w, op, m, [](U a, U b) { return static_cast<U>(a - b); });
}
/// The s32 forms with .sat.
void add_sat(Warp& w, const Op& op, std::uint32_t m) {
    map2<std::int32_t, std::int32_t, std::int32_t>(w, op, m, [](std::int32_t a, std::int32_t b) {
        const std::int64_t sum = std::int64_t{a} + b;
        return static_cast<std::int32_t>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    });
}
void sub_sat(Warp& w, const Op& op, std::uint32_t m) {
    map2<std::int32_t, std::int32_t, std::int32_t>(w, op, m, [](std::int32_t a, std::int32_t b) {
        const std::int64_t sum = std::int64_t{a} - b;
        return static_cast<std::int32_t>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    });
}

/// With a carry in, a carry out (small bit 0), or both (bit 1: it is read).
template <class T, bool subtract>
void add_carry(Warp& w, const Op& op, std::uint32_t m) {
    using U = typename Unsigned<T>::Type;
    U* const d = w.row<U>(op.d);
    const U* const a = w.row<U>(op.a);
    const U* const b = w.row<U>(op.b);
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const bool in = (op.small & 2) != 0 && (w.carry >> i & 1) != 0;
        U made = 0;
        bool out = false;
        if constexpr (subtract) {
            made = static_cast<U>(a[i] - b[i] - (in ? 1 : 0));
            out = in ? a[i] <= b[i] : a[i] < b[i];
        } else {
            made = static_cast<U>(a[i] + b[i] + (in ? 1 : 0));
            out = in ? made <= a[i] : made < a[i];
        }
        d[i] = made;
        if (op.small & 1) w.carry = out ? w.carry | 1u << i : w.carry & ~(1u << i);
    }
}

template <class T>
void mul_lo(Warp& w, const Op& op, std::uint32_t m) {
    using U = typename Unsigned<T>::Type;
    map2<U, U, U>(w, op, m, [](U a, U b) { return static_cast<U>(std::uint64_t{a} * b); });
}
template <>
void mul_lo<std::uint32_t>(Warp& w, const Op& op, std::uint32_t m) {
    map2<std::uint32_t, std::uint32_t, std::uint32_t>(w, op, m, [](std::uint32_t a, std::uint32_t b) { return a * b; });
}
template <>
void mul_lo<std::int32_t>(Warp& w, const Op& op, std::uint32_t m) {
    mul_lo<std::uint32_t>(w, op, m);
}
template <class T>
ROWS_INLINE T high(T a, T b) {
    using W = typename Wide<T>::Type;
    return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> bits_of_type<T>);
}
template <class T>
void mul_hi(Warp& w, const Op& op, std::uint32_t m) {
    map2<T, T, T>(w, op, m, [](T a, T b) { return high<T>(a, b); });
}
template <class T>
void mul_wide(Warp& w, const Op& op, std::uint32_t m) {
    using W = typename Wide<T>::Type;
    map2<W, T, T>(w, op, m, [](T a, T b) { return static_cast<W>(static_cast<W>(a) * static_cast<W>(b)); });
}
template <class T>
void mad_lo(Warp& w, const Op& op, std::uint32_t m) {
    using U = typename Unsigned<T>::Type;
    map3<U, U, U, U>(w, op, m, [](U a, U b, U c) { return static_cast<U>(std::uint64_t{a} * b + c); });
}
template <>
void mad_lo<std::uint32_t>(Warp& w, const Op& op, std::uint32_t m) {
    map3<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
        w, op, m, [](std::uint32_t a, std::uint32_t b, std::uint32_t c) { return a * b + c; });
}
template <>
void mad_lo<std::int32_t>(Warp& w, const Op& op, std::uint32_t m) {
    mad_lo<std::uint32_t>(w, op, m);
}
template <class T>
void mad_hi(Warp& w, const Op& op, std::uint32_t m) {
    using U = typename Unsigned<T>::Type;
    map3<T, T, T, T>(w, op, m, [](T a, T b, T c) {
        return static_cast<T>(static_cast<U>(static_cast<U>(high<T>(a, b)) + static_cast<U>(c)));
    });
}
template <class T>
void mad_wide(Warp& w, const Op& op, std::uint32_t m) {
    using W = typename Wide<T>::Type;
    using U = typename Unsigned<W>::Type;
    map3<W, T, T, W>(w, op, m, [](T a, T b, W c) {
        return static_cast<W>(static_cast<U>(static_cast<W>(a) * static_cast<W>(b)) + static_cast<U>(c));
    });
}
template <class T>
ROWS_INLINE T narrow24(T a) {  // the low 24 bits
    if constexpr (is_signed_type<T>)
        return static_cast<T>(static_cast<T>(static_cast<std::uint32_t>(a) << 8) >> 8);
    else
        return a & 0xffffff;
}
template <class T>
void mul24(Warp& w, const Op& op, std::uint32_t m) {
    using W = typename Wide<T>::Type;
    map2<T, T, T>(w, op, m, [&](T a, T b) {
        const W product = static_cast<W>(narrow24(a)) * static_cast<W>(narrow24(b));
        return static_cast<T>(op.small ? product >> 16 : product);
    });
}
template <class T>
void mad24(Warp& w, const Op& op, std::uint32_t m) {
    using W = typename Wide<T>::Type;
    map3<T, T, T, T>(w, op, m, [&](T a, T b, T c) {
        const W product = static_cast<W>(narrow24(a)) * static_cast<W>(narrow24(b));
        return static_cast<T>(static_cast<std::uint32_t>(op.small ? product >> 16 : product) +
                              static_cast<std::uint32_t>(c));
    });
}

/// Division by zero gives all ones, and the remainder the dividend, as on the device.
template <class T>
void div(Warp& w, const Op& op, std::uint32_t m) {
    each2<T, T, T>(w, op, m, [](T a, T b) {
        if (b == 0) return static_cast<T>(-1);
        if constexpr (is_signed_type<T>)
            if (b == -1) return static_cast<T>(0 - static_cast<typename Unsigned<T>::Type>(a));
        return static_cast<T>(a / b);
    });
}
template <class T>
void rem(Warp& w, const Op& op, std::uint32_t m) {
    each2<T, T, T>(w, op, m, [](T a, T b) {
        if (b == 0) return a;
        if constexpr (is_signed_type<T>)
            if (b == -1) return T{0};
        return static_cast<T>(a % b);
    });
}
template <class T>
void abs(Warp& w, const Op& op, std::uint32_t m) {
    using U = typename Unsigned<T>::Type;
    map1<U, T>(w, op, m, [](T a) { return a < 0 ? static_cast<U>(0 - static_cast<U>(a)) : static_cast<U>(a); });
}
template <class T>
void neg(Warp& w, const Op& op, std::uint32_t m) {
    using U = typename Unsigned<T>::Type;
    map1<U, U>(w, op, m, [](U a) { return static_cast<U>(0 - a); });
}
template <class T>
void min(Warp& w, const Op& op, std::uint32_t m) {
    map2<T, T, T>(w, op, m, [](T a, T b) { return a < b ? a : b; });
}
template <class T>
void max(Warp& w, const Op& op, std::uint32_t m) {
    map2<T, T, T>(w, op, m, [](T a, T b) { return a > b ? a : b; });
}

template <class U>
void bit_and(Warp& w, const Op& op, std::uint32_t m) {
    map2<U, U, U>(w, op, m, [](U a, U b) { return static_cast<U>(a & b); });
}
template <class U>
void bit_or(Warp& w, const Op& op, std::uint32_t m) {
    map2<U, U, U>(w, op, m, [](U a, U b) { return static_cast<U>(a | b); });
}
template <class U>
void bit_xor(Warp& w, const Op& op, std::uint32_t m) {
    map2<U, U, U>(w, op, m, [](U a, U b) { return static_cast<U>(a ^ b); });
}
template <class U>
void bit_not(Warp& w, const Op& op, std::uint32_t m) {
    map1<U, U>(w, op, m, [](U a) { return static_cast<U>(~a); });
}
template <class U>
void cnot(Warp& w, const Op& op, std::uint32_t m) {
    map1<U, U>(w, op, m, [](U a) { return static_cast<U>(a == 0 ? 1 : 0); });
}
template <class U>
void shl(Warp& w, const Op& op, std::uint32_t m) {
    constexpr std::uint32_t n = bits_of_type<U>;
    map2<U, U, std::uint32_t>(w, op, m,
                              [](U a, std::uint32_t b) { return b < n ? static_cast<U>(a << (b & (n - 1))) : U{0}; });
}
template <class T>
void shr(Warp& w, const Op& op, std::uint32_t m) {
    constexpr std::uint32_t n = bits_of_type<T>;
    map2<T, T, std::uint32_t>(w, op, m, [](T a, std::uint32_t b) {
        if constexpr (is_signed_type<T>)
            return static_cast<T>(a >> (b < n ? b : n - 1));
        else
            return b < n ? static_cast<T>(a >> (b & (n - 1))) : T{0};
    });
}
/// small: bit 0 right, bit 1 clamp.
void shf(Warp& w, const Op& op, std::uint32_t m) {
    const bool right = (op.small & 1) != 0, clamp = (op.small & 2) != 0;
    map3<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
        w, op, m, [=](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
            const std::uint32_t n = clamp ? (c < 32 ? c : 32) : c & 31;
            const std::uint64_t both = std::uint64_t{b} << 32 | a;
            return static_cast<std::uint32_t>(right ? both >> n : (both << n) >> 32);
        });
}
template <class T>
void bfe(Warp& w, const Op& op, std::uint32_t m) {
    using U = typename Unsigned<T>::Type;
    each3<U, U, std::uint32_t, std::uint32_t>(w, op, m, [](U a, std::uint32_t b, std::uint32_t c) {
        constexpr std::uint32_t n = bits_of_type<T>;
        const std::uint32_t at = b & 0xff, count = c & 0xff;
        if (count == 0) return U{0};
        const std::uint32_t top = at + count - 1 < n - 1 ? at + count - 1 : n - 1;
        const bool sign = is_signed_type<T> && (a >> top & 1) != 0;
        U made = 0;
        if (at < n) made = static_cast<U>(a >> at);
        const std::uint32_t kept = at < n ? (count < n - at ? count : n - at) : 0;
        const U ones = kept >= n ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << kept) - 1);
        return static_cast<U>(sign ? made | static_cast<U>(~ones) : made & ones);
    });
}
/// d = b with `count` bits of a at position `at`; the count is the row at extra.
template <class U>
void bfi(Warp& w, const Op& op, std::uint32_t m) {
    const std::uint32_t* const counts = w.row<std::uint32_t>(static_cast<std::int32_t>(op.imm));
    U* const d = w.row<U>(op.d);
    const U* const a = w.row<U>(op.a);
    const U* const b = w.row<U>(op.b);
    const std::uint32_t* const c = w.row<std::uint32_t>(op.c);
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        constexpr std::uint32_t n = bits_of_type<U>;
        const std::uint32_t at = c[i] & 0xff, count = counts[i] & 0xff;
        if (at >= n || count == 0) {
            d[i] = b[i];
            continue;
        }
        const U ones = count >= n ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << count) - 1);
        const U field = static_cast<U>(ones << at);
        d[i] = static_cast<U>((b[i] & ~field) | (static_cast<U>(a[i] << at) & field));
    }
}
template <class T>
void bfind(Warp& w, const Op& op, std::uint32_t m) {
    using U = typename Unsigned<T>::Type;
    each1<std::uint32_t, T>(w, op, m, [&](T a) {
        const U bits = a < 0 ? static_cast<U>(~static_cast<U>(a)) : static_cast<U>(a);
        if (bits == 0) return all_lanes;
        const int top = 63 - __builtin_clzll(bits);
        return static_cast<std::uint32_t>(op.small ? bits_of_type<T> - 1 - top : top);
    });
}
template <class U>
void brev(Warp& w, const Op& op, std::uint32_t m) {
    each1<U, U>(w, op, m, [](U a) {
        U made = 0;
        for (int i = 0; i < bits_of_type<U>; ++i)
            made = static_cast<U>(made | (a >> i & 1) << (bits_of_type<U> - 1 - i));
        return made;
    });
}
template <class U>
void clz(Warp& w, const Op& op, std::uint32_t m) {
    each1<std::uint32_t, U>(w, op, m, [](U a) {
        return a == 0 ? static_cast<std::uint32_t>(bits_of_type<U>)
                      : static_cast<std::uint32_t>(__builtin_clzll(a) - (64 - bits_of_type<U>));
    });
}
template <class U>
void popc(Warp& w, const Op& op, std::uint32_t m) {
    each1<std::uint32_t, U>(w, op, m, [](U a) { return static_cast<std::uint32_t>(__builtin_popcountll(a)); });
}
/// small: 0 the plain form, else 1 f4e, 2 b4e, 3 rc8, 4 ecl, 5 ecr, 6 rc16.
void prmt(Warp& w, const Op& op, std::uint32_t m) {
    each3<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
        w, op, m, [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
            const std::uint64_t both = std::uint64_t{b} << 32 | a;
            const std::uint32_t s = c & 3;
            std::uint32_t made = 0;
            for (std::uint32_t i = 0; i < 4; ++i) {
                std::uint32_t from = c >> (4 * i) & 0xf;
                switch (op.small) {
                    case 1:
                        from = s + i;
                        break;
                    case 2:
                        from = (s + 8 - i) & 7;
                        break;
                    case 3:
                        from = s;
                        break;
                    case 4:
                        from = i > s ? i : s;
                        break;
                    case 5:
                        from = i < s ? i : s;
                        break;
                    case 6:
                        from = (s & 1) * 2 + (i & 1);
                        break;
                    default:
                        break;
                }
                std::uint32_t byte = static_cast<std::uint32_t>(both >> (8 * (from & 7)) & 0xff);
                if (from & 8) byte = byte & 0x80 ? 0xff : 0;
                made |= byte << (8 * i);
            }
            return made;
        });
}
template <class T>
void sad(Warp& w, const Op& op, std::uint32_t m) {
    using U = typename Unsigned<T>::Type;
    map3<U, T, T, U>(w, op, m, [](T a, T b, U c) {
        return static_cast<U>(c + (a < b ? static_cast<U>(static_cast<U>(b) - static_cast<U>(a))
                                         : static_cast<U>(static_cast<U>(a) - static_cast<U>(b))));
    });
}
/// small: bit 0 a is signed, bit 1 b is; bit 2: the upper half of b (dp2a.hi).
ROWS_INLINE std::int32_t byte_of(std::uint32_t x, int i, bool with_sign) {
    const auto byte = static_cast<std::uint8_t>(x >> (8 * i));
    return with_sign ? static_cast<std::int8_t>(byte) : byte;
}
void dp4a(Warp& w, const Op& op, std::uint32_t m) {
    each3<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
        w, op, m, [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
            for (int i = 0; i < 4; ++i)
                c += static_cast<std::uint32_t>(byte_of(a, i, op.small & 1) * byte_of(b, i, op.small & 2));
            return c;
        });
}
void dp2a(Warp& w, const Op& op, std::uint32_t m) {
    each3<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
        w, op, m, [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
            for (int i = 0; i < 2; ++i) {
                const auto half = static_cast<std::uint16_t>(a >> (16 * i));
                const std::int32_t x = op.small & 1 ? static_cast<std::int16_t>(half) : half;
                c += static_cast<std::uint32_t>(x * byte_of(b, i + (op.small & 4 ? 2 : 0), op.small & 2));
            }
            return c;
        });
}
/// small: the table.
void lop3(Warp& w, const Op& op, std::uint32_t m) {
    const std::uint32_t table = op.small;
    map3<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
        w, op, m, [=](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
            std::uint32_t made = 0;
            for (std::uint32_t i = 0; i < 8; ++i)
                made |= (0 - (table >> i & 1)) & (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
            return made;
        });
}

// Moves.
template <class U>
void mov(Warp& w, const Op& op, std::uint32_t m) {
    map1<U, U>(w, op, m, [](U a) { return a; });
}
void mov_predicate(Warp& w, const Op& op, std::uint32_t m) { set_predicate(w, op.d, m, w.predicate(op.a)); }
/// d = {extra...}: `small` parts, from the low end.
template <class U, class P>
void pack(Warp& w, const Op& op, std::uint32_t m) {
    U* const d = w.row<U>(op.d);
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        U made = 0;
        for (int part = 0; part < op.small; ++part)
            made = static_cast<U>(made | static_cast<U>(w.row<P>(part_of(w, op, part))[i]) << (bits_of_type<P> * part));
        d[i] = made;
    }
}
template <class U, class P>
void unpack(Warp& w, const Op& op, std::uint32_t m) {
    const U* const a = w.row<U>(op.a);
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const U from = a[i];
        for (int part = 0; part < op.small; ++part)
            w.row<P>(part_of(w, op, part))[i] = static_cast<P>(from >> (bits_of_type<P> * part));
    }
}
/// cvta: small 1 adds the window, else it is taken away; imm: its start. A null pointer stays one.
template <bool wide>
void offset_window(Warp& w, const Op& op, std::uint32_t m) {
    const auto window = static_cast<std::uint64_t>(op.imm);
    map1<std::uint64_t, std::uint64_t>(w, op, m, [=](std::uint64_t a) { return a + window; });
}

// Predicates: small is 0 and, 1 or, 2 xor, 3 not.
void predicate_logic(Warp& w, const Op& op, std::uint32_t m) {
    const std::uint32_t a = w.predicate(op.a), b = op.small == 3 ? 0 : w.predicate(op.b);
    set_predicate(w, op.d, m, op.small == 0 ? a & b : op.small == 1 ? a | b : op.small == 2 ? a ^ b : ~a);
}

#define ROWS_ALL_INTEGERS(name)         \
    switch (s.type) {                   \
        case PtxType::u16:              \
            return name<std::uint16_t>; \
        case PtxType::s16:              \
            return name<std::int16_t>;  \
        case PtxType::u32:              \
            return name<std::uint32_t>; \
        case PtxType::s32:              \
            return name<std::int32_t>;  \
        case PtxType::u64:              \
            return name<std::uint64_t>; \
        case PtxType::s64:              \
            return name<std::int64_t>;  \
        default:                        \
            return nullptr;             \
    }
#define ROWS_LARGE_INTEGERS(name)       \
    switch (s.type) {                   \
        case PtxType::u32:              \
            return name<std::uint32_t>; \
        case PtxType::s32:              \
            return name<std::int32_t>;  \
        case PtxType::u64:              \
            return name<std::uint64_t>; \
        case PtxType::s64:              \
            return name<std::int64_t>;  \
        default:                        \
            return nullptr;             \
    }
#define ROWS_SHORT_INTEGERS(name)       \
    switch (s.type) {                   \
        case PtxType::u16:              \
            return name<std::uint16_t>; \
        case PtxType::s16:              \
            return name<std::int16_t>;  \
        case PtxType::u32:              \
            return name<std::uint32_t>; \
        case PtxType::s32:              \
            return name<std::int32_t>;  \
        default:                        \
            return nullptr;             \
    }
}  // namespace

Handler select_integer(const Selector& s) {
    switch (s.operation) {
        case Operation::add:
            if (s.sat) return s.type == PtxType::s32 ? add_sat : nullptr;
            ROWS_ALL_INTEGERS(add)
        case Operation::sub:
            if (s.sat) return s.type == PtxType::s32 ? sub_sat : nullptr;
            ROWS_ALL_INTEGERS(sub)
        case Operation::add_carry:
            if (bytes_of(s.type) == 8) return add_carry<std::uint64_t, false>;
            return add_carry<std::uint32_t, false>;
        case Operation::sub_carry:
            if (bytes_of(s.type) == 8) return add_carry<std::uint64_t, true>;
            return add_carry<std::uint32_t, true>;
        case Operation::mul_lo:
            ROWS_ALL_INTEGERS(mul_lo)
        case Operation::mul_hi:
            ROWS_ALL_INTEGERS(mul_hi)
        case Operation::mul_wide:
            ROWS_SHORT_INTEGERS(mul_wide)
        case Operation::mad_lo:
            ROWS_ALL_INTEGERS(mad_lo)
        case Operation::mad_hi:
            ROWS_ALL_INTEGERS(mad_hi)
        case Operation::mad_wide:
            ROWS_SHORT_INTEGERS(mad_wide)
        case Operation::mul24:
            return s.type == PtxType::s32 ? Handler{mul24<std::int32_t>} : mul24<std::uint32_t>;
        case Operation::mad24:
            return s.type == PtxType::s32 ? Handler{mad24<std::int32_t>} : mad24<std::uint32_t>;
        case Operation::div:
            ROWS_ALL_INTEGERS(div)
        case Operation::rem:
            ROWS_ALL_INTEGERS(rem)
        case Operation::abs:
            switch (s.type) {
                case PtxType::s16:
                    return abs<std::int16_t>;
                case PtxType::s32:
                    return abs<std::int32_t>;
                case PtxType::s64:
                    return abs<std::int64_t>;
                default:
                    return nullptr;
            }
        case Operation::neg:
            ROWS_ALL_INTEGERS(neg)
        case Operation::min:
            ROWS_ALL_INTEGERS(min)
        case Operation::max:
            ROWS_ALL_INTEGERS(max)
        case Operation::and_:
            ROWS_WORDS(bit_and)
        case Operation::or_:
            ROWS_WORDS(bit_or)
        case Operation::xor_:
            ROWS_WORDS(bit_xor)
        case Operation::not_:
            ROWS_WORDS(bit_not)
        case Operation::cnot:
            ROWS_WORDS(cnot)
        case Operation::shl:
            ROWS_WORDS(shl)
        case Operation::shr:
            switch (s.type) {
                case PtxType::b16:
                    return shr<std::uint16_t>;
                case PtxType::b32:
                    return shr<std::uint32_t>;
                case PtxType::b64:
                    return shr<std::uint64_t>;
                default:
                    break;
            }
            ROWS_ALL_INTEGERS(shr)
        case Operation::shf:
            return shf;
        case Operation::bfe:
            ROWS_LARGE_INTEGERS(bfe)
        case Operation::bfi:
            return bytes_of(s.type) == 8 ? Handler{bfi<std::uint64_t>} : bfi<std::uint32_t>;
        case Operation::bfind:
            ROWS_LARGE_INTEGERS(bfind)
        case Operation::brev:
            return bytes_of(s.type) == 8 ? Handler{brev<std::uint64_t>} : brev<std::uint32_t>;
        case Operation::clz:
            return bytes_of(s.type) == 8 ? Handler{clz<std::uint64_t>} : clz<std::uint32_t>;
        case Operation::popc:
            return bytes_of(s.type) == 8 ? Handler{popc<std::uint64_t>} : popc<std::uint32_t>;
        case Operation::prmt:
            return prmt;
        case Operation::sad:
            ROWS_ALL_INTEGERS(sad)
        case Operation::dp4a:
            return dp4a;
        case Operation::dp2a:
            return dp2a;
        case Operation::lop3:
            return lop3;
        case Operation::mov:
            ROWS_WORDS(mov)
        case Operation::mov_pred:
            return mov_predicate;
        case Operation::pred_logic:
            return predicate_logic;
        case Operation::offset_window:
            return offset_window<true>;
        case Operation::pack:
        case Operation::unpack: {
            const bool in = s.operation == Operation::pack;
            const int whole = bytes_of(s.type), part = s.register_bytes;
            if (whole == 8 && part == 4)
                return in ? Handler{pack<std::uint64_t, std::uint32_t>} : unpack<std::uint64_t, std::uint32_t>;
            if (whole == 8 && part == 2)
                return in ? Handler{pack<std::uint64_t, std::uint16_t>} : unpack<std::uint64_t, std::uint16_t>;
            if (whole == 4 && part == 2)
                return in ? Handler{pack<std::uint32_t, std::uint16_t>} : unpack<std::uint32_t, std::uint16_t>;
            return nullptr;
        }
        default:
            return nullptr;
    }
}

}  // namespace autotune::emulator::AUTOTUNE_ROWS
