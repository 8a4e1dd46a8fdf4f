#ifndef AUTOTUNE_DEVICE_OCCUPANCY_H
#define AUTOTUNE_DEVICE_OCCUPANCY_H

#include <array>
#include <cstdint>
#include <optional>

#include "device/device.h"

namespace autotune {

/// What a capability fixes, for every part that has it.
struct CapabilityRow {
    int cc;
    int threads_per_sm;
    int blocks_per_sm;
    int shared_per_sm_kib;
    int max_shared_kib;   ///< a block, with opt-in
    int reserved_shared;  ///< bytes a block
    int shared_unit;      ///< bytes
    int barriers_per_sm;  ///< 0: they limit nothing
};

/// One row a capability. All have 65,536 registers an SM, 1,024 threads a block and warps of 32.
inline constexpr std::array<CapabilityRow, 11> capabilities{{
    {75, 1024, 16, 64, 64, 0, 256, 0},
    {80, 2048, 32, 164, 163, 1024, 128, 0},
    {86, 1536, 16, 100, 99, 1024, 128, 0},
    {87, 1536, 16, 164, 163, 1024, 128, 0},
    {89, 1536, 24, 100, 99, 1024, 128, 0},
    {90, 2048, 32, 228, 227, 1024, 128, 64},
    {100, 2048, 32, 228, 227, 1024, 128, 64},
    {103, 2048, 32, 228, 227, 1024, 128, 64},
    {110, 1536, 24, 228, 227, 1024, 128, 24},
    {120, 1536, 24, 100, 99, 1024, 128, 24},
    {121, 1536, 24, 100, 99, 1024, 128, 24},
}};

/// The row, or null for a capability that the table lacks.
const CapabilityRow* capability_row(int cc) noexcept;

/// The limits that a capability alone decides; sm_count, L2 and memory stay 0. nullopt as above.
std::optional<DeviceLimits> limits_of_capability(int cc) noexcept;

/// What one block of a launch takes.
struct BlockDemand {
    int threads = 0;
    int registers = 0;  ///< a thread
    std::int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0;
    int barriers = 1;
};

/// How many blocks of a launch an SM holds, and what keeps it from holding more. Clusters have limits of their own,
/// which are not modelled.
struct Occupancy {
    enum class Limit { warps, registers, shared, barriers, blocks };
    int blocks = 0;  ///< 0: one block does not fit
    Limit limit = Limit::warps;
};

/// source  NVIDIA's cuda_occupancy.h, which a test compares it with over random launches
Occupancy occupancy(const DeviceLimits& limits, const BlockDemand& block) noexcept;

}  // namespace autotune
#endif
