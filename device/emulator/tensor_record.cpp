#include "device/emulator/tensor_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace autotune::emulator {
namespace {

constexpr std::uint64_t largest_box = std::uint64_t{1} << 20;  ///< bytes: beyond any device's shared memory

}  // namespace

std::uint32_t TensorRecord::rows() const noexcept {
    std::uint32_t count = 1;
    for (std::size_t i = 1; i < rank; ++i) count *= box[i];
    return count;
}

bool TensorRecord::is_sound() const noexcept {
    if (magic != right_magic || rank == 0 || rank > tensor_map_dimensions) return false;
    if (element_bytes == 0 || element_bytes > 8 || swizzle_bytes > 128 || swizzle_bytes % 32 != 0 ||
        swizzle_bytes == 96)
        return false;
    std::uint64_t bytes = swizzle_bytes > 0 ? swizzle_bytes : inner_bytes();
    for (std::size_t i = 0; i < rank; ++i) {
        if (box[i] == 0 || box[i] > 256) return false;
        if (i > 0) bytes *= box[i];
        if (bytes > largest_box) return false;
    }
    return inner_bytes() % 16 == 0 && inner_bytes() <= pitch();
}

std::string encode_tensor_record(const TensorMapArgument& map, std::uint64_t address, std::span<std::byte> to) {
    const std::size_t rank = map.extents.size();
    if (rank == 0 || rank > tensor_map_dimensions || map.strides_bytes.size() + 1 != rank || map.box.size() != rank)
        return "it needs 1 to 5 dimensions, with a box of as many and one stride less";
    if (address % 16 != 0) return fmt::format("its address {:#x} is no multiple of 16", address);
    TensorRecord record;
    record.base = address;
    record.rank = static_cast<std::uint8_t>(rank);
    record.dtype = map.dtype;
    record.element_bytes = static_cast<std::uint8_t>(size_of(map.dtype));
    record.swizzle_bytes = static_cast<std::uint8_t>(map.swizzle_bytes);
    if (map.swizzle_bytes != 0 && map.swizzle_bytes != 32 && map.swizzle_bytes != 64 && map.swizzle_bytes != 128)
        return fmt::format("there is no swizzle of {} bytes", map.swizzle_bytes);
    for (std::size_t i = 0; i < rank; ++i) {
        if (map.extents[i] == 0 || map.extents[i] > 0xffffffff)
            return fmt::format("its extent {} is {}, not 1 to 2^32 - 1", i, map.extents[i]);
        if (map.box[i] == 0 || map.box[i] > 256)
            return fmt::format("its box has {} elements in dimension {}, not 1 to 256", map.box[i], i);
        record.extents[i] = static_cast<std::uint32_t>(map.extents[i]);
        record.box[i] = static_cast<std::uint16_t>(map.box[i]);
        if (i == 0) continue;
        const std::uint64_t stride = map.strides_bytes[i - 1];
        if (stride % 16 != 0 || stride >= std::uint64_t{1} << 40)
            return fmt::format("its stride of {} bytes is no multiple of 16 below 2^40", stride);
        record.strides[i - 1] = stride;
    }
    const std::uint32_t inner = record.inner_bytes();
    if (inner % 16 != 0) return fmt::format("the {} bytes of its box's rows are no multiple of 16", inner);
    if (map.swizzle_bytes > 0 && inner > map.swizzle_bytes)
        return fmt::format("the {} bytes of its box's rows go beyond the swizzle's {}", inner, map.swizzle_bytes);
    if (!record.is_sound()) return "its box goes beyond any shared memory";
    std::memset(to.data(), 0, to.size());
    std::memcpy(to.data(), &record, std::min(to.size(), sizeof record));
    return {};
}

}  // namespace autotune::emulator
