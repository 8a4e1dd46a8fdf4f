#ifndef AUTOTUNE_DEVICE_EMULATOR_SCHEDULER_H
#define AUTOTUNE_DEVICE_EMULATOR_SCHEDULER_H

#include <cstdint>
#include <optional>
#include <span>

#include "device/emulator/block.h"

namespace autotune::emulator {

/// Runs a launch to its end, block after block in the order of their numbers, so that runs are the same bit for bit.
/// A block that goes on for long without an end (it may wait for a later one) shares with the next ones; a cooperative
/// launch has all of its blocks at once.
/// blocks  numbers of those to run, all where it is empty
/// throws  Fault
void run_launch(LaunchState& launch, bool cooperative = false, std::span<const std::uint64_t> blocks = {});

}  // namespace autotune::emulator
#endif
