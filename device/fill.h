#ifndef AUTOTUNE_DEVICE_FILL_H
#define AUTOTUNE_DEVICE_FILL_H

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/device.h"

namespace autotune {

/// Writes elements [first, first + out.size() / size_of(dtype)) of a tensor of `elements` elements: the same bits that
/// a device makes from the same spec, from any first element, so that threads may share a tensor.
///
///   normal       standard normal; whole types round it
///   uniform      [low, high); whole types as `integers`
///   constant     low
///   integers     whole numbers, low and high included
///   permutation  0 to modulus - 1 shuffled, row by row
///   sorted       ascending from low to high, in rows of `modulus` if that is not 0
///   lengths      as integers; the first element is high and the second low, so that both extremes occur
///   special      zeros of both signs, subnormals, large numbers; the ends of whole types; the rest ordinary
///   zero         zero bytes
///
/// source: Philox4x32-10 (Salmon et al. 2011) under all of them; see device/support_math.h.
void fill_on_host(std::span<std::byte> out, DType dtype, std::uint64_t first, std::uint64_t elements,
                  const FillSpec& spec);

/// The table of the normal distribution that `support_math.h` reads; its size is support::normal_table_size.
std::span<const int> normal_table();

}  // namespace autotune
#endif
