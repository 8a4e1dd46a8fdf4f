#ifndef AUTOTUNE_DEVICE_COMPARE_H
#define AUTOTUNE_DEVICE_COMPARE_H

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/device.h"

namespace autotune {

/// Device::compare on the host, with the same answer to the bit: `got` is strided, `value` and `magnitude` are
/// contiguous and row-major in `shape`. A magnitude that is NaN, or an empty span, means |value|.
Comparison compare_on_host(std::span<const std::byte> got, DType dtype, std::span<const std::int64_t> shape,
                           std::span<const std::int64_t> strides, std::span<const double> value,
                           std::span<const double> magnitude, const Bound& bound, std::uint8_t poison);

/// Where row-major element `index` of a strided tensor lies, in elements.
std::int64_t element_offset(std::uint64_t index, std::span<const std::int64_t> shape,
                            std::span<const std::int64_t> strides) noexcept;

/// Of a shape; 1 for rank 0.
std::uint64_t element_count(std::span<const std::int64_t> shape) noexcept;

/// One element as a double, from its bytes.
double element_value(std::span<const std::byte> bytes, DType dtype) noexcept;

/// What `bound` allows at an element.
double allowed_error(double value, double magnitude, const Bound& bound) noexcept;

}  // namespace autotune
#endif
