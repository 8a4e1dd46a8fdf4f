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

// Inside, the columns of a row stand in the order 0, 2, 4, 6, 1, 3, 5, 7: then the two registers that hold a row of c
// lie side by side as they are.

template <class Sum>
ROWS_INLINE typename Eight<Sum>::Type joined_halves(const Sum* even, const Sum* odd) {
    typename Eight<Sum>::Type row;
#if defined(__AVX2__)
    const __m128 low = _mm_loadu_ps(reinterpret_cast<const float*>(even)),
                 high = _mm_loadu_ps(reinterpret_cast<const float*>(odd));
    const __m256 both = _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
    std::memcpy(&row, &both, sizeof row);
#else
    std::memcpy(&row, even, 16);
    std::memcpy(reinterpret_cast<char*>(&row) + 16, odd, 16);
#endif
    return row;
}
template <class Sum>
ROWS_INLINE void split_halves(const typename Eight<Sum>::Type& row, Sum* even, Sum* odd) {
#if defined(__AVX2__)
    const __m256 both = reinterpret_cast<const __m256&>(row);
    _mm_storeu_ps(reinterpret_cast<float*>(even), _mm256_castps256_ps128(both));
    _mm_storeu_ps(reinterpret_cast<float*>(odd), _mm256_extractf128_ps(both, 1));
#else
    std::memcpy(even, &row, 16);
    std::memcpy(odd, reinterpret_cast<const char*>(&row) + 16, 16);
#endif
}

/// Four rows of b, at `rows[0]`, `rows[step]` and so on, of a register's elements: lane 4 g + t has row t of column g.
template <class Sum>
ROWS_INLINE void turn_columns(const Sum* column, typename Eight<Sum>::Type* rows, int step) {
#if defined(__AVX2__)
    const auto turned = [&](int first) ROWS_LAMBDA {
        const auto at = [&](int g) ROWS_LAMBDA {
            return _mm_loadu_ps(reinterpret_cast<const float*>(column + 4 * (first + 2 * g)));
        };
        struct {
            __m128 row[4];
        } four = {{at(0), at(1), at(2), at(3)}};
        _MM_TRANSPOSE4_PS(four.row[0], four.row[1], four.row[2], four.row[3]);
        return four;
    };
    const auto even = turned(0), odd = turned(1);
    for (int t = 0; t < 4; ++t) {
        const __m256 both = _mm256_insertf128_ps(_mm256_castps128_ps256(even.row[t]), odd.row[t], 1);
        _mm256_store_ps(reinterpret_cast<float*>(rows + t * step), both);
    }
#else
    for (int t = 0; t < 4; ++t)
        for (int g = 0; g < 8; ++g) rows[t * step][g % 2 * 4 + g / 2] = column[4 * g + t];
#endif
}

template <class A, class B, int a_registers, int b_registers, bool half_sum>
void mma(Warp& w, const Op& op, std::uint32_t m) {
    using Sum = typename A::Sum;
    using Row = typename Eight<Sum>::Type;
    constexpr int per = A::per, blocks = a_registers / 2, k = per * 4 * blocks, sums = half_sum ? 2 : 4;
    static_assert(b_registers == blocks && A::per == B::per);
    if (m != all_lanes) incomplete_warp(w, op, m);
    const std::int32_t* const parts = w.extra + op.extra;
    alignas(32) Sum a[a_registers * per][lanes];
    alignas(32) Row b[k];  // by block, t and e
    for (int r = 0; r < a_registers; ++r) A::unpack(w.row<std::uint32_t>(parts[sums + r]), a + r * per);
    for (int r = 0; r < b_registers; ++r) {
        alignas(32) Sum column[per][lanes];
        B::unpack(w.row<std::uint32_t>(parts[sums + a_registers + r]), column);
        for (int e = 0; e < per; ++e) turn_columns<Sum>(column[e], b + 4 * per * r + e, per);
    }
    for (int h = 0; h < 2; ++h) {
        // The terms of c, as two rows of lanes: of even and of odd columns.
        alignas(32) Sum unpacked[2][lanes];
        const Sum *even = unpacked[0], *odd = unpacked[1];
        if constexpr (half_sum) {
            HalfElements::unpack(w.row<std::uint32_t>(parts[sums + a_registers + b_registers + h]), unpacked);
        } else {
            even = w.row<Sum>(parts[sums + a_registers + b_registers + 2 * h]);
            odd = w.row<Sum>(parts[sums + a_registers + b_registers + 2 * h + 1]);
        }
        Row sum[8];
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) sum[g] = joined_halves<Sum>(even + 4 * g, odd + 4 * g);
        for (int p = 0; p < blocks; ++p)
            for (int t = 0; t < 4; ++t)
                for (int e = 0; e < per; ++e) {
                    const Row row = b[per * t + 4 * per * p + e];
                    const Sum* const factors = a[(2 * p + h) * per + e] + t;
#pragma GCC unroll 8
                    for (int g = 0; g < 8; ++g) accumulate(sum[g], factors[4 * g], row);
                }
        if constexpr (half_sum) {
#pragma GCC unroll 8
            for (int g = 0; g < 8; ++g) split_halves<Sum>(sum[g], unpacked[0] + 4 * g, unpacked[1] + 4 * g);
            std::uint32_t* const d = w.row<std::uint32_t>(parts[h]);
            for (int i = 0; i < lanes; ++i)
                d[i] = static_cast<std::uint32_t>(half_of_float(unpacked[1][i])) << 16 | half_of_float(unpacked[0][i]);
        } else {
            Sum *const d0 = w.row<Sum>(parts[2 * h]), *const d1 = w.row<Sum>(parts[2 * h + 1]);
#pragma GCC unroll 8
            for (int g = 0; g < 8; ++g) split_halves<Sum>(sum[g], d0 + 4 * g, d1 + 4 * g);
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
