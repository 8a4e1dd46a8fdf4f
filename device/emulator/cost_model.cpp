#include "device/emulator/cost_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace autotune::emulator {
namespace {

constexpr int schedulers_of_sm = 4;

double norm(std::initializer_list<double> values, double exponent) {
    double sum = 0;
    for (const double value : values) sum += std::pow(value, exponent);
    return std::pow(sum, 1 / exponent);
}

/// Clocks that an SM takes for `resident` blocks at a time.
struct Round {
    double issue = 0, arithmetic = 0, tensor = 0, memory = 0, path = 0, total = 0;
};

Round round_of(const BlockWork& work, int warps, double resident, const ModelWeights& weights) {
    const auto clocks = [&](Unit unit) { return work.clocks[static_cast<std::size_t>(unit)]; };
    // Warps belong to a scheduler each: few of them leave some idle.
    const double held = std::max(1.0, resident * warps);
    const double uneven = std::ceil(held / schedulers_of_sm) * schedulers_of_sm / held;
    Round round;
    round.issue = resident * uneven * work.slots / schedulers_of_sm;
    for (const Unit unit : {Unit::fma, Unit::alu, Unit::special, Unit::fp64})
        round.arithmetic = std::max(round.arithmetic, resident * uneven * clocks(unit));
    round.tensor = resident * uneven * clocks(Unit::tensor);
    round.memory = resident * clocks(Unit::memory);
    round.path = work.path_clocks;
    const double busy = norm({weights.issue * round.issue, weights.arithmetic * round.arithmetic,
                              weights.tensor * round.tensor, weights.memory * round.memory},
                             weights.unit_norm);
    round.total = norm({weights.path * round.path, busy}, weights.path_norm);
    return round;
}

/// Shared memory that an SM can be set to, KiB.
std::vector<int> carve_outs(int cc) {
    if (cc == 75) return {32, 64};
    if (cc == 86 || cc == 89 || cc >= 120) return {0, 8, 16, 32, 64, 100};
    std::vector<int> sizes{0, 8, 16, 32, 64, 100, 132, 164};
    if (cc >= 90) sizes.insert(sizes.end(), {196, 228});
    return sizes;
}

}  // namespace

const ModelWeights& weights_of(int cc) noexcept {
    static constexpr ModelWeights neutral;
    // benchmarks/model_fit.cpp on 320 configs of ten problems of three ops; NVIDIA H200, driver 580.159.04,
    // NVRTC 13.0.88, 2026-11-28. How they do on 320 others: docs/emulator.md.
    static constexpr ModelWeights hopper{.issue = 1.133,
                                         .arithmetic = 0.839,
                                         .tensor = 1.284,
                                         .memory = 1.000,
                                         .path = 1.221,
                                         .l2 = 0.407,
                                         .dram = 1.013,
                                         .tail = 0.553,
                                         .launch_us = 2.129,
                                         .unit_norm = 7.149,
                                         .path_norm = 2.011,
                                         .level_norm = 3.193};
    return cc >= 90 && cc < 100 ? hopper : neutral;
}

ModelParts predict(const LaunchWork& work, const Machine& machine, const ModelWeights& weights) {
    ModelParts parts;
    if (work.blocks <= 0) return parts;
    const double sms = machine.sm_count, resident = std::max(1, work.resident);
    const double us = 1 / machine.clock_mhz;  // a clock
    const double rounds = std::floor(work.blocks / (sms * resident));
    const double rest = work.blocks - rounds * sms * resident;
    const Round whole = round_of(work.interior, work.warps, resident, weights);
    // The last round holds fewer blocks. SMs do not all end at once, and so some of it hides behind the others; less
    // where the longest blocks come last.
    const Round tail = rest > 0 ? round_of(work.interior, work.warps, std::ceil(rest / sms), weights) : Round{};
    const double share = rest / (sms * resident);
    const double longest =
        work.interior.path_clocks > 0 ? std::clamp(work.last_path / work.interior.path_clocks, 0.25, 4.0) : 1;
    const double last =
        rounds > 0 ? weights.tail * tail.total * longest + (1 - weights.tail) * share * whole.total : tail.total;
    const double least = std::max(round_of(work.edge, work.warps, 1, weights).total,
                                  round_of(work.interior, work.warps, 1, weights).total);
    const double many = rounds + share;
    parts.issue = us * many * whole.issue;
    parts.arithmetic = us * many * whole.arithmetic;
    parts.tensor = us * many * whole.tensor;
    parts.memory = us * many * whole.memory;
    parts.path = us * many * whole.path;
    parts.l2 = work.blocks * (work.interior.l1_miss_bytes + work.interior.written_bytes) / (1e3 * machine.l2_gbs);
    parts.dram = work.dram_bytes / (1e3 * machine.dram_gbs);
    parts.total =
        norm({us * std::max(rounds * whole.total + last, least), weights.l2 * parts.l2, weights.dram * parts.dram},
             weights.level_norm);
    return parts;
}

double predicted_us(const std::vector<LaunchWork>& launches, const Machine& machine, const ModelWeights& weights) {
    double sum = 0;
    for (const LaunchWork& one : launches)
        sum += one.repeat * (weights.launch_us + predict(one, machine, weights).total);
    return sum;
}

double l1_share(const Machine& machine, int cc, std::int64_t shared_bytes, int resident) {
    const double needed = static_cast<double>(shared_bytes) * resident / 1024;
    double kept = 0;
    for (const int size : carve_outs(cc)) {
        kept = size;
        if (size >= needed) break;
    }
    return std::max(1.0, machine.l1_kib - kept) * 1024 / std::max(1, resident);
}

}  // namespace autotune::emulator
