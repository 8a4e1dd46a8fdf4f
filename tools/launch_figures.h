#ifndef AUTOTUNE_TOOLS_LAUNCH_FIGURES_H
#define AUTOTUNE_TOOLS_LAUNCH_FIGURES_H

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/emulator/counters.h"
#include "device/occupancy.h"

namespace autotune {

/// Of global memory, what a request moves at least.
inline constexpr double sector_bytes = 32;

/// Part of a launch as a weighted sum of what was counted in the middle and at the end of its grid. Doubles: a large
/// grid's sum need not fit 64 bits.
struct CountColumn {
    std::string_view title;
    double of_interior, of_edge;
};

/// A block, the last block, and the launch, as far as they differ; the launch comes last.
std::vector<CountColumn> columns_of(const emulator::CountedLaunch& launch);
double sum_of(const CountColumn& column, const emulator::CountedLaunch& launch, std::uint64_t emulator::Counters::*sum);
/// Warp instructions.
double class_of(const CountColumn& column, const emulator::CountedLaunch& launch, std::size_t kind);

/// How a launch fills a device.
struct LaunchOccupancy {
    Occupancy found;
    std::uint64_t warps = 0, most_warps = 0;  ///< of an SM
    double theoretical = 0;                   ///< with an SM full of blocks; 0: not one fits, or there was no cubin
    /// Over the launch, the last wave's empty places included, as if all blocks took equally long; 0: the number of
    /// SMs is not known.
    double achieved = 0;
    double waves = 0;
};
LaunchOccupancy occupancy_of(const emulator::CountedLaunch& launch, const DeviceLimits& limits);

/// "registers", "blocks an SM".
std::string_view limit_words(Occupancy::Limit limit);

/// The launches as --json has them: what is in the table, by name. docs/json-lines.schema.json says what each is.
nlohmann::json counters_value(std::span<const emulator::CountedLaunch> launches, const DeviceLimits& limits);

}  // namespace autotune
#endif
