#ifndef AUTOTUNE_CACHE_DISPATCH_PACKED_KEYS_H
#define AUTOTUNE_CACHE_DISPATCH_PACKED_KEYS_H

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/dispatch/common_bytes.h"

namespace autotune {

/// Keys of one length, in a row. Keys of an op's problems are alike but for a few numbers, so the first is kept as a
/// whole, and of the others 4 bytes from each place where one of those so far differs from it.
class PackedKeys {
public:
    /// How many bytes can be read of any key: shorter ones are filled up with zeros.
    static constexpr std::size_t least_bytes = CommonBytes::least_bytes;
    using FilledUp = std::array<std::byte, least_bytes>;

    explicit PackedKeys(std::size_t key_size) : key_size_{key_size} {}
    void add(std::span<const std::byte> key) {
        FilledUp filled_up;
        const std::byte* const bytes = like_packed(key, filled_up);
        if (!common_ || !common_->fit(bytes)) find_places(bytes);  // once in a while
        for (const Place& place : places_) parts_.push_back(number_at<Part>(bytes + place.at));
        ++count_;
    }

    std::size_t count() const noexcept { return count_; }
    std::size_t key_size() const noexcept { return key_size_; }
    /// With what they are filled up with.
    std::size_t filled_size() const noexcept { return std::max(key_size_, least_bytes); }
    /// Writes filled_size() bytes of a key.
    void copy(std::size_t number, std::byte* key) const noexcept;
    /// There is a key.
    const CommonBytes& common() const noexcept { return *common_; }

    /// A key as it would be here: itself, or its bytes in `filled_up`.
    static const std::byte* like_packed(std::span<const std::byte> key, FilledUp& filled_up) noexcept {
        if (key.size() >= least_bytes) return key.data();
        filled_up = {};
        std::ranges::copy(key, filled_up.begin());
        return filled_up.data();
    }

private:
    using Part = std::uint32_t;
    struct Place {
        std::size_t at = 0;
        std::size_t since = 0;  ///< the first key that has a part of it
    };
    void find_places(const std::byte* key);

    std::size_t key_size_, count_ = 0;
    std::optional<CommonBytes> common_;
    std::vector<Place> places_;   ///< as they were found
    std::vector<bool> in_place_;  ///< each byte of a key: whether a place has it
    std::vector<Part> parts_;
};

}  // namespace autotune
#endif
