#ifndef AUTOTUNE_DEVICE_EMULATOR_COPIES_H
#define AUTOTUNE_DEVICE_EMULATOR_COPIES_H

#include <cstdint>

#include "device/emulator/warp.h"

namespace autotune::emulator {

// cp.async. The bytes move at once, as that gives right answers to right programs; until the lane that asked has waited
// they count as pending, so that reading them is reported.

/// a: the target in shared memory, imm: its offset; b: the source, extra: its offset; small: bytes; c: bytes that are
/// read (0: all), the rest become zeros.
void copy_async(Warp& warp, const Op& op, std::uint32_t mask);
void commit_copies(Warp& warp, const Op& op, std::uint32_t mask);
/// imm: groups that may still be under way; -1: wait for all copies.
void wait_copies(Warp& warp, const Op& op, std::uint32_t mask);

}  // namespace autotune::emulator
#endif
