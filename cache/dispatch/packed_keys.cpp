#include "cache/dispatch/packed_keys.h"

#include <cstring>

namespace autotune {

void PackedKeys::find_places(const std::byte* key) {
    const std::size_t size = filled_size();
    if (!common_) {
        common_.emplace(key, size);
        in_place_.resize(size);
        return;
    }
    common_->strike_out(key);
    for (std::size_t at = 0; at < size; ++at) {
        if (common_->counts(at) || in_place_[at]) continue;
        const std::size_t place = std::min(at, size - sizeof(Part));
        places_.push_back({place, count_});
        std::fill_n(in_place_.begin() + static_cast<std::ptrdiff_t>(place), sizeof(Part), true);
    }
}

void PackedKeys::copy(std::size_t number, std::byte* key) const noexcept {
    common_->write(key);
    std::size_t first = 0;
    for (const Place& place : places_) first += number > place.since ? number - place.since : 0;
    for (const Place& place : places_)
        if (number >= place.since) std::memcpy(key + place.at, &parts_[first++], sizeof(Part));
}

}  // namespace autotune
