#ifndef AUTOTUNE_CACHE_DISPATCH_KEY_PARTS_H
#define AUTOTUNE_CACHE_DISPATCH_KEY_PARTS_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/dispatch/hashing.h"
#include "cache/dispatch/packed_keys.h"

namespace autotune {

/// Where keys of one length differ. What they have in common is kept once, and of each key its parts: 4 bytes from each
/// place where any two of them differ. Together they are the whole key, and it can be made again. Keys are given by
/// their first byte, filled up as PackedKeys has them.
class KeyParts {
public:
    explicit KeyParts(const PackedKeys& keys);

    /// How much copy() writes.
    std::size_t bytes() const noexcept { return places_.size() * sizeof(Part); }
    void copy(const std::byte* key, std::byte* parts) const noexcept {
        for (const std::uint32_t place : places_) {
            std::memcpy(parts, key + place, sizeof(Part));
            parts += sizeof(Part);
        }
    }
    /// Writes the key that has these parts.
    void restore(const std::byte* parts, std::byte* key) const noexcept {
        common_.write(key);
        for (const std::uint32_t place : places_) {
            std::memcpy(key + place, parts, sizeof(Part));
            parts += sizeof(Part);
        }
    }
    /// How much restore() writes.
    std::size_t key_bytes() const noexcept { return common_.size(); }
    /// Whether the key with these parts comes before the other one, byte by byte: places ascend, and what keys share
    /// decides nothing.
    bool before(const std::byte* parts, const std::byte* others) const noexcept {
        return std::memcmp(parts, others, bytes()) < 0;
    }
    /// Whether the key has these parts, as copy() wrote them.
    bool same(const std::byte* parts, const std::byte* key) const noexcept {
        Part differ = 0;
        for (const std::uint32_t place : places_) {
            differ |= number_at<Part>(parts) ^ number_at<Part>(key + place);
            parts += sizeof(Part);
        }
        return differ == 0;
    }
    /// Whether the key is, in all but its parts, what the keys have in common.
    bool fit(const std::byte* key) const noexcept { return common_.fit(key); }
    /// Of the parts.
    std::uint64_t hash(const std::byte* key) const noexcept {
        constexpr std::uint64_t odd = 0xe7037ed1a0b428dbull;
        std::uint64_t state = 0xa0761d6478bd642full;
        for (const std::uint32_t place : places_) state = fold_product(state ^ number_at<Part>(key + place), odd);
        return fold_product(state, odd);
    }

private:
    using Part = std::uint32_t;

    CommonBytes common_;
    std::vector<std::uint32_t> places_;
};

}  // namespace autotune
#endif
