#include "device/guards.h"

namespace autotune {

std::optional<std::uint64_t> first_change(std::span<const std::byte> zone, std::uint64_t address) noexcept {
    for (std::uint64_t i = 0; i < zone.size(); ++i)
        if (zone[i] != guard_byte(address + i)) return i;
    return std::nullopt;
}

std::optional<std::uint64_t> last_change(std::span<const std::byte> zone, std::uint64_t address) noexcept {
    for (std::uint64_t i = zone.size(); i-- > 0;)
        if (zone[i] != guard_byte(address + i)) return i;
    return std::nullopt;
}

std::optional<std::int64_t> nearest_change(std::span<const std::byte> before, std::uint64_t before_address,
                                           std::span<const std::byte> after, std::uint64_t after_address) noexcept {
    const auto left = last_change(before, before_address);
    const auto right = first_change(after, after_address);
    const std::int64_t left_distance = left ? static_cast<std::int64_t>(before.size() - *left) : 0;
    if (left && (!right || left_distance <= static_cast<std::int64_t>(*right))) return -left_distance;
    if (right) return static_cast<std::int64_t>(*right);
    return std::nullopt;
}

}  // namespace autotune
