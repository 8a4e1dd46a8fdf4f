#include "device/emulator/counters.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "device/emulator/emulated_device.h"

namespace autotune {
namespace emulator {

Counters& Counters::operator+=(const Counters& other) noexcept {
    for (std::size_t i = 0; i < classes.size(); ++i) {
        classes[i].warps += other.classes[i].warps;
        classes[i].lanes += other.classes[i].lanes;
    }
    for (const CounterSum& sum : counter_sums) this->*sum.value += other.*sum.value;
    return *this;
}

}  // namespace emulator

namespace {

/// No checks for as long as it lives.
class Unchecked {
public:
    explicit Unchecked(EmulatorOptions& options)
        : options_{options},
          before_{std::exchange(options.checks,
                                {.memory = false, .uninitialised = false, .races = false, .sync = false})} {}
    Unchecked(const Unchecked&) = delete;
    Unchecked& operator=(const Unchecked&) = delete;
    ~Unchecked() { options_.checks = before_; }

private:
    EmulatorOptions& options_;
    emulator::Checks before_;
};

/// Up to three of the first so many blocks, spread with no period: work often differs by a block's place in a row of a
/// power of two, as under a causal mask.
std::vector<std::uint64_t> sampled_blocks(std::uint64_t blocks) {
    constexpr std::array<double, 3> places{0.236, 0.618, 0.854};
    std::vector<std::uint64_t> sampled;
    for (const double place : places) {
        const auto block = static_cast<std::uint64_t>(place * static_cast<double>(blocks - 1));
        if (sampled.empty() || sampled.back() != block) sampled.push_back(block);
    }
    return sampled;
}

}  // namespace

std::vector<emulator::CountedLaunch> EmulatedDevice::count_launches(const BoundSequence& bound) {
    const Unchecked unchecked{options_};
    prepare(bound);
    std::vector<emulator::CountedLaunch> counted;
    for (std::size_t i = 0; i < bound.sequence->launches.size(); ++i) {
        const Launch& launch = bound.sequence->launches[i];
        const KernelInfo* const resources = module(bound.module_of(launch.source)).resources(launch.entry);
        emulator::CountedLaunch one{.entry = launch.entry,
                                    .grid = launch.grid,
                                    .block = launch.block,
                                    .shared_bytes = launch.shared_bytes,
                                    .repeat = launch.repeat,
                                    .resources = resources ? *resources : KernelInfo{},
                                    .blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z};
        if (one.blocks > 0) {
            const std::uint64_t last = one.blocks - 1;
            one.edge = count_blocks(bound, i, {&last, 1});
            if (one.edge.blocks < one.blocks)
                one.interior = count_blocks(bound, i, sampled_blocks(one.blocks - one.edge.blocks));
        }
        counted.push_back(std::move(one));
    }
    return counted;
}

}  // namespace autotune
