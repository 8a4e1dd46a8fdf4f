#ifndef AUTOTUNE_DEVICE_EMULATOR_MACHINE_H
#define AUTOTUNE_DEVICE_EMULATOR_MACHINE_H

#include "device/device.h"

namespace autotune::emulator {

/// What the cost model knows of a GPU's speed. Widths are lanes of an SM that a clock serves, latencies clocks from an
/// instruction to what depends on it.
struct Machine {
    int sm_count = 1;
    double clock_mhz = 1000;
    double fp32_lanes = 64, int_lanes = 64, special_lanes = 16, fp64_lanes = 2;
    double tensor_flops = 1024;  ///< of f16 with f32 sums, a clock and SM
    double request_clocks = 1;   ///< that the load-store unit spends on the addresses of a warp
    double l1_bytes = 128;       ///< that it moves a clock, from shared memory and L1
    double l1_kib = 128;         ///< L1 and shared memory together
    double l2_gbs = 1000, dram_gbs = 100;
    double shared_latency = 25, l1_latency = 33, l2_latency = 220, dram_latency = 450;
    double arithmetic_latency = 4;
};

/// Of a part of the table by the name in its identity, else of the capability, scaled by what the identity tells.
Machine machine_of(const DeviceIdentity& identity);

}  // namespace autotune::emulator
#endif
