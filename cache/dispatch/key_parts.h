#ifndef AUTOTUNE_CACHE_DISPATCH_KEY_PARTS_H
#define AUTOTUNE_CACHE_DISPATCH_KEY_PARTS_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/dispatch/hashing.h"
#include "cache/dispatch/packed_keys.h"

namespace autotune {

/// Where keys of one length differ. Keys of an op's problems are alike but for a few numbers, so what they have in
/// common is kept once, and of each key its parts: 4 bytes from each place where any two of them differ. Together they
/// are the whole key, and it can be made again. Keys are given by their first byte, as PackedKeys has them.
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
    /// Writes the key that has these parts, with as many bytes as PackedKeys has of it.
    void restore(const std::byte* parts, std::byte* key) const noexcept {
        for (std::size_t i = 0; i < blocks_.size(); ++i)
            std::memcpy(key + i * sizeof(Lanes), &blocks_[i].common, sizeof(Lanes));
        std::memcpy(key + last_at_, &last_.common, sizeof(Lanes));
        for (const std::uint32_t place : places_) {
            std::memcpy(key + place, parts, sizeof(Part));
            parts += sizeof(Part);
        }
    }
    /// How much restore() writes.
    std::size_t key_bytes() const noexcept { return last_at_ + sizeof(Lanes); }
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
    bool fit(const std::byte* key) const noexcept {
        Lanes differ = (number_at<Lanes>(key + last_at_) ^ last_.common) & last_.shared;
        for (const Block& block : blocks_) {
            differ |= (number_at<Lanes>(key) ^ block.common) & block.shared;
            key += sizeof(Lanes);
        }
        return (differ[0] | differ[1]) == 0;
    }
    /// Of the parts.
    std::uint64_t hash(const std::byte* key) const noexcept {
        constexpr std::uint64_t odd = 0xe7037ed1a0b428dbull;
        std::uint64_t state = 0xa0761d6478bd642full;
        for (const std::uint32_t place : places_) state = fold_product(state ^ number_at<Part>(key + place), odd);
        return fold_product(state, odd);
    }

private:
    using Part = std::uint32_t;
    /// What is compared at once: compilers leave loops as short as these scalar.
    using Lanes = std::uint64_t __attribute__((vector_size(PackedKeys::least_bytes)));
    struct Block {
        Lanes common, shared;  ///< shared: all bits of the bytes that are the same in all keys
    };

    std::vector<Block> blocks_;  ///< from the first byte on, as long as another one follows
    std::size_t last_at_;        ///< the last one may lie over the one before
    Block last_;
    std::vector<std::uint32_t> places_;
};

}  // namespace autotune
#endif
