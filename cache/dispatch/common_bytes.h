#ifndef AUTOTUNE_CACHE_DISPATCH_COMMON_BYTES_H
#define AUTOTUNE_CACHE_DISPATCH_COMMON_BYTES_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/dispatch/hashing.h"

namespace autotune {

/// What keys of one length have in common: bytes, some of which count. Keys are given by their first byte.
class CommonBytes {
public:
    /// How long keys are at least.
    static constexpr std::size_t least_bytes = 16;

    /// All bytes of the key, which count.
    CommonBytes(const std::byte* key, std::size_t size);
    std::size_t size() const noexcept { return last_at_ + sizeof(Lanes); }

    /// Whether the key has all bytes that count.
    bool fit(const std::byte* key) const noexcept {
        Lanes differ = (number_at<Lanes>(key + last_at_) ^ last_.bytes) & last_.count;
        for (const Block& block : blocks_) {
            differ |= (number_at<Lanes>(key) ^ block.bytes) & block.count;
            key += sizeof(Lanes);
        }
        return (differ[0] | differ[1]) == 0;
    }
    bool counts(std::size_t at) const noexcept;
    /// Bytes that differ in this key count no longer.
    void strike_out(const std::byte* key) noexcept;
    /// Writes all bytes, also those that do not count, as they were in the key that was given first.
    void write(std::byte* key) const noexcept {
        for (std::size_t i = 0; i < blocks_.size(); ++i)
            std::memcpy(key + i * sizeof(Lanes), &blocks_[i].bytes, sizeof(Lanes));
        std::memcpy(key + last_at_, &last_.bytes, sizeof(Lanes));
    }

private:
    /// What is compared at once: compilers leave loops as short as these scalar.
    using Lanes = std::uint64_t __attribute__((vector_size(least_bytes)));
    struct Block {
        Lanes bytes, count;  ///< count: all bits of the bytes that do
    };

    std::vector<Block> blocks_;  ///< from the first byte on, as long as another one follows
    std::size_t last_at_;        ///< the last one may lie over the one before
    Block last_;
};

}  // namespace autotune
#endif
