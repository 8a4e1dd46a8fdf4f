#include "device/occupancy.h"

#include <algorithm>

namespace autotune {
namespace {

constexpr int register_unit = 256;  // allocated a warp
constexpr int partitions = 4;       // of an SM, each with its own registers
constexpr int most_registers = 255;

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

struct Room {
    std::int64_t blocks;
    Occupancy::Limit limit;
};

Room by_warps(const DeviceLimits& limits, std::int64_t warps) {
    return {limits.threads_per_sm / limits.warp / warps, Occupancy::Limit::warps};
}

Room by_registers(const DeviceLimits& limits, std::int64_t warps, int registers) {
    const std::int64_t of_warp = round_up(std::int64_t{limits.warp} * registers, register_unit);
    if (of_warp == 0) return {INT32_MAX, Occupancy::Limit::registers};
    const bool too_large = of_warp * round_up(warps, partitions) > limits.registers_per_sm;
    const std::int64_t room = limits.registers_per_sm / partitions / of_warp * partitions;
    return {too_large ? 0 : room / warps, Occupancy::Limit::registers};
}

Room by_shared(const DeviceLimits& limits, const BlockDemand& block) {
    const std::int64_t asked = block.static_shared_bytes + block.dynamic_shared_bytes;
    if (asked > limits.max_shared) return {0, Occupancy::Limit::shared};
    const CapabilityRow* row = capability_row(limits.cc);
    const std::int64_t taken = round_up(asked + limits.reserved_shared, row ? row->shared_unit : 128);
    return {taken == 0 ? INT32_MAX : limits.shared_per_sm / taken, Occupancy::Limit::shared};
}

Room by_barriers(const DeviceLimits& limits, int barriers) {
    const CapabilityRow* row = capability_row(limits.cc);
    const int slots = row ? row->barriers_per_sm : 0;
    return {slots == 0 || barriers <= 0 ? INT32_MAX : slots / barriers, Occupancy::Limit::barriers};
}

}  // namespace

const CapabilityRow* capability_row(int cc) noexcept {
    const auto row =
        std::find_if(capabilities.begin(), capabilities.end(), [&](const CapabilityRow& r) { return r.cc == cc; });
    return row == capabilities.end() ? nullptr : &*row;
}

std::optional<DeviceLimits> limits_of_capability(int cc) noexcept {
    const CapabilityRow* row = capability_row(cc);
    if (!row) return std::nullopt;
    DeviceLimits limits;
    limits.cc = cc;
    limits.max_shared = row->max_shared_kib * 1024;
    limits.shared_per_sm = row->shared_per_sm_kib * 1024;
    limits.reserved_shared = row->reserved_shared;
    limits.threads_per_sm = row->threads_per_sm;
    limits.blocks_per_sm_limit = row->blocks_per_sm;
    return limits;
}

Occupancy occupancy(const DeviceLimits& limits, const BlockDemand& block) noexcept {
    if (block.threads <= 0 || block.threads > limits.max_threads) return {0, Occupancy::Limit::warps};
    if (block.registers > most_registers) return {0, Occupancy::Limit::registers};
    const std::int64_t warps = (block.threads + limits.warp - 1) / limits.warp;
    const std::array rooms{by_warps(limits, warps), by_registers(limits, warps, block.registers),
                           by_shared(limits, block), by_barriers(limits, block.barriers),
                           Room{limits.blocks_per_sm_limit, Occupancy::Limit::blocks}};
    const Room tightest =
        *std::min_element(rooms.begin(), rooms.end(), [](const Room& a, const Room& b) { return a.blocks < b.blocks; });
    return {static_cast<int>(tightest.blocks), tightest.limit};
}

}  // namespace autotune
