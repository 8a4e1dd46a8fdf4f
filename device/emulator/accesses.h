#ifndef AUTOTUNE_DEVICE_EMULATOR_ACCESSES_H
#define AUTOTUNE_DEVICE_EMULATOR_ACCESSES_H

#include <cstdint>
#include <string>

#include "device/emulator/warp.h"

namespace autotune::emulator {

struct LaunchState;

// The rare paths of memory accesses: what is wrong with one, and counting. `at` holds each lane's offset from the start
// of its space, `bytes` what each lane touches.

enum class Access : std::uint8_t { load, store, atomic };

/// The space that a generic address of the first lane lies in; other lanes' may differ.
Space space_of(const Warp& warp, std::uint64_t address) noexcept;
/// Where a space begins in generic addresses.
std::uint64_t window_of(Space space) noexcept;

/// Throws the Fault of an access that is out of bounds or misaligned.
[[noreturn]] void bad_access(Warp& warp, const Op& op, std::uint32_t mask, Space space, const std::uint64_t* at,
                             std::uint32_t bytes, Access access);
/// Looks at the states of all bytes, throws what the checks that are on forbid, and marks what is written.
void check_states(Warp& warp, const Op& op, std::uint32_t mask, Space space, const std::uint64_t* at,
                  std::uint32_t bytes, Access access);
void count_access(Warp& warp, std::uint32_t mask, Space space, const std::uint64_t* at, std::uint32_t bytes,
                  Access access);

/// ", 4 bytes behind the end of argument 2 (4096 bytes)": where an address in global memory lies.
std::string beside(const LaunchState& launch, std::uint64_t address);

/// Addresses of the lanes as offsets in their space, checked for bounds and alignment; for handlers that are not hot.
/// Returns the space; generic addresses have to lie in one space all.
Space resolve(Warp& warp, const Op& op, std::uint32_t mask, std::int32_t row, std::int64_t offset, Space space,
              bool wide, std::uint64_t* at, std::uint32_t bytes, Access access);

}  // namespace autotune::emulator
#endif
