#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "device/emulator/emulated_device.h"
#include "device/occupancy.h"

namespace autotune {
namespace {

using emulator::LaunchWork;

/// Warp instructions that a block may take before it counts as one that waits for others.
constexpr std::uint64_t steps_of_one_block = std::uint64_t{1} << 26;
constexpr int registers_unless_told = 32;
constexpr std::uint64_t bytes_of_sector = 32;

/// Counts without checks for as long as it lives, since a block alone finds memory as others have not left it; and
/// forgets what was counted.
class Sampling {
public:
    Sampling(EmulatorOptions& options, emulator::Counters& counters)
        : options_{options}, counters_{counters}, before_{options}, counted_{counters} {
        options.checks = {.memory = false, .uninitialised = false, .races = false, .sync = false};
        options.counters = true;
    }
    Sampling(const Sampling&) = delete;
    Sampling& operator=(const Sampling&) = delete;
    ~Sampling() {
        options_ = before_;
        counters_ = counted_;
    }

private:
    EmulatorOptions& options_;
    emulator::Counters& counters_;
    EmulatorOptions before_;
    emulator::Counters counted_;
};

/// Which of so many blocks is sampled as the n-th: spread evenly however many are taken, with no period, since work
/// often differs by a block's place in a row of a power of two, as under a causal mask. The additive recurrence of the
/// golden ratio.
std::uint64_t sampled_block(std::size_t n, std::uint64_t blocks) {
    constexpr double golden = 0.6180339887498949;
    const double place = static_cast<double>(n + 1) * golden;
    return std::min(blocks - 1, static_cast<std::uint64_t>((place - std::floor(place)) * static_cast<double>(blocks)));
}

/// So many at least, then until these warp instructions are done, and so many at most.
constexpr std::size_t fewest_sampled = 3, most_sampled = 12;
constexpr std::uint64_t sampled_steps = 1'500'000;

/// The blocks to look at, one after the other: calls look(block), which returns the steps that it took and the blocks
/// that ran with it, its cluster.
template <class Look>
void sample(std::uint64_t blocks, const Look& look) {
    std::uint64_t steps = 0, ran = 0;
    std::set<std::uint64_t> seen;
    for (std::size_t n = 0; n < most_sampled && ran < blocks; ++n) {
        if (n >= fewest_sampled && steps >= sampled_steps) return;
        const std::uint64_t block = sampled_block(n, blocks);
        if (!seen.insert(block).second) continue;
        const auto [more_steps, more_blocks] = look(block);
        steps += more_steps;
        ran += more_blocks;
    }
}

/// Whether the first block that was looked at left the others no work, as blocks do that stay and take theirs from a
/// counter: what it did is then what all would have done together.
bool took_the_work_of_others(const emulator::CountedLaunch& counted) {
    constexpr std::uint64_t times = 16;  // another block's: blocks that have their own work differ by less
    const emulator::Counters &first = counted.edge, &others = counted.interior;
    return first.atomic_requests > 0 && others.blocks > 0 &&
           first.instructions / first.blocks > times * (others.instructions / others.blocks);
}

BlockDemand demand_of(const Launch& launch, const KernelInfo* resources, const emulator::DecodedFunction& kernel) {
    return {.threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z),
            .registers = resources && resources->registers > 0 ? resources->registers : registers_unless_told,
            .static_shared_bytes =
                resources ? resources->static_shared_bytes : static_cast<std::int64_t>(kernel.static_shared_bytes),
            .dynamic_shared_bytes = launch.shared_bytes,
            .barriers = resources ? resources->barriers : 1};
}

}  // namespace

/// Each byte that blocks like these touch comes from memory once, and no more than the buffers hold.
/// alike  how many times so many blocks there are
double EmulatedDevice::dram_bytes(std::span<const std::uint64_t> sectors, double alike) const {
    std::map<std::uint64_t, std::pair<double, double>> by_buffer;  ///< bytes that it has, and that are touched
    for (const std::uint64_t sector : sectors) {
        const emulator::GlobalMemory::Allocation* const one = memory_.nearest(sector * bytes_of_sector);
        if (!one) continue;
        auto& [bytes, touched] = by_buffer[one->address];
        bytes = static_cast<double>(one->bytes);
        touched += bytes_of_sector;
    }
    double sum = 0;
    for (const auto& [address, buffer] : by_buffer) sum += std::min(buffer.first, buffer.second * alike);
    return sum;
}

LaunchWork EmulatedDevice::launch_work(const BoundSequence& bound, const Launch& one, const emulator::Machine& machine,
                                       bool whole) {
    const emulator::LoadedModule& code = module(bound.module_of(one.source));
    const std::uint64_t blocks = std::uint64_t{one.grid.x} * one.grid.y * one.grid.z;
    const KernelInfo* const resources = code.resources(one.entry);
    counted_.push_back({.entry = one.entry,
                        .grid = one.grid,
                        .block = one.block,
                        .shared_bytes = one.shared_bytes,
                        .repeat = one.repeat,
                        .resources = resources ? *resources : KernelInfo{},
                        .blocks = blocks});
    LaunchWork work{.entry = one.entry,
                    .blocks = static_cast<double>(blocks),
                    .repeat = one.repeat,
                    .warps = static_cast<int>((one.block.x * one.block.y * one.block.z + 31) / 32)};
    const emulator::DecodedFunction* const kernel = code.kernel(one.entry);
    if (!kernel || blocks == 0) {
        launch(bound, one, {});  // which says what is wrong with it
        return work;
    }
    const BlockDemand demand = demand_of(one, resources, *kernel);
    work.resident = std::max(1, occupancy(identity_.limits, demand).blocks);
    const emulator::OpCosts costs = emulator::op_costs(code.program(), *kernel, code.machine_code(one.entry), machine);
    const double l1 = emulator::l1_share(
        machine, identity_.limits.cc,
        demand.static_shared_bytes + demand.dynamic_shared_bytes + identity_.limits.reserved_shared, work.resident);
    emulator::BlockTrace trace{costs, machine, l1}, edge{costs, machine, l1};
    emulator::CountedLaunch& counted = counted_.back();
    const auto look = [&](std::span<const std::uint64_t> some, emulator::BlockTrace& with, emulator::Counters& sum) {
        counters_ = {};
        launch(bound, one, some, &with);
        sum += counters_;
        return std::pair{counters_.instructions, counters_.blocks};
    };
    if (whole) {
        for (std::uint32_t turn = 0; turn < one.repeat; ++turn) {
            emulator::BlockTrace of_turn{costs, machine, l1};  // the last one stands for all: `repeat` multiplies it
            counted.edge = {};
            look({}, of_turn, counted.edge);
            if (turn + 1 < one.repeat) continue;
            work.interior = work.edge = of_turn.finish();
            work.last_path = work.edge.path_clocks;
            work.dram_bytes = dram_bytes(of_turn.sectors(), work.blocks / std::max(1.0, work.edge.blocks));
        }
        return work;
    }
    const std::uint64_t last = blocks - 1;
    look({&last, 1}, edge, counted.edge);
    work.edge = edge.finish();
    work.last_path = work.edge.path_clocks;
    const std::uint64_t held = static_cast<std::uint64_t>(work.resident) * static_cast<std::uint64_t>(machine.sm_count);
    sample(blocks - counted.edge.blocks, [&](std::uint64_t block) {
        if (trace.watched(block)) return std::pair{std::uint64_t{0}, std::uint64_t{0}};  // with its cluster
        const auto took = look({&block, 1}, trace, counted.interior);
        if (block + held >= blocks) work.last_path = std::max(work.last_path, trace.path(block));
        return took;
    });
    if (blocks <= held && took_the_work_of_others(counted))
        throw DeviceFailure{{.kind = DeviceFault::Kind::deadlock, .message = "a block took the work of others"}};
    const bool alone = counted.interior.blocks == 0;  // the last block, or its cluster, is the whole grid
    work.interior = alone ? work.edge : trace.finish();
    work.dram_bytes = dram_bytes((alone ? edge : trace).sectors(), work.blocks / std::max(1.0, work.interior.blocks));
    return work;
}

std::vector<LaunchWork> EmulatedDevice::launch_works(const BoundSequence& bound, bool whole) {
    const Sampling sampling{options_, counters_};
    if (!whole) options_.steps = std::min(options_.steps, steps_of_one_block);
    prepare(bound);
    counted_.clear();
    const emulator::Machine machine = emulator::machine_of(identity_);
    std::vector<LaunchWork> works;
    for (const Launch& one : bound.sequence->launches) works.push_back(launch_work(bound, one, machine, whole));
    return works;
}

std::vector<LaunchWork> EmulatedDevice::launch_works(const BoundSequence& bound) {
    try {
        return launch_works(bound, false);
    } catch (const DeviceFailure&) {
        // A block alone may wait in vain, find memory as others have not left it, or take their work. What is wrong
        // with all of them together is thrown.
        return launch_works(bound, true);
    }
}

}  // namespace autotune
