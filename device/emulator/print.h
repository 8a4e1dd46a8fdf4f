#ifndef AUTOTUNE_DEVICE_EMULATOR_PRINT_H
#define AUTOTUNE_DEVICE_EMULATOR_PRINT_H

#include "device/emulator/program.h"
#include "device/emulator/warp.h"

namespace autotune::emulator {

/// printf of a kernel: each lane's line, in the order of lanes, to the launch's text. At most 64 KiB of it are kept.
void print(Warp& warp, const Op& op, std::uint32_t mask, const CallSite& site);

/// assert() of a kernel: throws the Fault with the assertion's own words.
[[noreturn]] void assertion_failed(Warp& warp, const Op& op, std::uint32_t mask, const CallSite& site);

}  // namespace autotune::emulator
#endif
