// Half-precision numbers, one or two in a register. Sums, products and quotients of float's precision, rounded once
// more, are right: float has more than twice the bits. A fused multiply-add goes through double, rounded to odd.
#include "device/emulator/rows_map.h"

namespace autotune::emulator::AUTOTUNE_ROWS {
namespace {

/// a * b + c, rounded once: the product is exact in double; what the sum loses decides its last bit.
ROWS_INLINE double fused_odd(float a, float b, float c) {
    const double product = static_cast<double>(a) * static_cast<double>(b), addend = static_cast<double>(c);
    const double sum = product + addend;
    const double back = sum - product;
    const double lost = (product - (sum - back)) + (addend - back);
    const std::uint64_t bits = bits_of(sum);
    if (!(lost != 0) || (bits & 1) != 0 || is_nan(lost)) return sum;
    const bool up = (lost > 0) == !(bits >> 63);
    return double_of(up ? bits + 1 : bits - 1);
}

struct HalfAdd {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t b, std::uint16_t) {
        return N::out(N::in(a) + N::in(b));
    }
};
struct HalfSub {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t b, std::uint16_t) {
        return N::out(N::in(a)-N::in(b));
    }
};
struct HalfMul {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t b, std::uint16_t) {
        return N::out(N::in(a)*N::in(b));
    }
};
struct HalfFma {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
        return N::out(odd_float(fused_odd(N::in(a), N::in(b), N::in(c))));
    }
};
struct HalfMin {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t b, std::uint16_t) {
        return N::out(lesser<false>(N::in(a), N::in(b)));
    }
};
struct HalfMax {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t b, std::uint16_t) {
        return N::out(greater<false>(N::in(a), N::in(b)));
    }
};
struct HalfMinNan {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t b, std::uint16_t) {
        return N::out(lesser<true>(N::in(a), N::in(b)));
    }
};
struct HalfMaxNan {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t b, std::uint16_t) {
        return N::out(greater<true>(N::in(a), N::in(b)));
    }
};
struct HalfAbs {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t, std::uint16_t) {
        return a & 0x7fff;
    }
};
struct HalfNeg {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t, std::uint16_t) {
        return a ^ 0x8000;
    }
};
struct HalfEx2 {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t, std::uint16_t) {
        return N::out(exp2_of(N::in(a)));
    }
};
struct HalfTanh {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t, std::uint16_t) {
        return N::out(__builtin_tanhf(N::in(a)));
    }
};
struct HalfCopysign {
    template <class N>
    static ROWS_INLINE std::uint16_t of(std::uint16_t a, std::uint16_t b, std::uint16_t) {
        return static_cast<std::uint16_t>((b & 0x7fff) | (a & 0x8000));
    }
};

template <class N, class F>
void half1(Warp& w, const Op& op, std::uint32_t m) {
    const int how = op.small;
    map3<std::uint16_t, std::uint16_t, std::uint16_t, std::uint16_t>(
        w, op, m, [=](std::uint16_t a, std::uint16_t b, std::uint16_t c) {
            return half_out<N>(F::template of<N>(half_in<N>(a, how), half_in<N>(b, how), half_in<N>(c, how)), how);
        });
}
template <class N, class F>
void half2(Warp& w, const Op& op, std::uint32_t m) {
    const int how = op.small;
    map3<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
        w, op, m, [=](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
            const auto part = [=](int shift) ROWS_LAMBDA {
                const auto of = [=](std::uint32_t x)
                                    ROWS_LAMBDA { return half_in<N>(static_cast<std::uint16_t>(x >> shift), how); };
                return static_cast<std::uint32_t>(half_out<N>(F::template of<N>(of(a), of(b), of(c)), how)) << shift;
            };
            return part(0) | part(16);
        });
}

template <class N>
Handler select_half_of(const Selector& s, bool two) {
#define ROWS_HALF(F) return two ? Handler{half2<N, F>} : Handler{half1<N, F>};
    switch (s.operation) {
        case Operation::add:
            ROWS_HALF(HalfAdd)
        case Operation::sub:
            ROWS_HALF(HalfSub)
        case Operation::fmul:
            ROWS_HALF(HalfMul)
        case Operation::fma:
            ROWS_HALF(HalfFma)
        case Operation::min:
            if (s.nan) ROWS_HALF(HalfMinNan)
            ROWS_HALF(HalfMin)
        case Operation::max:
            if (s.nan) ROWS_HALF(HalfMaxNan)
            ROWS_HALF(HalfMax)
        case Operation::abs:
            ROWS_HALF(HalfAbs)
        case Operation::neg:
            ROWS_HALF(HalfNeg)
        case Operation::ex2:
            ROWS_HALF(HalfEx2)
        case Operation::tanh:
            ROWS_HALF(HalfTanh)
        case Operation::copysign:
            ROWS_HALF(HalfCopysign)
        default:
            return nullptr;
    }
#undef ROWS_HALF
}

}  // namespace

Handler select_half(const Selector& s) {
    switch (s.type) {
        case PtxType::f16:
            return select_half_of<Half>(s, false);
        case PtxType::f16x2:
            return select_half_of<Half>(s, true);
        case PtxType::bf16:
            return select_half_of<Brain>(s, false);
        case PtxType::bf16x2:
            return select_half_of<Brain>(s, true);
        default:
            return nullptr;
    }
}

}  // namespace autotune::emulator::AUTOTUNE_ROWS
