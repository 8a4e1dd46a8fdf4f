#ifndef AUTOTUNE_CACHE_DISPATCH_HASHING_H
#define AUTOTUNE_CACHE_DISPATCH_HASHING_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace autotune {

/// The 128-bit product folded: every bit of both depends on every bit of the result.
inline std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Hash for tables in memory: fast and good, the same within a process only. Whoever uses it compares the whole key
/// too. source  wyhash's mixing step, Wang Yi
inline std::uint64_t hash_words(std::span<const std::uint64_t> words) noexcept {
    constexpr std::uint64_t k0 = 0xa0761d6478bd642full, k1 = 0xe7037ed1a0b428dbull, k2 = 0x8ebc6af09c88c6e3ull;
    std::uint64_t state = k0 ^ words.size();
    std::size_t i = 0;
    for (; i + 2 <= words.size(); i += 2) state = fold_product(words[i] ^ k1, words[i + 1] ^ state);
    if (i < words.size()) state = fold_product(words[i] ^ k1, state ^ k2);
    return fold_product(state ^ k2, k1);
}

/// A number whose bytes lie there.
template <class Number>
Number number_at(const std::byte* bytes) noexcept {
    Number number;
    std::memcpy(&number, bytes, sizeof number);
    return number;
}

/// What is left over after whole steps is read with bytes that were read before: a copy of odd size is a call.
inline std::uint64_t hash_bytes(std::span<const std::byte> bytes) noexcept {
    constexpr std::uint64_t k0 = 0xa0761d6478bd642full, k1 = 0xe7037ed1a0b428dbull, k2 = 0x8ebc6af09c88c6e3ull;
    const std::byte* at = bytes.data();
    const std::byte* const end = at + bytes.size();
    std::uint64_t state = k0 ^ bytes.size(), a = 0, b = 0;
    if (bytes.size() > 16) {
        for (; end - at > 16; at += 16)
            state = fold_product(number_at<std::uint64_t>(at) ^ k1, number_at<std::uint64_t>(at + 8) ^ state);
        a = number_at<std::uint64_t>(end - 16), b = number_at<std::uint64_t>(end - 8);
    } else if (bytes.size() >= 8) {
        a = number_at<std::uint64_t>(at), b = number_at<std::uint64_t>(end - 8);
    } else if (bytes.size() >= 4) {
        a = number_at<std::uint32_t>(at), b = number_at<std::uint32_t>(end - 4);
    } else {
        for (; at != end; ++at) a = a << 8 | std::to_integer<std::uint64_t>(*at);
    }
    state = fold_product(a ^ k1, b ^ state);
    return fold_product(state ^ k2, k1);
}

/// Whether two keys of one size are the same. memcmp is a call, which a short key is not worth.
inline bool same_bytes(const std::byte* a, const std::byte* b, std::size_t size) noexcept {
    if (size < 8 || size > 32) return std::memcmp(a, b, size) == 0;
    std::uint64_t differ = number_at<std::uint64_t>(a + size - 8) ^ number_at<std::uint64_t>(b + size - 8);
    for (std::size_t i = 0; i + 8 <= size; i += 8)
        differ |= number_at<std::uint64_t>(a + i) ^ number_at<std::uint64_t>(b + i);
    return differ == 0;
}

}  // namespace autotune
#endif
