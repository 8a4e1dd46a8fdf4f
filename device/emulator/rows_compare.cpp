// Comparisons give a bit a lane.
#include "device/emulator/rows_map.h"

namespace autotune::emulator::AUTOTUNE_ROWS {
namespace {

/// Lanes of a row of 0 and -1 as bits.
ROWS_INLINE std::uint32_t bits_of_row(const std::int32_t* row) {
#if defined(__AVX2__)
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) {
        const __m256 eight = _mm256_loadu_ps(reinterpret_cast<const float*>(row + 8 * i));
        bits |= static_cast<std::uint32_t>(_mm256_movemask_ps(eight)) << (8 * i);
    }
    return bits;
#else
    std::uint32_t bits = 0;
    for (int i = 0; i < lanes; ++i) bits |= static_cast<std::uint32_t>(row[i]) >> 31 << i;
    return bits;
#endif
}

struct IntegerNumber {
    template <class T>
    static ROWS_INLINE T in(T x) {
        return x;
    }
    template <class T>
    static ROWS_INLINE bool nan(T) {
        return false;
    }
};
struct FloatNumber {
    template <class T>
    static ROWS_INLINE T in(T x) {
        return x;
    }
    template <class T>
    static ROWS_INLINE bool nan(T x) {
        return is_nan(x);
    }
};
struct FlushedNumber {
    static ROWS_INLINE float in(float x) { return flushed(x); }
    static ROWS_INLINE bool nan(float x) { return is_nan(x); }
};
struct HalfNumber {
    static ROWS_INLINE float in(std::uint16_t x) { return float_of_half(x); }
    static ROWS_INLINE bool nan(float x) { return is_nan(x); }
};
struct BrainNumber {
    static ROWS_INLINE float in(std::uint16_t x) { return float_of_bf16(x); }
    static ROWS_INLINE bool nan(float x) { return is_nan(x); }
};

template <class N, Compare compare, class T>
ROWS_INLINE bool compared(T x, T y) {
    const auto a = N::in(x), b = N::in(y);
    const bool unordered = static_cast<int>(N::nan(a)) | static_cast<int>(N::nan(b));
    switch (compare) {
        case Compare::eq:
            return a == b;
        case Compare::ne:
            return static_cast<int>(a != b) & static_cast<int>(!unordered);
        case Compare::lt:
            return a < b;
        case Compare::le:
            return a <= b;
        case Compare::gt:
            return a > b;
        case Compare::ge:
            return a >= b;
        case Compare::equ:
            return static_cast<int>(a == b) | static_cast<int>(unordered);
        case Compare::neu:
            return a != b;
        case Compare::ltu:
            return static_cast<int>(a < b) | static_cast<int>(unordered);
        case Compare::leu:
            return static_cast<int>(a <= b) | static_cast<int>(unordered);
        case Compare::gtu:
            return static_cast<int>(a > b) | static_cast<int>(unordered);
        case Compare::geu:
            return static_cast<int>(a >= b) | static_cast<int>(unordered);
        case Compare::num:
            return !unordered;
        case Compare::nan:
            return unordered;
    }
    return false;
}

template <class N, class T, Compare compare>
ROWS_INLINE std::uint32_t compare_rows(const T* a, const T* b) {
    std::int32_t row[lanes];
#pragma GCC ivdep
    for (int i = 0; i < lanes; ++i) row[i] = compared<N, compare>(a[i], b[i]) ? -1 : 0;
    return bits_of_row(row);
}

/// d: p; imm: its complement's place, 0 for none; c: a predicate that is combined by small (1 and, 2 or, 3 xor;
/// +4: negated).
ROWS_INLINE void store_compared(Warp& w, const Op& op, std::uint32_t m, std::uint32_t bits) {
    std::uint32_t p = bits, q = ~bits;
    if (op.small) {
        const std::uint32_t c = op.small & 4 ? ~w.predicate(op.c) : w.predicate(op.c);
        switch (op.small & 3) {
            case 1:
                p &= c, q &= c;
                break;
            case 2:
                p |= c, q |= c;
                break;
            default:
                p ^= c, q ^= c;
                break;
        }
    }
    const auto other = static_cast<std::int32_t>(op.imm);
    if (op.d) set_predicate(w, op.d, m, p);
    if (other) set_predicate(w, other, m, q);
}
template <class N, class T, Compare compare>
void setp(Warp& w, const Op& op, std::uint32_t m) {
    store_compared(w, op, m, compare_rows<N, T, compare>(w.row<T>(op.a), w.row<T>(op.b)));
}
/// Of pairs: p is the lower half's result, q the upper one's.
template <class N, Compare compare>
void setp_pair(Warp& w, const Op& op, std::uint32_t m) {
    const std::uint32_t* const a = w.row<std::uint32_t>(op.a);
    const std::uint32_t* const b = w.row<std::uint32_t>(op.b);
    std::uint32_t bits[2] = {0, 0};
    for (int i = 0; i < lanes; ++i)
        for (int half = 0; half < 2; ++half) {
            const auto x = static_cast<std::uint16_t>(a[i] >> (16 * half)),
                       y = static_cast<std::uint16_t>(b[i] >> (16 * half));
            bits[half] |= static_cast<std::uint32_t>(compared<N, compare>(x, y)) << i;
        }
    if (op.d) set_predicate(w, op.d, m, bits[0]);
    if (op.imm) set_predicate(w, static_cast<std::int32_t>(op.imm), m, bits[1]);
}
/// set.u32 gives all ones, set.f32 1.0 (extra bit: op.imm).
template <class N, class T, Compare compare>
void set(Warp& w, const Op& op, std::uint32_t m) {
    std::uint32_t bits = compare_rows<N, T, compare>(w.row<T>(op.a), w.row<T>(op.b));
    if (op.small) {
        const std::uint32_t c = op.small & 4 ? ~w.predicate(op.c) : w.predicate(op.c);
        bits = (op.small & 3) == 1 ? bits & c : (op.small & 3) == 2 ? bits | c : bits ^ c;
    }
    std::uint32_t* const d = w.row<std::uint32_t>(op.d);
    const std::uint32_t yes = op.imm ? 0x3f800000u : all_lanes;
    for (int i = 0; i < lanes; ++i)
        if (m >> i & 1) d[i] = bits >> i & 1 ? yes : 0;
}
/// Packed set.f16x2: 1.0 or all ones a half.
template <class N, Compare compare>
void set_pair(Warp& w, const Op& op, std::uint32_t m) {
    const std::uint32_t* const a = w.row<std::uint32_t>(op.a);
    const std::uint32_t* const b = w.row<std::uint32_t>(op.b);
    std::uint32_t* const d = w.row<std::uint32_t>(op.d);
    for (int i = 0; i < lanes; ++i) {
        std::uint32_t made = 0;
        for (int half = 0; half < 2; ++half) {
            const auto x = static_cast<std::uint16_t>(a[i] >> (16 * half)),
                       y = static_cast<std::uint16_t>(b[i] >> (16 * half));
            if (compared<N, compare>(x, y)) made |= static_cast<std::uint32_t>(op.imm) << (16 * half);
        }
        if (m >> i & 1) d[i] = made;
    }
}

template <class U>
void selp(Warp& w, const Op& op, std::uint32_t m) {
    const std::uint32_t p = w.predicate(op.c) ^ (op.small ? all_lanes : 0);
    U* const d = w.row<U>(op.d);
    const U* const a = w.row<U>(op.a);
    const U* const b = w.row<U>(op.b);
    if (m == all_lanes) {
#pragma GCC ivdep
        for (int i = 0; i < lanes; ++i) d[i] = p >> i & 1 ? a[i] : b[i];
    } else {
#pragma GCC ivdep
        for (int i = 0; i < lanes; ++i) {
            const U made = p >> i & 1 ? a[i] : b[i];
            d[i] = m >> i & 1 ? made : d[i];
        }
    }
}
template <class U, class C>
void slct(Warp& w, const Op& op, std::uint32_t m) {
    map3<U, U, U, C>(w, op, m, [](U a, U b, C c) { return c >= 0 ? a : b; });
}

#define ROWS_COMPARE(c, ...) \
    case Compare::c:         \
        return __VA_ARGS__;
#define ROWS_ORDERED(name, N, T)                  \
    switch (s.compare) {                          \
        ROWS_COMPARE(eq, name<N, T, Compare::eq>) \
        ROWS_COMPARE(ne, name<N, T, Compare::ne>) \
        ROWS_COMPARE(lt, name<N, T, Compare::lt>) \
        ROWS_COMPARE(le, name<N, T, Compare::le>) \
        ROWS_COMPARE(gt, name<N, T, Compare::gt>) \
        ROWS_COMPARE(ge, name<N, T, Compare::ge>) \
        default:                                  \
            return nullptr;                       \
    }
#define ROWS_FLOATS(name, ...)                                 \
    {                                                          \
        switch (s.compare) {                                   \
            ROWS_COMPARE(eq, name<__VA_ARGS__, Compare::eq>)   \
            ROWS_COMPARE(ne, name<__VA_ARGS__, Compare::ne>)   \
            ROWS_COMPARE(lt, name<__VA_ARGS__, Compare::lt>)   \
            ROWS_COMPARE(le, name<__VA_ARGS__, Compare::le>)   \
            ROWS_COMPARE(gt, name<__VA_ARGS__, Compare::gt>)   \
            ROWS_COMPARE(ge, name<__VA_ARGS__, Compare::ge>)   \
            ROWS_COMPARE(equ, name<__VA_ARGS__, Compare::equ>) \
            ROWS_COMPARE(neu, name<__VA_ARGS__, Compare::neu>) \
            ROWS_COMPARE(ltu, name<__VA_ARGS__, Compare::ltu>) \
            ROWS_COMPARE(leu, name<__VA_ARGS__, Compare::leu>) \
            ROWS_COMPARE(gtu, name<__VA_ARGS__, Compare::gtu>) \
            ROWS_COMPARE(geu, name<__VA_ARGS__, Compare::geu>) \
            ROWS_COMPARE(num, name<__VA_ARGS__, Compare::num>) \
            ROWS_COMPARE(nan, name<__VA_ARGS__, Compare::nan>) \
        }                                                      \
        return nullptr;                                        \
    }

Handler select_setp(const Selector& s) {
    switch (s.from) {
        case PtxType::b16:
        case PtxType::u16:
            ROWS_ORDERED(setp, IntegerNumber, std::uint16_t)
        case PtxType::s16:
            ROWS_ORDERED(setp, IntegerNumber, std::int16_t)
        case PtxType::b32:
        case PtxType::u32:
            ROWS_ORDERED(setp, IntegerNumber, std::uint32_t)
        case PtxType::s32:
            ROWS_ORDERED(setp, IntegerNumber, std::int32_t)
        case PtxType::b64:
        case PtxType::u64:
            ROWS_ORDERED(setp, IntegerNumber, std::uint64_t)
        case PtxType::s64:
            ROWS_ORDERED(setp, IntegerNumber, std::int64_t)
        case PtxType::f32:
            if (s.ftz) ROWS_FLOATS(setp, FlushedNumber, float)
            ROWS_FLOATS(setp, FloatNumber, float)
        case PtxType::f64:
            ROWS_FLOATS(setp, FloatNumber, double)
        case PtxType::f16:
            ROWS_FLOATS(setp, HalfNumber, std::uint16_t)
        case PtxType::bf16:
            ROWS_FLOATS(setp, BrainNumber, std::uint16_t)
        case PtxType::f16x2:
            ROWS_FLOATS(setp_pair, HalfNumber)
        case PtxType::bf16x2:
            ROWS_FLOATS(setp_pair, BrainNumber)
        default:
            return nullptr;
    }
}
Handler select_set(const Selector& s) {
    switch (s.from) {
        case PtxType::b32:
        case PtxType::u32:
            ROWS_ORDERED(set, IntegerNumber, std::uint32_t)
        case PtxType::s32:
            ROWS_ORDERED(set, IntegerNumber, std::int32_t)
        case PtxType::f32:
            if (s.ftz) ROWS_FLOATS(set, FlushedNumber, float)
            ROWS_FLOATS(set, FloatNumber, float)
        case PtxType::f64:
            ROWS_FLOATS(set, FloatNumber, double)
        case PtxType::f16x2:
            ROWS_FLOATS(set_pair, HalfNumber)
        case PtxType::bf16x2:
            ROWS_FLOATS(set_pair, BrainNumber)
        default:
            return nullptr;
    }
}
Handler select_choice(const Selector& s) {
    if (s.operation == Operation::selp) {
        ROWS_WORDS(selp)
    }
    const bool real = s.from == PtxType::f32;
    switch (bytes_of(s.type)) {
        case 2:
            return real ? Handler{slct<std::uint16_t, float>} : slct<std::uint16_t, std::int32_t>;
        case 4:
            return real ? Handler{slct<std::uint32_t, float>} : slct<std::uint32_t, std::int32_t>;
        case 8:
            return real ? Handler{slct<std::uint64_t, float>} : slct<std::uint64_t, std::int32_t>;
        default:
            return nullptr;
    }
}

}  // namespace

Handler select_compare(const Selector& s) {
    switch (s.operation) {
        case Operation::setp:
            return select_setp(s);
        case Operation::set:
            return select_set(s);
        default:
            return select_choice(s);
    }
}

}  // namespace autotune::emulator::AUTOTUNE_ROWS
