#ifndef AUTOTUNE_DEVICE_EMULATOR_COST_MODEL_H
#define AUTOTUNE_DEVICE_EMULATOR_COST_MODEL_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "device/emulator/block_trace.h"
#include "device/emulator/machine.h"

namespace autotune::emulator {

/// What one launch of a sequence asks of a GPU, told by some of its blocks.
struct LaunchWork {
    std::string entry;
    double blocks = 0;  ///< of the grid
    std::uint32_t repeat = 1;
    int warps = 0;          ///< of a block
    int resident = 1;       ///< blocks that an SM holds at a time
    BlockWork interior;     ///< the mean of blocks from all over the grid
    BlockWork edge;         ///< of the last block
    double last_path = 0;   ///< longest path_clocks seen of a block that begins when all are under way
    double dram_bytes = 0;  ///< that no cache keeps from memory: each byte that the launch touches, once
    friend bool operator==(const LaunchWork&, const LaunchWork&) = default;
};

/// How the parts of a prediction are put together, as a fit on measurements may find it. 1: what the machine's figures
/// say. Norms: 1 adds what is put together, infinity takes the longest.
struct ModelWeights {
    double issue = 1, arithmetic = 1, tensor = 1, memory = 1;  ///< of the units of an SM
    double path = 1;
    double l2 = 1, dram = 1;
    double tail = 0.5;  ///< of the last round of blocks that no other work hides
    double launch_us = 2;
    double unit_norm = 8;   ///< of the units
    double path_norm = 3;   ///< of a block's path and the units
    double level_norm = 3;  ///< of the SMs, the second-level cache and memory
};

/// Those that were fitted on measurements on a GPU of the capability, else the neutral ones. Which, is in
/// docs/emulator.md.
const ModelWeights& weights_of(int cc) noexcept;

/// Where the time of a launch goes, in microseconds.
struct ModelParts {
    double issue = 0, arithmetic = 0, tensor = 0, memory = 0;  ///< each unit of the SMs, if nothing else were
    double path = 0;                                           ///< of the slowest warps, one round after the other
    double l2 = 0, dram = 0;
    double total = 0;
};

/// The time of a launch in microseconds, without what starting it costs.
ModelParts predict(const LaunchWork& work, const Machine& machine, const ModelWeights& weights);

/// The time of a sequence in microseconds. A prediction, good for choosing what to measure and never a result.
double predicted_us(const std::vector<LaunchWork>& launches, const Machine& machine, const ModelWeights& weights);

/// Bytes that an SM keeps for L1 beside the shared memory of `resident` blocks, for each of them.
double l1_share(const Machine& machine, int cc, std::int64_t shared_bytes, int resident);

}  // namespace autotune::emulator
#endif
