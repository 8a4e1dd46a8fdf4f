#ifndef AUTOTUNE_DEVICE_EMULATOR_TENSOR_RECORD_H
#define AUTOTUNE_DEVICE_EMULATOR_TENSOR_RECORD_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "device/launch.h"

namespace autotune::emulator {

inline constexpr std::size_t tensor_map_bytes = 128, tensor_map_dimensions = 5;

/// What the emulator writes into the 128 bytes of a CUtensorMap: its own, nothing that a GPU would know.
struct TensorRecord {
    static constexpr std::uint64_t right_magic = 0x70616d2d75746d65;
    std::uint64_t magic = right_magic;
    std::uint64_t base = 0;
    std::array<std::uint64_t, tensor_map_dimensions - 1> strides{};  ///< bytes, of all dimensions but the innermost
    std::array<std::uint32_t, tensor_map_dimensions> extents{};      ///< elements, innermost first
    std::array<std::uint16_t, tensor_map_dimensions> box{};
    std::uint8_t rank = 0, element_bytes = 0, swizzle_bytes = 0;
    DType dtype = DType::f32;

    std::uint32_t inner_bytes() const noexcept { return std::uint32_t{box[0]} * element_bytes; }
    /// From one row of the box to the next, in shared memory.
    std::uint32_t pitch() const noexcept { return swizzle_bytes > 0 ? swizzle_bytes : inner_bytes(); }
    std::uint32_t rows() const noexcept;
    /// Whether its numbers can be worked with: a kernel may have written what it likes to memory.
    bool is_sound() const noexcept;
};
static_assert(sizeof(TensorRecord) <= tensor_map_bytes);

/// Where a byte of shared memory goes by a swizzle of that many bytes: bits 4 and up take those from 7 up along.
constexpr std::uint32_t swizzled(std::uint32_t at, std::uint32_t swizzle_bytes) noexcept {
    return at ^ ((at >> 3) & (swizzle_bytes - (swizzle_bytes > 0 ? 16u : 0u)));
}

/// Fills `to` for a tensor at `address`. Returns what the driver would object to, or nothing.
std::string encode_tensor_record(const TensorMapArgument& map, std::uint64_t address, std::span<std::byte> to);

}  // namespace autotune::emulator
#endif
