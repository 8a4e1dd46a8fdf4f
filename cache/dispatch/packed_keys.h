#ifndef AUTOTUNE_CACHE_DISPATCH_PACKED_KEYS_H
#define AUTOTUNE_CACHE_DISPATCH_PACKED_KEYS_H

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace autotune {

/// Keys of one length, one after the other.
class PackedKeys {
public:
    /// How many bytes can be read of any key: shorter ones are filled up with zeros.
    static constexpr std::size_t least_bytes = 16;
    using FilledUp = std::array<std::byte, least_bytes>;

    explicit PackedKeys(std::size_t key_size) : key_size_{key_size} {}
    void add(std::span<const std::byte> key) {
        bytes_.insert(bytes_.end(), key.begin(), key.end());
        if (key_size_ < least_bytes) bytes_.resize(bytes_.size() + least_bytes - key_size_);
    }

    std::size_t count() const noexcept { return bytes_.size() / stride(); }
    std::size_t key_size() const noexcept { return key_size_; }
    /// From one key to the next.
    std::size_t stride() const noexcept { return std::max(key_size_, least_bytes); }
    const std::byte* at(std::size_t number) const noexcept { return bytes_.data() + number * stride(); }
    std::span<const std::byte> operator[](std::size_t number) const noexcept { return {at(number), key_size_}; }
    std::size_t bytes() const noexcept { return bytes_.capacity(); }

    /// A key as it would be here: itself, or its bytes in `filled_up`.
    static const std::byte* like_packed(std::span<const std::byte> key, FilledUp& filled_up) noexcept {
        if (key.size() >= least_bytes) return key.data();
        filled_up = {};
        std::ranges::copy(key, filled_up.begin());
        return filled_up.data();
    }

private:
    std::size_t key_size_;
    std::vector<std::byte> bytes_;
};

}  // namespace autotune
#endif
