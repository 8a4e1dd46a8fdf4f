// Built with -frounding-math: see CMakeLists.txt.
#include "device/emulator/rounded.h"

#include <cfenv>
#include <cmath>

#include "device/emulator/numbers.h"
#include "device/emulator/warp.h"

namespace autotune::emulator {
namespace {

class RoundingMode {
public:
    explicit RoundingMode(Rounding rounding) : before_{std::fegetround()} {
        std::fesetround(rounding == Rounding::rz   ? FE_TOWARDZERO
                        : rounding == Rounding::rm ? FE_DOWNWARD
                        : rounding == Rounding::rp ? FE_UPWARD
                                                   : FE_TONEAREST);
    }
    ~RoundingMode() { std::fesetround(before_); }
    RoundingMode(const RoundingMode&) = delete;
    RoundingMode& operator=(const RoundingMode&) = delete;

private:
    int before_;
};

template <class F>
F finished(F x, const Selector& s) {
    if constexpr (sizeof(F) == 4) {
        if (s.ftz) x = flushed(x);
        if (s.sat) x = saturated(x);
    }
    return x;
}
template <class F>
F taken(F x, const Selector& s) {
    if constexpr (sizeof(F) == 4)
        if (s.ftz) x = flushed(x);
    return x;
}

/// What stands behind `volatile` is computed here and now, in the mode that is set.
template <class F>
F computed(Operation operation, F a, F b, F c) {
    volatile F x = a, y = b, z = c;
    volatile F made = 0;
    switch (operation) {
        case Operation::add:
            made = x + y;
            break;
        case Operation::sub:
            made = x - y;
            break;
        case Operation::fmul:
            made = x * y;
            break;
        case Operation::fma:
            made = std::fma(x, y, z);
            break;
        case Operation::fdiv:
            made = x / y;
            break;
        case Operation::rcp:
            made = F{1} / x;
            break;
        default:
            made = std::sqrt(x);
            break;
    }
    return made;
}

Selector unpacked(const Op& op) {
    return {.operation = static_cast<Operation>(op.small & 0xff),
            .rounding = static_cast<Rounding>(op.small >> 8 & 0xf),
            .ftz = (op.small & 0x1000) != 0,
            .sat = (op.small & 0x2000) != 0};
}

template <class F>
void arithmetic(Warp& w, const Op& op, std::uint32_t m) {
    const Selector s = unpacked(op);
    const RoundingMode mode{s.rounding};
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        w.row<F>(op.d)[i] = finished(computed<F>(s.operation, taken(w.row<F>(op.a)[i], s), taken(w.row<F>(op.b)[i], s),
                                                 taken(w.row<F>(op.c)[i], s)),
                                     s);
    }
}

template <class D, class S>
void converted(Warp& w, const Op& op, std::uint32_t m) {
    const Selector s = unpacked(op);
    const RoundingMode mode{s.rounding};
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        volatile S from = w.row<S>(op.a)[i];
        volatile D made = static_cast<D>(from);
        w.row<D>(op.d)[i] = finished<D>(made, s);
    }
}

}  // namespace

Handler select_rounded(const Selector& s) {
    if (s.operation == Operation::cvt) {
        const bool single = s.type == PtxType::f32;
        if (!single && s.type != PtxType::f64) return nullptr;
        switch (s.from) {
            case PtxType::f64:
                return single ? Handler{converted<float, double>} : nullptr;
            case PtxType::s32:
                return single ? Handler{converted<float, std::int32_t>} : converted<double, std::int32_t>;
            case PtxType::u32:
                return single ? Handler{converted<float, std::uint32_t>} : converted<double, std::uint32_t>;
            case PtxType::s64:
                return single ? Handler{converted<float, std::int64_t>} : converted<double, std::int64_t>;
            case PtxType::u64:
                return single ? Handler{converted<float, std::uint64_t>} : converted<double, std::uint64_t>;
            default:
                return nullptr;
        }
    }
    switch (s.operation) {
        case Operation::add:
        case Operation::sub:
        case Operation::fmul:
        case Operation::fma:
        case Operation::fdiv:
        case Operation::rcp:
        case Operation::sqrt:
            return s.type == PtxType::f32   ? Handler{arithmetic<float>}
                   : s.type == PtxType::f64 ? arithmetic<double>
                                            : nullptr;
        default:
            return nullptr;
    }
}

}  // namespace autotune::emulator
