#ifndef AUTOTUNE_DEVICE_GUARDS_H
#define AUTOTUNE_DEVICE_GUARDS_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace autotune {

/// Guard zones before and after each buffer. Their 16-bit words are 0xFFFE: a NaN in every floating type of two bytes
/// and more, so that a read out of bounds shows in the result, and no poison (0xFF), so that a write does too.
constexpr std::uint64_t guard_bytes = 4096;
constexpr std::uint16_t guard_word = 0xfffe;

/// The guard's byte at an address: the pattern hangs on addresses, since a buffer may end at an odd one.
constexpr std::byte guard_byte(std::uint64_t address) noexcept {
    return address % 2 == 0 ? std::byte{guard_word & 0xff} : std::byte{guard_word >> 8};
}

/// Offset in `zone` (whose first byte is at `address`) of the first byte that is not the guard's, or nothing.
std::optional<std::uint64_t> first_change(std::span<const std::byte> zone, std::uint64_t address) noexcept;
std::optional<std::uint64_t> last_change(std::span<const std::byte> zone, std::uint64_t address) noexcept;

/// How far outside a buffer the nearest change lies, from the zones before and after it: 0 is the first byte behind
/// the end, -1 the last before the start. Nothing when all is intact.
std::optional<std::int64_t> nearest_change(std::span<const std::byte> before, std::uint64_t before_address,
                                           std::span<const std::byte> after, std::uint64_t after_address) noexcept;

}  // namespace autotune
#endif
