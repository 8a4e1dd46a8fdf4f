#include "device/emulator/machine.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "device/emulator/parts.h"

namespace autotune::emulator {
namespace {

/// What all parts of a capability have alike.
/// sources  lanes and bytes a clock: the tables of throughput in NVIDIA's CUDA C++ programming guide and the
///          architecture papers of Turing, GA100, GA102, AD102 and GH100. Latencies: Jia et al. 2019 ("Dissecting the
///          NVIDIA Turing T4 GPU via microbenchmarking", arXiv 1903.07486), Abdelkhalik et al. 2022 (arXiv 2208.11174,
///          A100), Luo et al. 2024 (arXiv 2402.13499, RTX 4090 and H100), rounded.
struct Core {
    int cc;
    double fp32, integer, special, fp64;
    double tensor_flops;
    double request_clocks, l1_bytes, l1_kib;
    double shared_latency, l1_latency, l2_latency, dram_latency, arithmetic_latency;
};
constexpr std::array<Core, 5> cores{{
    {75, 64, 64, 16, 2, 1024, 2, 64, 96, 22, 32, 190, 435, 4},
    {80, 64, 64, 16, 32, 2048, 1, 128, 192, 23, 33, 210, 470, 4},
    {86, 128, 64, 16, 2, 1024, 2, 128, 128, 23, 33, 230, 470, 4},
    {89, 128, 64, 16, 2, 1024, 2, 128, 128, 24, 34, 270, 540, 4},
    {90, 128, 64, 16, 64, 4096, 1, 128, 256, 25, 38, 260, 600, 4},
}};

/// What the second-level cache of a part delivers, GB/s, as published bandwidth tests of it (or of the same chip,
/// scaled by its units) found; and how much of the tensor cores' rate a GeForce keeps with f32 sums.
struct Chip {
    std::string_view key;
    double l2_gbs;
    double tensor_share;
};
constexpr std::array<Chip, 11> chips{{
    {"t4", 1270, 1},
    {"rtx2080ti", 1800, 0.5},
    {"a100", 4400, 1},
    {"a6000", 2400, 1},
    {"a10", 2000, 1},
    {"rtx3090", 2300, 0.5},
    {"a4000", 1400, 1},
    {"rtx4090", 4800, 0.5},
    {"l40s", 4800, 1},
    {"h100", 5600, 1},
    {"h200", 5600, 1},
}};

const Core& core_of(int cc) {
    const Core* best = &cores.front();
    for (const Core& one : cores)
        if (one.cc <= cc) best = &one;
    return *best;
}

}  // namespace

Machine machine_of(const DeviceIdentity& identity) {
    const Core& core = core_of(identity.limits.cc);
    Machine m{.sm_count = std::max(1, identity.limits.sm_count),
              .clock_mhz = std::max(1.0, identity.core_khz / 1000.0),
              .fp32_lanes = core.fp32,
              .int_lanes = core.integer,
              .special_lanes = core.special,
              .fp64_lanes = core.fp64,
              .tensor_flops = core.tensor_flops,
              .request_clocks = core.request_clocks,
              .l1_bytes = core.l1_bytes,
              .l1_kib = core.l1_kib,
              .l2_gbs = 0,
              .dram_gbs = std::max(1.0, identity.bandwidth_gbs * 0.9),
              .shared_latency = core.shared_latency,
              .l1_latency = core.l1_latency,
              .l2_latency = core.l2_latency,
              .dram_latency = core.dram_latency,
              .arithmetic_latency = core.arithmetic_latency};
    for (const Chip& chip : chips) {
        const Part* const part = part_named(chip.key);
        if (!part || part->name != identity.name) continue;
        m.l2_gbs = chip.l2_gbs;
        m.tensor_flops *= chip.tensor_share;
    }
    // Of a part that is not in the table: 18 bytes a clock and SM, about what those in it have.
    if (m.l2_gbs == 0) m.l2_gbs = 18e-3 * m.clock_mhz * m.sm_count;
    return m;
}

}  // namespace autotune::emulator
