#include "cache/store/crc32.h"

#ifdef __x86_64__
#include <array>

#include <smmintrin.h>
#include <wmmintrin.h>

namespace autotune {

typedef int Words __attribute__((vector_size(16)));

namespace {

/// Sixteen of these, from the n-th on, move the first n bytes of a block to its end, or from the 16 + n-th on the
/// others to its beginning; 0x80 gives a zero.
constexpr auto moves = [] {
    std::array<std::uint8_t, 48> places;
    for (std::size_t i = 0; i < places.size(); ++i)
        places[i] = i / 16 == 1 ? static_cast<std::uint8_t>(i - 16) : std::uint8_t{0x80};
    return places;
}();

}  // namespace

__attribute__((target("pclmul,sse4.1"))) std::uint32_t Crc32::folded(std::uint32_t state,
                                                                     std::span<const std::byte> bytes) noexcept {
    const auto load = [&](std::size_t at) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data() + at));
    };
    const auto fold = [](__m128i value, __m128i by, __m128i next) __attribute__((target("pclmul,sse4.1"))) {
        return _mm_xor_si128(
            _mm_xor_si128(_mm_clmulepi64_si128(value, by, 0x00), _mm_clmulepi64_si128(value, by, 0x11)), next);
    };
    const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4), by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i a = _mm_xor_si128(load(0), _mm_cvtsi32_si128(static_cast<int>(state)));
    std::size_t i = 16;
    if (bytes.size() >= 64) {
        __m128i b = load(16), c = load(32), d = load(48);
        for (i = 64; i + 64 <= bytes.size(); i += 64) {
            a = fold(a, by_64, load(i));
            b = fold(b, by_64, load(i + 16));
            c = fold(c, by_64, load(i + 32));
            d = fold(d, by_64, load(i + 48));
        }
        a = fold(fold(fold(a, by_16, b), by_16, c), by_16, d);
    }
    for (; i + 16 <= bytes.size(); i += 16) a = fold(a, by_16, load(i));
    if (const std::size_t left = bytes.size() - i; left > 0) {
        // What is folded so far and the bytes left are two blocks, the first of them with zeros before it.
        const auto move = [&](std::size_t from) {
            return _mm_loadu_si128(reinterpret_cast<const __m128i*>(moves.data() + from));
        };
        const __m128i down = move(16 + left);  // where 0x80 stands, that is where the bytes left go
        const __m128i last = _mm_and_si128(load(bytes.size() - 16), _mm_cmpgt_epi8(_mm_setzero_si128(), down));
        a = fold(_mm_shuffle_epi8(a, move(left)), by_16, _mm_or_si128(_mm_shuffle_epi8(a, down), last));
    }
    // 128 bits to 64, to 32, and the remainder.
    const __m128i low = _mm_setr_epi32(-1, 0, -1, 0);
    a = _mm_xor_si128(_mm_unpackhi_epi64(a, _mm_setzero_si128()), _mm_clmulepi64_si128(a, by_16, 0x10));
    // As _mm_srli_si128 by 4, whose count is no constant to GCC where a sanitizer stands between.
    const auto past_4 =
        reinterpret_cast<__m128i>(__builtin_shufflevector(reinterpret_cast<Words>(a), Words{}, 1, 2, 3, 4));
    a = _mm_xor_si128(past_4, _mm_clmulepi64_si128(_mm_and_si128(a, low), _mm_set_epi64x(0, 0x163cd6124), 0x00));
    const __m128i polynomial = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    __m128i t = _mm_clmulepi64_si128(_mm_and_si128(a, low), polynomial, 0x10);
    t = _mm_clmulepi64_si128(_mm_and_si128(t, low), polynomial, 0x00);
    return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(a, t), 1));
}

}  // namespace autotune
#endif
