// Floats of 32 and 64 bits. Without contraction, so that a product and a sum stay two roundings, as written.
#include "device/emulator/rows_map.h"

namespace autotune::emulator::AUTOTUNE_ROWS {
namespace {

struct Plain {
    static ROWS_INLINE float in(float x) { return x; }
    static ROWS_INLINE float out(float x) { return x; }
};
struct Flush {
    static ROWS_INLINE float in(float x) { return flushed(x); }
    static ROWS_INLINE float out(float x) { return flushed(x); }
};
struct Saturate {
    static ROWS_INLINE float in(float x) { return x; }
    static ROWS_INLINE float out(float x) { return saturated(x); }
};
struct FlushSaturate {
    static ROWS_INLINE float in(float x) { return flushed(x); }
    static ROWS_INLINE float out(float x) { return saturated(flushed(x)); }
};

template <class P>
void add_f32(Warp& w, const Op& op, std::uint32_t m) {
    map2<float, float, float>(w, op, m, [](float a, float b) { return P::out(P::in(a) + P::in(b)); });
}
template <class P>
void sub_f32(Warp& w, const Op& op, std::uint32_t m) {
    map2<float, float, float>(w, op, m, [](float a, float b) { return P::out(P::in(a)-P::in(b)); });
}
template <class P>
void mul_f32(Warp& w, const Op& op, std::uint32_t m) {
    map2<float, float, float>(w, op, m, [](float a, float b) { return P::out(P::in(a)*P::in(b)); });
}
template <class P>
void fma_f32(Warp& w, const Op& op, std::uint32_t m) {
    map3<float, float, float, float>(
        w, op, m, [](float a, float b, float c) { return P::out(__builtin_fmaf(P::in(a), P::in(b), P::in(c))); });
}
template <class P>
void div_f32(Warp& w, const Op& op, std::uint32_t m) {
    map2<float, float, float>(w, op, m, [](float a, float b) { return P::out(P::in(a) / P::in(b)); });
}
template <class P>
void rcp_f32(Warp& w, const Op& op, std::uint32_t m) {
    map1<float, float>(w, op, m, [](float a) { return P::out(1.0f / P::in(a)); });
}
template <class P>
void sqrt_f32(Warp& w, const Op& op, std::uint32_t m) {
    map1<float, float>(w, op, m, [](float a) { return P::out(__builtin_sqrtf(P::in(a))); });
}
template <class P>
void rsqrt_f32(Warp& w, const Op& op, std::uint32_t m) {
    map1<float, float>(w, op, m, [](float a) {
        return P::out(static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(P::in(a)))));
    });
}

template <class P>
void ex2_f32(Warp& w, const Op& op, std::uint32_t m) {
    map1<float, float>(w, op, m, [](float a) { return P::out(exp2_of(P::in(a))); });
}
template <class P>
void lg2_f32(Warp& w, const Op& op, std::uint32_t m) {
    each1<float, float>(w, op, m, [](float a) { return P::out(__builtin_log2f(P::in(a))); });
}
template <class P>
void sin_f32(Warp& w, const Op& op, std::uint32_t m) {
    each1<float, float>(w, op, m, [](float a) { return P::out(__builtin_sinf(P::in(a))); });
}
template <class P>
void cos_f32(Warp& w, const Op& op, std::uint32_t m) {
    each1<float, float>(w, op, m, [](float a) { return P::out(__builtin_cosf(P::in(a))); });
}
void tanh_f32(Warp& w, const Op& op, std::uint32_t m) {
    each1<float, float>(w, op, m, [](float a) { return __builtin_tanhf(a); });
}
template <class P>
void abs_f32(Warp& w, const Op& op, std::uint32_t m) {
    map1<float, float>(w, op, m, [](float a) { return float_of(bits_of(P::in(a)) & 0x7fffffffu); });
}
template <class P>
void neg_f32(Warp& w, const Op& op, std::uint32_t m) {
    map1<float, float>(w, op, m, [](float a) { return float_of(bits_of(P::in(a)) ^ 0x80000000u); });
}

template <class P, bool nan>
void min_f32(Warp& w, const Op& op, std::uint32_t m) {
    map2<float, float, float>(w, op, m, [](float a, float b) { return lesser<nan>(P::in(a), P::in(b)); });
}
template <class P, bool nan>
void max_f32(Warp& w, const Op& op, std::uint32_t m) {
    map2<float, float, float>(w, op, m, [](float a, float b) { return greater<nan>(P::in(a), P::in(b)); });
}
template <class P, bool nan>
void min3_f32(Warp& w, const Op& op, std::uint32_t m) {
    map3<float, float, float, float>(
        w, op, m, [](float a, float b, float c) { return lesser<nan>(lesser<nan>(P::in(a), P::in(b)), P::in(c)); });
}
template <class P, bool nan>
void max3_f32(Warp& w, const Op& op, std::uint32_t m) {
    map3<float, float, float, float>(
        w, op, m, [](float a, float b, float c) { return greater<nan>(greater<nan>(P::in(a), P::in(b)), P::in(c)); });
}
void copysign_f32(Warp& w, const Op& op, std::uint32_t m) {
    map2<float, float, float>(
        w, op, m, [](float a, float b) { return float_of((bits_of(b) & 0x7fffffffu) | (bits_of(a) & 0x80000000u)); });
}
void copysign_f64(Warp& w, const Op& op, std::uint32_t m) {
    map2<std::uint64_t, std::uint64_t, std::uint64_t>(w, op, m, [](std::uint64_t a, std::uint64_t b) {
        return (b & 0x7fffffffffffffffull) | (a & 0x8000000000000000ull);
    });
}

// ---- f64.

void add_f64(Warp& w, const Op& op, std::uint32_t m) {
    map2<double, double, double>(w, op, m, [](double a, double b) { return a + b; });
}
void sub_f64(Warp& w, const Op& op, std::uint32_t m) {
    map2<double, double, double>(w, op, m, [](double a, double b) { return a - b; });
}
void mul_f64(Warp& w, const Op& op, std::uint32_t m) {
    map2<double, double, double>(w, op, m, [](double a, double b) { return a * b; });
}
void fma_f64(Warp& w, const Op& op, std::uint32_t m) {
    map3<double, double, double, double>(w, op, m, [](double a, double b, double c) { return __builtin_fma(a, b, c); });
}
void div_f64(Warp& w, const Op& op, std::uint32_t m) {
    map2<double, double, double>(w, op, m, [](double a, double b) { return a / b; });
}
void rcp_f64(Warp& w, const Op& op, std::uint32_t m) {
    map1<double, double>(w, op, m, [](double a) { return 1.0 / a; });
}
/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 keep the upper 32 bits.
void rcp_approx_f64(Warp& w, const Op& op, std::uint32_t m) {
    map1<std::uint64_t, double>(w, op, m, [](double a) { return bits_of(1.0 / a) & 0xffffffff00000000ull; });
}
void rsqrt_f64(Warp& w, const Op& op, std::uint32_t m) {
    map1<std::uint64_t, double>(w, op, m,
                                [](double a) { return bits_of(1.0 / __builtin_sqrt(a)) & 0xffffffff00000000ull; });
}
void sqrt_f64(Warp& w, const Op& op, std::uint32_t m) {
    map1<double, double>(w, op, m, [](double a) { return __builtin_sqrt(a); });
}
void abs_f64(Warp& w, const Op& op, std::uint32_t m) {
    map1<std::uint64_t, std::uint64_t>(w, op, m, [](std::uint64_t a) { return a & 0x7fffffffffffffffull; });
}
void neg_f64(Warp& w, const Op& op, std::uint32_t m) {
    map1<std::uint64_t, std::uint64_t>(w, op, m, [](std::uint64_t a) { return a ^ 0x8000000000000000ull; });
}
template <bool larger>
void pick_f64(Warp& w, const Op& op, std::uint32_t m) {
    map2<double, double, double>(w, op, m, [](double a, double b) {
        if (is_nan(a) || is_nan(b)) return is_nan(a) ? b : a;
        if (a == b) return double_of(larger ? bits_of(a) & bits_of(b) : bits_of(a) | bits_of(b));
        return (a < b) != larger ? a : b;
    });
}

/// testp: small 0 finite, 1 infinite, 2 number, 3 notanumber, 4 normal, 5 subnormal.
template <class F>
ROWS_INLINE bool tested(F x, int what) {
    const F size = x < 0 ? -x : x;
    constexpr bool single = sizeof(F) == 4;
    const F least = static_cast<F>(single ? 0x1p-126 : 0x1p-1022);
    const bool nan = is_nan(x), infinite = !nan && size - size != 0;
    switch (what) {
        case 0:
            return !nan && !infinite;
        case 1:
            return infinite;
        case 2:
            return !nan;
        case 3:
            return nan;
        case 4:
            return !nan && !infinite && size >= least;
        default:
            return !nan && size != 0 && size < least;
    }
}
template <class F>
void testp(Warp& w, const Op& op, std::uint32_t m) {
    const F* const a = w.row<F>(op.a);
    std::uint32_t bits = 0;
    for (int i = 0; i < lanes; ++i) bits |= static_cast<std::uint32_t>(tested(a[i], op.small)) << i;
    set_predicate(w, op.d, m, bits);
}

#define ROWS_POLICY(name)                                                        \
    return s.ftz ? (s.sat ? Handler{name<FlushSaturate>} : Handler{name<Flush>}) \
                 : (s.sat ? Handler{name<Saturate>} : Handler{name<Plain>});
#define ROWS_FLUSH(name) return s.ftz ? Handler{name<Flush>} : Handler{name<Plain>};
#define ROWS_FLUSH_NAN(name)                                                          \
    return s.ftz ? (s.nan ? Handler{name<Flush, true>} : Handler{name<Flush, false>}) \
                 : (s.nan ? Handler{name<Plain, true>} : Handler{name<Plain, false>});

}  // namespace

Handler select_f32(const Selector& s) {
    switch (s.operation) {
        case Operation::add:
            ROWS_POLICY(add_f32)
        case Operation::sub:
            ROWS_POLICY(sub_f32)
        case Operation::fmul:
            ROWS_POLICY(mul_f32)
        case Operation::fma:
            ROWS_POLICY(fma_f32)
        case Operation::fdiv:
            ROWS_FLUSH(div_f32)
        case Operation::rcp:
            ROWS_FLUSH(rcp_f32)
        case Operation::sqrt:
            ROWS_FLUSH(sqrt_f32)
        case Operation::rsqrt:
            ROWS_FLUSH(rsqrt_f32)
        case Operation::ex2:
            ROWS_FLUSH(ex2_f32)
        case Operation::lg2:
            ROWS_FLUSH(lg2_f32)
        case Operation::sin:
            ROWS_FLUSH(sin_f32)
        case Operation::cos:
            ROWS_FLUSH(cos_f32)
        case Operation::tanh:
            return tanh_f32;
        case Operation::abs:
            ROWS_FLUSH(abs_f32)
        case Operation::neg:
            ROWS_FLUSH(neg_f32)
        case Operation::min:
            ROWS_FLUSH_NAN(min_f32)
        case Operation::max:
            ROWS_FLUSH_NAN(max_f32)
        case Operation::min3:
            ROWS_FLUSH_NAN(min3_f32)
        case Operation::max3:
            ROWS_FLUSH_NAN(max3_f32)
        case Operation::copysign:
            return copysign_f32;
        case Operation::testp:
            return testp<float>;
        default:
            return nullptr;
    }
}

Handler select_f64(const Selector& s) {
    switch (s.operation) {
        case Operation::add:
            return add_f64;
        case Operation::sub:
            return sub_f64;
        case Operation::fmul:
            return mul_f64;
        case Operation::fma:
            return fma_f64;
        case Operation::fdiv:
            return div_f64;
        case Operation::rcp:
            return s.approx ? rcp_approx_f64 : rcp_f64;
        case Operation::rsqrt:
            return rsqrt_f64;
        case Operation::sqrt:
            return sqrt_f64;
        case Operation::abs:
            return abs_f64;
        case Operation::neg:
            return neg_f64;
        case Operation::min:
            return pick_f64<false>;
        case Operation::max:
            return pick_f64<true>;
        case Operation::copysign:
            return copysign_f64;
        case Operation::testp:
            return testp<double>;
        default:
            return nullptr;
    }
}

}  // namespace autotune::emulator::AUTOTUNE_ROWS
