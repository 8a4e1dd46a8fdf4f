#ifndef AUTOTUNE_CACHE_DISPATCH_HASHING_H
#define AUTOTUNE_CACHE_DISPATCH_HASHING_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace autotune {

// Hashes for tables in memory: fast and good, the same within a process only. Whoever uses one compares the whole key
// too. source  wyhash's mixing step, Wang Yi

/// The 128-bit product folded: every bit of both depends on every bit of the result.
inline std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// A number below `count` from a hash, by its high bits: no remainder of a division, and any count will do.
inline std::size_t scaled_to(std::size_t count, std::uint64_t hash) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::size_t>(static_cast<Wide>(hash) * count >> 64);
}

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

}  // namespace autotune
#endif
