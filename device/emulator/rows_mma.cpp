// mma.sync m16n8k*: d = a x b + c over one warp. With g = lane / 4 and t = lane % 4, and E elements a register:
//   a[r]: row g + 8 (r % 2), k = E t + 4 E (r / 2) + e      b[r]: k = E t + 4 E r + e, column g
//   c[0], c[1]: row g, columns 2t, 2t + 1                    c[2], c[3]: row g + 8
// Products of 8, 10 and 11 bits are exact in float, so that fused and separate steps give the same sums.
//
// extra: d, a, b, c.
#include "device/emulator/fault.h"
#include "device/emulator/rows_map.h"

namespace autotune::emulator::AUTOTUNE_ROWS {
namespace {

typedef float Floats8 __attribute__((vector_size(32)));
typedef std::int32_t Integers8 __attribute__((vector_size(32)));

struct HalfElements {
    using Sum = float;
    static constexpr int per = 2;
    static ROWS_INLINE void unpack(const std::uint32_t* from, float (*to)[lanes]) {
#if defined(__F16C__)
        for (int i = 0; i < lanes; i += 8) {
            const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
            const __m256i low = _mm256_and_si256(words, _mm256_set1_epi32(0xffff)), high = _mm256_srli_epi32(words, 16);
            const auto narrow = [](__m256i x) {
                const __m128i a = _mm256_castsi256_si128(x), b = _mm256_extracti128_si256(x, 1);
                return _mm256_cvtph_ps(_mm_packus_epi32(a, b));
            };
            _mm256_storeu_ps(to[0] + i, narrow(low));
            _mm256_storeu_ps(to[1] + i, narrow(high));
        }
#else
        for (int i = 0; i < lanes; ++i) {
            to[0][i] = float_of_half(static_cast<std::uint16_t>(from[i]));
            to[1][i] = float_of_half(static_cast<std::uint16_t>(from[i] >> 16));
        }
#endif
    }
};
struct BrainElements {
    using Sum = float;
    static constexpr int per = 2;
    static ROWS_INLINE void unpack(const std::uint32_t* from, float (*to)[lanes]) {
        for (int i = 0; i < lanes; ++i) {
            to[0][i] = float_of(from[i] << 16);
            to[1][i] = float_of(from[i] & 0xffff0000u);
        }
    }
};
/// The tensor cores do not look at the low 13 bits.
struct Tf32Elements {
    using Sum = float;
    static constexpr int per = 1;
    static ROWS_INLINE void unpack(const std::uint32_t* from, float (*to)[lanes]) {
        for (int i = 0; i < lanes; ++i) to[0][i] = float_of(from[i] & 0xffffe000u);
    }
};
template <bool e4m3>
struct Fp8Elements {
    using Sum = float;
    static constexpr int per = 4;
    static ROWS_INLINE void unpack(const std::uint32_t* from, float (*to)[lanes]) {
        for (int e = 0; e < 4; ++e)
            for (int i = 0; i < lanes; ++i)
                to[e][i] = float_of_fp8(static_cast<std::uint8_t>(from[i] >> (8 * e)), e4m3);
    }
};
template <int bits, bool with_sign>
struct IntegerElements {
    using Sum = std::int32_t;
    static constexpr int per = 32 / bits;
    static ROWS_INLINE void unpack(const std::uint32_t* from, std::int32_t (*to)[lanes]) {
        for (int e = 0; e < per; ++e)
            for (int i = 0; i < lanes; ++i) {
                const std::uint32_t up = from[i] << (32 - bits * (e + 1));
                to[e][i] = with_sign ? static_cast<std::int32_t>(up) >> (32 - bits)
                                     : static_cast<std::int32_t>(up >> (32 - bits));
            }
    }
};

template <class Sum>
struct Eight;
template <>
struct Eight<float> {
    using Type = Floats8;
};
template <>
struct Eight<std::int32_t> {
    using Type = Integers8;
};

ROWS_INLINE void accumulate(Floats8& sum, float a, const Floats8& b) {
#if defined(__FMA__)
    sum = reinterpret_cast<Floats8>(
        _mm256_fmadd_ps(_mm256_set1_ps(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(sum)));
#else
    sum += a * b;
#endif
}
/// Sums wrap, as on the device without .satfinite.
ROWS_INLINE void accumulate(Integers8& sum, std::int32_t a, const Integers8& b) {
    typedef std::uint32_t Words8 __attribute__((vector_size(32)));
    sum = reinterpret_cast<Integers8>(reinterpret_cast<Words8>(sum) +
                                      static_cast<std::uint32_t>(a) * reinterpret_cast<Words8>(b));
}

/// small: 1 for sums that are clamped (.satfinite of whole numbers), which is done once at the end.
template <class A, class B, int a_registers, int b_registers, bool half_sum>
void mma(Warp& w, const Op& op, std::uint32_t m) {
    using Sum = typename A::Sum;
    using Row = typename Eight<Sum>::Type;
    constexpr int per = A::per, blocks = a_registers / 2, k = per * 4 * blocks, sums = half_sum ? 2 : 4;
    static_assert(b_registers == blocks && A::per == B::per);
    if (m != all_lanes) incomplete_warp(w, op, m);
    alignas(32) Sum a[a_registers * per][lanes];
    alignas(32) Row b[k];
    for (int r = 0; r < a_registers; ++r) A::unpack(w.row<std::uint32_t>(part_of(w, op, sums + r)), a + r * per);
    for (int r = 0; r < b_registers; ++r) {
        alignas(32) Sum column[per][lanes];
        B::unpack(w.row<std::uint32_t>(part_of(w, op, sums + a_registers + r)), column);
        for (int t = 0; t < 4; ++t)
            for (int e = 0; e < per; ++e)
                for (int g = 0; g < 8; ++g) b[per * t + 4 * per * r + e][g] = column[e][4 * g + t];
    }
    for (int h = 0; h < 2; ++h) {
        Sum* d[2] = {nullptr, nullptr};
        const Sum* c[2] = {nullptr, nullptr};
        std::uint32_t* halves = nullptr;
        const std::uint32_t* half_terms = nullptr;
        if constexpr (half_sum) {
            halves = w.row<std::uint32_t>(part_of(w, op, h));
            half_terms = w.row<std::uint32_t>(part_of(w, op, sums + a_registers + b_registers + h));
        } else {
            for (int j = 0; j < 2; ++j) {
                d[j] = w.row<Sum>(part_of(w, op, 2 * h + j));
                c[j] = w.row<Sum>(part_of(w, op, sums + a_registers + b_registers + 2 * h + j));
            }
        }
        for (int g = 0; g < 8; ++g) {
            Row sum;
            for (int t = 0; t < 4; ++t) {
                if constexpr (half_sum) {
                    sum[2 * t] = float_of_half(static_cast<std::uint16_t>(half_terms[4 * g + t]));
                    sum[2 * t + 1] = float_of_half(static_cast<std::uint16_t>(half_terms[4 * g + t] >> 16));
                } else {
                    sum[2 * t] = c[0][4 * g + t];
                    sum[2 * t + 1] = c[1][4 * g + t];
                }
            }
            for (int p = 0; p < blocks; ++p)
                for (int t = 0; t < 4; ++t)
                    for (int e = 0; e < per; ++e)
                        accumulate(sum, a[(2 * p + h) * per + e][4 * g + t], b[per * t + 4 * per * p + e]);
            for (int t = 0; t < 4; ++t) {
                if constexpr (half_sum) {
                    halves[4 * g + t] =
                        static_cast<std::uint32_t>(half_of_float(sum[2 * t + 1])) << 16 | half_of_float(sum[2 * t]);
                } else {
                    d[0][4 * g + t] = sum[2 * t];
                    d[1][4 * g + t] = sum[2 * t + 1];
                }
            }
        }
    }
}

/// m8n8k4 of doubles: a: row lane / 4, k lane % 4; b: k lane % 4, column lane / 4; c: row lane / 4, columns 2t, 2t + 1.
void mma_f64(Warp& w, const Op& op, std::uint32_t m) {
    if (m != all_lanes) incomplete_warp(w, op, m);
    double* const d[2] = {w.row<double>(part_of(w, op, 0)), w.row<double>(part_of(w, op, 1))};
    const double* const a = w.row<double>(part_of(w, op, 2));
    const double* const b = w.row<double>(part_of(w, op, 3));
    const double* const c[2] = {w.row<double>(part_of(w, op, 4)), w.row<double>(part_of(w, op, 5))};
    double made[2][lanes];
    for (int i = 0; i < lanes; ++i)
        for (int j = 0; j < 2; ++j) {
            double sum = c[j][i];
            for (int k = 0; k < 4; ++k) sum = __builtin_fma(a[i / 4 * 4 + k], b[(2 * (i % 4) + j) * 4 + k], sum);
            made[j][i] = sum;
        }
    for (int j = 0; j < 2; ++j) std::memcpy(d[j], made[j], sizeof made[j]);
}

template <class A, class B>
Handler mma_of(const Selector& s) {
    if (s.a_registers == 4 && s.b_registers == 2) {
        if constexpr (sizeof(typename A::Sum) == 4 && A::per >= 2) {
            if (s.half_sum) {
                if constexpr (__is_same(typename A::Sum, float)) return mma<A, B, 4, 2, true>;
                return nullptr;
            }
        }
        return mma<A, B, 4, 2, false>;
    }
    if (s.a_registers == 2 && s.b_registers == 1) {
        if (s.half_sum) {
            if constexpr (__is_same(typename A::Sum, float)) return mma<A, B, 2, 1, true>;
            return nullptr;
        }
        return mma<A, B, 2, 1, false>;
    }
    return nullptr;
}
template <int bits>
Handler mma_integer(const Selector& s, bool a_signed, bool b_signed) {
    if (a_signed)
        return b_signed ? mma_of<IntegerElements<bits, true>, IntegerElements<bits, true>>(s)
                        : mma_of<IntegerElements<bits, true>, IntegerElements<bits, false>>(s);
    return b_signed ? mma_of<IntegerElements<bits, false>, IntegerElements<bits, true>>(s)
                    : mma_of<IntegerElements<bits, false>, IntegerElements<bits, false>>(s);
}
}  // namespace

Handler select_mma(const Selector& s) {
    switch (s.from) {
        case PtxType::f16:
            return mma_of<HalfElements, HalfElements>(s);
        case PtxType::bf16:
            return mma_of<BrainElements, BrainElements>(s);
        case PtxType::tf32:
            return mma_of<Tf32Elements, Tf32Elements>(s);
        case PtxType::f64:
            return mma_f64;
        case PtxType::e4m3:
            return s.from_b == PtxType::e4m3 ? mma_of<Fp8Elements<true>, Fp8Elements<true>>(s)
                                             : mma_of<Fp8Elements<true>, Fp8Elements<false>>(s);
        case PtxType::e5m2:
            return s.from_b == PtxType::e4m3 ? mma_of<Fp8Elements<false>, Fp8Elements<true>>(s)
                                             : mma_of<Fp8Elements<false>, Fp8Elements<false>>(s);
        case PtxType::s8:
        case PtxType::u8:
            return mma_integer<8>(s, s.from == PtxType::s8, s.from_b == PtxType::s8);
        case PtxType::s4:
        case PtxType::u4:
            return mma_integer<4>(s, s.from == PtxType::s4, s.from_b == PtxType::s4);
        default:
            return nullptr;
    }
}

}  // namespace autotune::emulator::AUTOTUNE_ROWS
