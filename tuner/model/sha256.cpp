#include "tuner/model/sha256.h"

#include <sodium.h>

#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace autotune {

#ifdef __x86_64__

namespace {

/// FIPS 180-4, section 4.2.2.
alignas(16) constexpr std::uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/// The eight words of the state in the order that the instructions want: ABEF and CDGH.
struct State {
    __m128i abef, cdgh;
};

typedef std::int32_t Words __attribute__((vector_size(16)));

/// Four rounds an iteration; the words of the schedule are made three iterations ahead.
__attribute__((target("sha,sse4.1,ssse3"))) void add_blocks(State& state, const std::byte* bytes,
                                                            std::size_t blocks) noexcept {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    for (; blocks > 0; --blocks, bytes += 64) {
        __m128i abef = state.abef, cdgh = state.cdgh, words[4];
        for (int i = 0; i < 4; ++i)
            words[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * i)), big_endian);
        for (int i = 0; i < 16; ++i) {
            const __m128i four = words[i % 4];
            const auto* constants = reinterpret_cast<const __m128i*>(round_constants + 4 * i);
            const __m128i sum = _mm_add_epi32(four, _mm_load_si128(constants));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
            if (i >= 12) continue;
            const __m128i next = words[(i + 1) % 4], last = words[(i + 3) % 4];
            // As _mm_alignr_epi8 by 4, whose count is no constant to GCC where a sanitizer stands between.
            const __m128i shifted = reinterpret_cast<__m128i>(__builtin_shufflevector(
                reinterpret_cast<Words>(words[(i + 2) % 4]), reinterpret_cast<Words>(last), 1, 2, 3, 4));
            words[i % 4] = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(four, next), shifted), last);
        }
        state.abef = _mm_add_epi32(state.abef, abef);
        state.cdgh = _mm_add_epi32(state.cdgh, cdgh);
    }
}

__attribute__((target("sha,sse4.1,ssse3"))) Sha256Digest digest_of(std::span<const std::byte> bytes) noexcept {
    State state{_mm_set_epi32(0x6a09e667, static_cast<int>(0xbb67ae85), 0x510e527f, static_cast<int>(0x9b05688c)),
                _mm_set_epi32(0x3c6ef372, static_cast<int>(0xa54ff53a), 0x1f83d9ab, 0x5be0cd19)};
    const std::size_t whole = bytes.size() / 64, rest = bytes.size() % 64;
    add_blocks(state, bytes.data(), whole);
    std::byte tail[128] = {};
    if (rest > 0) std::memcpy(tail, bytes.data() + 64 * whole, rest);
    tail[rest] = std::byte{0x80};
    const std::size_t blocks = rest < 56 ? 1 : 2;
    const std::uint64_t bits = __builtin_bswap64(std::uint64_t{bytes.size()} * 8);
    std::memcpy(tail + 64 * blocks - 8, &bits, sizeof bits);
    add_blocks(state, tail, blocks);

    alignas(16) std::uint32_t abef[4], cdgh[4];  // the last letter first
    _mm_store_si128(reinterpret_cast<__m128i*>(abef), state.abef);
    _mm_store_si128(reinterpret_cast<__m128i*>(cdgh), state.cdgh);
    Sha256Digest digest{};
    std::size_t at = 0;
    for (const std::uint32_t word : {abef[3], abef[2], cdgh[3], cdgh[2], abef[1], abef[0], cdgh[1], cdgh[0]}) {
        const std::uint32_t big = __builtin_bswap32(word);
        std::memcpy(digest.data() + at, &big, sizeof big);
        at += sizeof big;
    }
    return digest;
}

}  // namespace

bool has_sha256_instructions() noexcept {
    static const bool there = [] {
        constexpr unsigned ssse3 = 1u << 9, sse4_1 = 1u << 19, sha = 1u << 29;
        unsigned a = 0, b = 0, c = 0, d = 0;
        if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & ssse3) || !(c & sse4_1)) return false;
        return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & sha);
    }();
    return there;
}

#else

bool has_sha256_instructions() noexcept { return false; }

#endif

Sha256Digest sha256(std::span<const std::byte> bytes) noexcept {
#ifdef __x86_64__
    if (has_sha256_instructions()) return digest_of(bytes);
#endif
    Sha256Digest digest{};
    crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    return digest;
}

}  // namespace autotune
