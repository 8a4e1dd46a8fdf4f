#ifndef AUTOTUNE_TOOLS_COUNTERS_TEXT_H
#define AUTOTUNE_TOOLS_COUNTERS_TEXT_H

#include <span>
#include <string>

#include "device/emulator/counters.h"

namespace autotune {

/// What the emulator counted of a config's launches, as a table a launch: resources and occupancy, instructions by
/// class, sectors, bank conflicts, bytes, flops, barriers, divergence. Lines of at most 100 columns, each ended; what a
/// kernel does not do is left out, but for what one looks for to find zero.
/// limits  of the device that occupancy is told of
std::string counters_text(std::span<const emulator::CountedLaunch> launches, const DeviceLimits& limits);

}  // namespace autotune
#endif
