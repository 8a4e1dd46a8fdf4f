#include "tools/launch_figures.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace autotune {
namespace {

using emulator::CountedLaunch;
using emulator::Counters;
using Json = nlohmann::json;

Json sums_of(const CountColumn& column, const CountedLaunch& launch) {
    Json sums = Json::object();
    for (const emulator::CounterSum& sum : emulator::counter_sums)
        sums[std::string{sum.name}] = sum_of(column, launch, sum.value);
    Json& classes = sums["classes"] = Json::object();
    for (std::size_t kind = 0; kind < emulator::op_class_names.size(); ++kind)
        if (const double issued = class_of(column, launch, kind); issued > 0)
            classes[std::string{emulator::op_class_names[kind]}] = issued;
    const auto ratio = [&](const char* name, std::uint64_t Counters::*above, std::uint64_t Counters::*below,
                           double each) {
        if (const double divisor = sum_of(column, launch, below); divisor > 0)
            sums[name] = sum_of(column, launch, above) / (divisor * each);
    };
    ratio("global_load_sectors_a_request", &Counters::global_load_sectors, &Counters::global_load_requests, 1);
    ratio("global_store_sectors_a_request", &Counters::global_store_sectors, &Counters::global_store_requests, 1);
    ratio("global_load_efficiency", &Counters::global_load_bytes, &Counters::global_load_sectors, sector_bytes);
    ratio("global_store_efficiency", &Counters::global_store_bytes, &Counters::global_store_sectors, sector_bytes);
    return sums;
}

Json occupancy_value(const CountedLaunch& launch, const DeviceLimits& limits) {
    const LaunchOccupancy filled = occupancy_of(launch, limits);
    Json value = {{"theoretical", filled.theoretical},
                  {"blocks_an_sm", filled.found.blocks},
                  {"limited_by", limit_words(filled.found.limit)}};
    if (filled.waves > 0) value.update({{"achieved", filled.achieved}, {"waves", filled.waves}});
    return value;
}

}  // namespace

std::vector<CountColumn> columns_of(const CountedLaunch& launch) {
    if (launch.blocks <= 1) return {{"the block", 0, 1}};
    const auto all = static_cast<double>(launch.blocks);
    const double last = static_cast<double>(std::max<std::uint64_t>(launch.edge.blocks, 1));
    if (launch.interior.blocks == 0) return {{"a block", 0, 1 / last}, {"launch", 0, all / last}};
    const auto inside = static_cast<double>(launch.interior.blocks);
    return {{"a block", 1 / inside, 0}, {"last block", 0, 1 / last}, {"launch", (all - last) / inside, 1}};
}

double sum_of(const CountColumn& column, const CountedLaunch& launch, std::uint64_t Counters::*sum) {
    return column.of_interior * static_cast<double>(launch.interior.*sum) +
           column.of_edge * static_cast<double>(launch.edge.*sum);
}

double class_of(const CountColumn& column, const CountedLaunch& launch, std::size_t kind) {
    return column.of_interior * static_cast<double>(launch.interior.classes[kind].warps) +
           column.of_edge * static_cast<double>(launch.edge.classes[kind].warps);
}

LaunchOccupancy occupancy_of(const CountedLaunch& launch, const DeviceLimits& limits) {
    const KernelInfo& kernel = launch.resources;
    if (kernel.registers == 0) return {};
    const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
    LaunchOccupancy filled{
        .found = occupancy(limits, {.threads = static_cast<int>(std::min<std::uint64_t>(threads, 1 << 20)),
                                    .registers = kernel.registers,
                                    .static_shared_bytes = kernel.static_shared_bytes,
                                    .dynamic_shared_bytes = launch.shared_bytes,
                                    .barriers = kernel.barriers})};
    const auto warp = static_cast<std::uint64_t>(std::max(limits.warp, 1));
    filled.warps = (threads + warp - 1) / warp * static_cast<std::uint64_t>(filled.found.blocks);
    filled.most_warps = static_cast<std::uint64_t>(limits.threads_per_sm) / warp;
    filled.theoretical =
        static_cast<double>(filled.warps) / static_cast<double>(std::max<std::uint64_t>(filled.most_warps, 1));
    if (limits.sm_count <= 0 || filled.found.blocks == 0) return filled;
    filled.waves = static_cast<double>(launch.blocks) / (static_cast<double>(filled.found.blocks) * limits.sm_count);
    if (filled.waves > 0) filled.achieved = filled.theoretical * filled.waves / std::ceil(filled.waves);
    return filled;
}

std::string_view limit_words(Occupancy::Limit limit) {
    switch (limit) {
        case Occupancy::Limit::warps:
            return "warps";
        case Occupancy::Limit::registers:
            return "registers";
        case Occupancy::Limit::shared:
            return "shared memory";
        case Occupancy::Limit::barriers:
            return "barriers";
        case Occupancy::Limit::blocks:
            return "blocks an SM";
    }
    return {};
}

Json counters_value(std::span<const CountedLaunch> launches, const DeviceLimits& limits) {
    Json list = Json::array();
    for (const CountedLaunch& launch : launches) {
        Json value = {{"entry", launch.entry},
                      {"grid", {launch.grid.x, launch.grid.y, launch.grid.z}},
                      {"block", {launch.block.x, launch.block.y, launch.block.z}},
                      {"repeat", launch.repeat},
                      {"blocks", launch.blocks},
                      {"blocks_counted", launch.interior.blocks + launch.edge.blocks},
                      {"shared_bytes", launch.resources.static_shared_bytes + launch.shared_bytes}};
        if (launch.resources.registers > 0)
            value.update({{"registers", launch.resources.registers},
                          {"spill_bytes", launch.resources.spill_bytes},
                          {"occupancy", occupancy_value(launch, limits)}});
        if (launch.blocks > 0) {
            const std::vector<CountColumn> columns = columns_of(launch);
            value["a_block"] = sums_of(columns.front(), launch);
            if (launch.interior.blocks > 0) value["last_block"] = sums_of(columns[1], launch);
            value["launch"] = sums_of(columns.back(), launch);
        }
        list.push_back(std::move(value));
    }
    return list;
}

}  // namespace autotune
