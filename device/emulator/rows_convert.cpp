// cvt. Whole numbers of 8 bits live in registers of 16 bits or more, hence the register's type beside the number's.
#include "device/emulator/rows_map.h"

namespace autotune::emulator::AUTOTUNE_ROWS {
namespace {

/// Rounds to a whole number in the direction that is asked for; rni is to even.
ROWS_INLINE double whole_of(double x, Rounding rounding) {
    switch (rounding) {
        case Rounding::rzi:
        case Rounding::rz:
            return __builtin_trunc(x);
        case Rounding::rmi:
        case Rounding::rm:
            return __builtin_floor(x);
        case Rounding::rpi:
        case Rounding::rp:
            return __builtin_ceil(x);
        default:
            return __builtin_nearbyint(x);
    }
}
ROWS_INLINE float whole_of(float x, Rounding rounding) {
    switch (rounding) {
        case Rounding::rzi:
        case Rounding::rz:
            return __builtin_truncf(x);
        case Rounding::rmi:
        case Rounding::rm:
            return __builtin_floorf(x);
        case Rounding::rpi:
        case Rounding::rp:
            return __builtin_ceilf(x);
        default:
            return __builtin_nearbyintf(x);
    }
}

/// To a whole number: what is out of range becomes the nearest in range; NaN becomes 0.
template <class T, class F>
ROWS_INLINE T clamped(F x) {
    constexpr bool with_sign = is_signed_type<T>;
    constexpr int bits = bits_of_type<T> - (with_sign ? 1 : 0);
    constexpr F above = static_cast<F>(bits == 64   ? 0x1p64
                                       : bits == 63 ? 0x1p63
                                                    : static_cast<double>(1ull << (bits & 63)));
    if (is_nan(x)) return 0;
    if (x >= above) return static_cast<T>(with_sign ? (~0ull >> (64 - bits)) : ~0ull);
    if (with_sign ? x < -above : x < 0) return with_sign ? static_cast<T>(1ull << bits) : T{0};
    return static_cast<T>(x);
}
// Types of 16 bits and less for clamped() and is_signed_type: standard ones.

template <class R, class T, class F>
void integer_of_float(Warp& w, const Op& op, std::uint32_t m) {
    const auto rounding = static_cast<Rounding>(op.small & 0xff);
    const bool ftz = (op.small & 0x100) != 0;
    each1<R, F>(w, op, m, [=](F a) {
        F x = a;
        if constexpr (sizeof(F) == 4)
            if (ftz) x = flushed(x);
        return static_cast<R>(clamped<T>(whole_of(x, rounding)));
    });
}
/// The usual one, a row at a time.
void s32_of_f32_toward_zero(Warp& w, const Op& op, std::uint32_t m) {
    map1<std::int32_t, float>(w, op, m, [](float a) {
        const bool nan = is_nan(a);
        const float low = a < -2147483648.0f ? -2147483648.0f : a;
        const bool high = low >= 2147483648.0f;
        const auto made = static_cast<std::int32_t>(high || nan ? 0.0f : low);
        return high ? INT32_MAX : made;
    });
}
template <class R, class T>
void integer_of_half(Warp& w, const Op& op, std::uint32_t m) {
    const auto rounding = static_cast<Rounding>(op.small & 0xff);
    const bool brain = (op.small & 0x200) != 0;
    each1<R, std::uint16_t>(w, op, m, [=](std::uint16_t a) {
        return static_cast<R>(clamped<T>(whole_of(brain ? float_of_bf16(a) : float_of_half(a), rounding)));
    });
}
template <class F, class R, class T>
void float_of_integer(Warp& w, const Op& op, std::uint32_t m) {
    map1<F, R>(w, op, m, [](R a) { return static_cast<F>(static_cast<T>(a)); });
}
template <class N, class R, class T>
void half_of_integer(Warp& w, const Op& op, std::uint32_t m) {
    each1<std::uint16_t, R>(w, op, m, [](R a) {
        const auto x = static_cast<T>(a);
        const auto near = static_cast<double>(x);  // of 64 bits: rounded to odd by hand
        std::uint64_t bits = bits_of(near);
        if constexpr (sizeof(T) == 8) {
            if (__builtin_fabs(near) < 0x1p62) {
                const T back = static_cast<T>(near);
                if (back != x && !(bits & 1)) bits = (back < x) == !(bits >> 63) ? bits + 1 : bits - 1;
            }
        }
        return N::out(odd_float(double_of(bits)));
    });
}

/// Between whole numbers. small 1: .sat.
template <class RD, class TD, class RS, class TS>
void integer_of_integer(Warp& w, const Op& op, std::uint32_t m) {
    if (op.small == 0) {
        map1<RD, RS>(w, op, m, [](RS a) { return static_cast<RD>(static_cast<TD>(static_cast<TS>(a))); });
        return;
    }
    each1<RD, RS>(w, op, m, [](RS a) {
        const auto x = static_cast<s128>(static_cast<TS>(a));
        constexpr int bits = bits_of_type<TD> - (is_signed_type<TD> ? 1 : 0);
        constexpr s128 most = (static_cast<s128>(1) << bits) - 1, least = is_signed_type<TD> ? -most - 1 : 0;
        return static_cast<RD>(static_cast<TD>(x > most ? most : x < least ? least : x));
    });
}

// Between floats. small: the rounding of a conversion to a whole float, 0x100 ftz, 0x400 sat.
void f32_whole(Warp& w, const Op& op, std::uint32_t m) {
    const auto rounding = static_cast<Rounding>(op.small & 0xff);
    const bool ftz = (op.small & 0x100) != 0, sat = (op.small & 0x400) != 0;
    map1<float, float>(w, op, m, [=](float a) {
        const float x = ftz ? flushed(a) : a;
        const float made = rounding == Rounding::none ? x : whole_of(x, rounding);
        return sat ? saturated(made) : made;
    });
}
void f64_whole(Warp& w, const Op& op, std::uint32_t m) {
    const auto rounding = static_cast<Rounding>(op.small & 0xff);
    const bool sat = (op.small & 0x400) != 0;
    map1<double, double>(w, op, m, [=](double a) {
        const double made = rounding == Rounding::none ? a : whole_of(a, rounding);
        return sat ? (made > 0 ? (made < 1 ? made : 1.0) : 0.0) : made;
    });
}
void f64_of_f32(Warp& w, const Op& op, std::uint32_t m) {
    const bool ftz = (op.small & 0x100) != 0;
    map1<double, float>(w, op, m, [=](float a) { return static_cast<double>(ftz ? flushed(a) : a); });
}
void f32_of_f64(Warp& w, const Op& op, std::uint32_t m) {
    const bool ftz = (op.small & 0x100) != 0, sat = (op.small & 0x400) != 0;
    map1<float, double>(w, op, m, [=](double a) {
        float made = static_cast<float>(a);
        if (ftz) made = flushed(made);
        return sat ? saturated(made) : made;
    });
}

template <class N>
void f32_of_half(Warp& w, const Op& op, std::uint32_t m) {
    map1<float, std::uint16_t>(w, op, m, [](std::uint16_t a) { return N::in(a); });
}
/// To a half toward zero: the nearest, one step back where it is beyond.
template <class N>
ROWS_INLINE std::uint16_t toward_zero(float x) {
    const std::uint16_t near = N::out(x);
    const float back = N::in(near);
    if (is_nan(x)) return N::nan;
    const bool beyond = (back < 0 ? -back : back) > (x < 0 ? -x : x);
    return static_cast<std::uint16_t>(beyond ? near - 1 : near);
}
template <class N>
ROWS_INLINE std::uint16_t narrowed(float x, int how) {
    std::uint16_t made = (how & 0xff) == static_cast<int>(Rounding::rz) ? toward_zero<N>(x) : N::out(x);
    if (how & 0x800) made = (made & 0x7fff) == N::infinity ? static_cast<std::uint16_t>(made - 1) : made;  // satfinite
    if (how & 0x1000) made = (made & 0x7fff) > N::infinity ? N::nan : made & 0x8000 ? 0 : made;            // relu
    if (how & 0x400) made = half_out<N>(made, 2);
    return made;
}
template <class N>
void half_of_f32(Warp& w, const Op& op, std::uint32_t m) {
    const int how = op.small;
    if (how == static_cast<int>(Rounding::rn)) {
        map1<std::uint16_t, float>(w, op, m, [](float a) { return N::out(a); });
        return;
    }
    each1<std::uint16_t, float>(w, op, m, [=](float a) { return narrowed<N>(how & 0x100 ? flushed(a) : a, how); });
}
template <class N>
void half_of_f64(Warp& w, const Op& op, std::uint32_t m) {
    const int how = op.small;
    each1<std::uint16_t, double>(w, op, m, [=](double a) { return narrowed<N>(odd_float(a), how); });
}
template <class N>
void f64_of_half(Warp& w, const Op& op, std::uint32_t m) {
    map1<double, std::uint16_t>(w, op, m, [](std::uint16_t a) { return static_cast<double>(N::in(a)); });
}
template <class ND, class NS>
void half_of_half(Warp& w, const Op& op, std::uint32_t m) {
    const int how = op.small;
    const auto rounding = static_cast<Rounding>(how & 0xff);
    each1<std::uint16_t, std::uint16_t>(w, op, m, [=](std::uint16_t a) {
        const float x = NS::in(a);
        return narrowed<ND>(rounding >= Rounding::rni ? whole_of(x, rounding) : x, how);
    });
}
/// Two floats to a pair: a becomes the upper half.
template <class N>
void pair_of_f32(Warp& w, const Op& op, std::uint32_t m) {
    const int how = op.small;
    if (how == static_cast<int>(Rounding::rn)) {
        map2<std::uint32_t, float, float>(
            w, op, m, [](float a, float b) { return static_cast<std::uint32_t>(N::out(a)) << 16 | N::out(b); });
        return;
    }
    each2<std::uint32_t, float, float>(w, op, m, [=](float a, float b) {
        return static_cast<std::uint32_t>(narrowed<N>(a, how)) << 16 | narrowed<N>(b, how);
    });
}
template <bool e4m3>
void fp8_pair_of_f32(Warp& w, const Op& op, std::uint32_t m) {
    const bool relu = (op.small & 0x1000) != 0;
    each2<std::uint16_t, float, float>(w, op, m, [=](float a, float b) {
        const auto one = [=](float x) { return fp8_of_float(relu && x < 0 ? 0.0f : x, e4m3); };
        return static_cast<std::uint16_t>(one(a) << 8 | one(b));
    });
}
template <bool e4m3>
void fp8_pair_of_half(Warp& w, const Op& op, std::uint32_t m) {
    const bool relu = (op.small & 0x1000) != 0;
    each1<std::uint16_t, std::uint32_t>(w, op, m, [=](std::uint32_t a) {
        const auto one = [=](std::uint32_t bits) {
            const float x = float_of_half(static_cast<std::uint16_t>(bits));
            return fp8_of_float(relu && x < 0 ? 0.0f : x, e4m3);
        };
        return static_cast<std::uint16_t>(one(a >> 16) << 8 | one(a));
    });
}
template <bool e4m3>
void half_pair_of_fp8(Warp& w, const Op& op, std::uint32_t m) {
    each1<std::uint32_t, std::uint16_t>(w, op, m, [](std::uint16_t a) {
        const auto one = [](int bits) {
            return std::uint32_t{half_of_float(float_of_fp8(static_cast<std::uint8_t>(bits), e4m3))};
        };
        return one(a >> 8) << 16 | one(a);
    });
}
void tf32_of_f32(Warp& w, const Op& op, std::uint32_t m) {
    const auto rounding = static_cast<Rounding>(op.small & 0xff);
    map1<std::uint32_t, float>(w, op, m, [=](float a) {
        const std::uint32_t bits = bits_of(a);
        if (rounding == Rounding::rna || (bits & 0x7fffffff) >= 0x7f800000u) return tf32_of_float(a);
        if (rounding == Rounding::rz) return bits & 0xffffe000u;
        return (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000u;
    });
}

// ---- Choice. R: the register's type, T: the number's.

template <class F>
Handler integer_of(const Selector& s) {
    const bool word = s.register_bytes == 4;
    switch (s.type) {
        case PtxType::u8:
            return word ? Handler{integer_of_float<std::uint32_t, std::uint8_t, F>}
                        : integer_of_float<std::uint16_t, std::uint8_t, F>;
        case PtxType::s8:
            return word ? Handler{integer_of_float<std::uint32_t, std::int8_t, F>}
                        : integer_of_float<std::uint16_t, std::int8_t, F>;
        case PtxType::u16:
            return integer_of_float<std::uint16_t, std::uint16_t, F>;
        case PtxType::s16:
            return integer_of_float<std::uint16_t, std::int16_t, F>;
        case PtxType::u32:
            return integer_of_float<std::uint32_t, std::uint32_t, F>;
        case PtxType::s32:
            if (sizeof(F) == 4 && s.rounding == Rounding::rzi && !s.ftz) return s32_of_f32_toward_zero;
            return integer_of_float<std::uint32_t, std::int32_t, F>;
        case PtxType::u64:
            return integer_of_float<std::uint64_t, std::uint64_t, F>;
        case PtxType::s64:
            return integer_of_float<std::uint64_t, std::int64_t, F>;
        default:
            return nullptr;
    }
}
Handler integer_of_half_for(const Selector& s) {
    switch (s.type) {
        case PtxType::u16:
            return integer_of_half<std::uint16_t, std::uint16_t>;
        case PtxType::s16:
            return integer_of_half<std::uint16_t, std::int16_t>;
        case PtxType::u32:
            return integer_of_half<std::uint32_t, std::uint32_t>;
        case PtxType::s32:
            return integer_of_half<std::uint32_t, std::int32_t>;
        case PtxType::u64:
            return integer_of_half<std::uint64_t, std::uint64_t>;
        case PtxType::s64:
            return integer_of_half<std::uint64_t, std::int64_t>;
        case PtxType::u8:
            return integer_of_half<std::uint16_t, std::uint8_t>;
        case PtxType::s8:
            return integer_of_half<std::uint16_t, std::int8_t>;
        default:
            return nullptr;
    }
}
/// The source register of a number of 8 or 16 bits may be wider: `vector` tells its bytes.
#define ROWS_FROM(name, ...)                                                                  \
    switch (s.from) {                                                                         \
        case PtxType::u8:                                                                     \
            return s.vector == 2   ? Handler{name<__VA_ARGS__, std::uint16_t, std::uint8_t>}  \
                   : s.vector == 4 ? name<__VA_ARGS__, std::uint32_t, std::uint8_t>           \
                                   : name<__VA_ARGS__, std::uint64_t, std::uint8_t>;          \
        case PtxType::s8:                                                                     \
            return s.vector == 2   ? Handler{name<__VA_ARGS__, std::uint16_t, std::int8_t>}   \
                   : s.vector == 4 ? name<__VA_ARGS__, std::uint32_t, std::int8_t>            \
                                   : name<__VA_ARGS__, std::uint64_t, std::int8_t>;           \
        case PtxType::u16:                                                                    \
            return s.vector == 2   ? Handler{name<__VA_ARGS__, std::uint16_t, std::uint16_t>} \
                   : s.vector == 4 ? name<__VA_ARGS__, std::uint32_t, std::uint16_t>          \
                                   : name<__VA_ARGS__, std::uint64_t, std::uint16_t>;         \
        case PtxType::s16:                                                                    \
            return s.vector == 2   ? Handler{name<__VA_ARGS__, std::uint16_t, std::int16_t>}  \
                   : s.vector == 4 ? name<__VA_ARGS__, std::uint32_t, std::int16_t>           \
                                   : name<__VA_ARGS__, std::uint64_t, std::int16_t>;          \
        case PtxType::u32:                                                                    \
            return s.vector == 8 ? Handler{name<__VA_ARGS__, std::uint64_t, std::uint32_t>}   \
                                 : name<__VA_ARGS__, std::uint32_t, std::uint32_t>;           \
        case PtxType::s32:                                                                    \
            return s.vector == 8 ? Handler{name<__VA_ARGS__, std::uint64_t, std::int32_t>}    \
                                 : name<__VA_ARGS__, std::uint32_t, std::int32_t>;            \
        case PtxType::u64:                                                                    \
            return name<__VA_ARGS__, std::uint64_t, std::uint64_t>;                           \
        case PtxType::s64:                                                                    \
            return name<__VA_ARGS__, std::uint64_t, std::int64_t>;                            \
        default:                                                                              \
            return nullptr;                                                                   \
    }
template <class RD, class TD>
Handler integer_from(const Selector& s) {
    ROWS_FROM(integer_of_integer, RD, TD)
}
template <class TD>
Handler integer_into(const Selector& s) {
    switch (s.register_bytes) {
        case 2:
            return integer_from<std::uint16_t, TD>(s);
        case 4:
            return integer_from<std::uint32_t, TD>(s);
        default:
            return integer_from<std::uint64_t, TD>(s);
    }
}
template <class F>
Handler float_from(const Selector& s) {
    ROWS_FROM(float_of_integer, F)
}
template <class N>
Handler half_from(const Selector& s){ROWS_FROM(half_of_integer, N)} Handler half_cvt(const Selector& s) {
    const bool f16 = s.type == PtxType::f16;
    switch (s.from) {
        case PtxType::f32:
            return f16 ? Handler{half_of_f32<Half>} : half_of_f32<Brain>;
        case PtxType::f64:
            return f16 ? Handler{half_of_f64<Half>} : half_of_f64<Brain>;
        case PtxType::f16:
            return f16 ? Handler{half_of_half<Half, Half>} : half_of_half<Brain, Half>;
        case PtxType::bf16:
            return f16 ? Handler{half_of_half<Half, Brain>} : half_of_half<Brain, Brain>;
        default:
            return f16 ? half_from<Half>(s) : half_from<Brain>(s);
    }
}
}  // namespace

Handler select_convert(const Selector& s) {
    if (s.operation == Operation::cvt_pack) {
        switch (s.type) {
            case PtxType::f16x2:
                if (s.from == PtxType::e4m3x2) return half_pair_of_fp8<true>;
                if (s.from == PtxType::e5m2x2) return half_pair_of_fp8<false>;
                return pair_of_f32<Half>;
            case PtxType::bf16x2:
                return pair_of_f32<Brain>;
            case PtxType::e4m3x2:
                return s.from == PtxType::f16x2 ? Handler{fp8_pair_of_half<true>} : fp8_pair_of_f32<true>;
            case PtxType::e5m2x2:
                return s.from == PtxType::f16x2 ? Handler{fp8_pair_of_half<false>} : fp8_pair_of_f32<false>;
            default:
                return nullptr;
        }
    }
    const bool to_integer = s.type >= PtxType::u8 && s.type <= PtxType::s64;
    if (to_integer) {
        if (s.from == PtxType::f32) return integer_of<float>(s);
        if (s.from == PtxType::f64) return integer_of<double>(s);
        if (s.from == PtxType::f16 || s.from == PtxType::bf16) return integer_of_half_for(s);
        switch (s.type) {
            case PtxType::u8:
                return integer_into<std::uint8_t>(s);
            case PtxType::s8:
                return integer_into<std::int8_t>(s);
            case PtxType::u16:
                return integer_into<std::uint16_t>(s);
            case PtxType::s16:
                return integer_into<std::int16_t>(s);
            case PtxType::u32:
                return integer_into<std::uint32_t>(s);
            case PtxType::s32:
                return integer_into<std::int32_t>(s);
            case PtxType::u64:
                return integer_into<std::uint64_t>(s);
            default:
                return integer_into<std::int64_t>(s);
        }
    }
    switch (s.type) {
        case PtxType::tf32:
            return tf32_of_f32;
        case PtxType::f16:
        case PtxType::bf16:
            return half_cvt(s);
        case PtxType::f32:
            if (s.from == PtxType::f32) return f32_whole;
            if (s.from == PtxType::f64) return f32_of_f64;
            if (s.from == PtxType::f16) return f32_of_half<Half>;
            if (s.from == PtxType::bf16) return f32_of_half<Brain>;
            return float_from<float>(s);
        case PtxType::f64:
            if (s.from == PtxType::f64) return f64_whole;
            if (s.from == PtxType::f32) return f64_of_f32;
            if (s.from == PtxType::f16) return f64_of_half<Half>;
            if (s.from == PtxType::bf16) return f64_of_half<Brain>;
            return float_from<double>(s);
        default:
            return nullptr;
    }
}

}  // namespace autotune::emulator::AUTOTUNE_ROWS
