#include "tuner/worker/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "device/compile_log.h"
#include "device/occupancy.h"

namespace autotune {
namespace {

int threads_of(const Launch& launch) { return static_cast<int>(launch.block.x * launch.block.y * launch.block.z); }

Outcome failed(Ending ending, std::string reason) { return {.ending = ending, .reason = std::move(reason)}; }

Occupancy occupancy_of(const KernelInfo& kernel, const Launch& launch, const DeviceLimits& limits) {
    return occupancy(limits, {.threads = threads_of(launch),
                              .registers = kernel.registers,
                              .static_shared_bytes = kernel.static_shared_bytes,
                              .dynamic_shared_bytes = launch.shared_bytes,
                              .barriers = std::max(1, kernel.barriers)});
}

std::optional<Outcome> does_not_fit(const KernelInfo& kernel, const Launch& launch, const DeviceLimits& limits) {
    const std::int64_t shared = static_cast<std::int64_t>(kernel.static_shared_bytes) + launch.shared_bytes;
    const int threads = threads_of(launch);
    if (shared > limits.max_shared)
        return failed(Ending::does_not_fit,
                      fmt::format("'{}' needs {} bytes of shared memory a block, this GPU allows {}", launch.entry,
                                  shared, limits.max_shared));
    if (kernel.max_threads > 0 && threads > kernel.max_threads)
        return failed(Ending::does_not_fit,
                      fmt::format("'{}' is launched with {} threads a block and was compiled for at most {}",
                                  launch.entry, threads, kernel.max_threads));
    if (occupancy_of(kernel, launch, limits).blocks == 0)
        return failed(
            Ending::does_not_fit,
            fmt::format("a block of '{}' needs {} threads with {} registers each, this GPU has {} registers an SM",
                        launch.entry, threads, kernel.registers, limits.registers_per_sm));
    return std::nullopt;
}

std::optional<Outcome> spilled(const Variant& variant, const Binaries& binaries) {
    if (!variant.spill_bytes) return std::nullopt;
    for (const Artefact& artefact : binaries.artefacts)
        for (const KernelInfo& kernel : artefact.kernels)
            if (kernel.spill_bytes > *variant.spill_bytes)
                return failed(Ending::spilled, fmt::format("'{}' spills {} bytes, '{}' allows {}", kernel.name,
                                                           kernel.spill_bytes, variant.name, *variant.spill_bytes));
    return std::nullopt;
}

std::optional<Outcome> lost_its_pipeline(const Variant& variant, const Binaries& binaries) {
    if (!variant.pipelined) return std::nullopt;
    for (const Artefact& artefact : binaries.artefacts)
        for (const CompileRemark& remark : read_compile_log(artefact.log).remarks)
            if (serialised(remark))
                return failed(Ending::serialised, fmt::format("the assembler says {}", remark.text));
    return std::nullopt;
}

/// Floating-point operations a clock and SM that the tensor units do on 16-bit elements: the most there is.
struct TensorRate {
    int cc;
    double flops;
};
constexpr std::array<TensorRate, 8> tensor_rates{
    {{75, 1024}, {80, 2048}, {86, 1024}, {89, 1024}, {90, 4096}, {100, 8192}, {110, 8192}, {120, 2048}}};

double peak_gflops(const DeviceIdentity& device, std::size_t smallest_bytes) {
    double rate = 0;
    for (const TensorRate& row : tensor_rates)
        if (row.cc <= device.limits.cc) rate = row.flops;
    const double by_size = smallest_bytes <= 1 ? 2 : smallest_bytes == 2 ? 1 : smallest_bytes == 4 ? 0.5 : 0.0625;
    return rate * by_size * device.limits.sm_count * device.core_khz * 1e-6;
}

}  // namespace

const KernelInfo* Binaries::kernel_of(const Launch& launch) const noexcept {
    for (std::size_t i = 0; i < artefacts.size(); ++i) {
        if (artefacts.size() > 1 && sources[i] != launch.source) continue;
        for (const KernelInfo& kernel : artefacts[i].kernels)
            if (kernel.name == launch.entry || kernel.symbol == launch.entry) return &kernel;
    }
    return nullptr;
}

Resources resources_of(const Binaries& binaries, const LaunchSequence& sequence, const DeviceLimits& limits) {
    Resources total;
    for (const Artefact& artefact : binaries.artefacts)
        for (const KernelInfo& kernel : artefact.kernels) total.spill_bytes += kernel.spill_bytes;
    bool first = true;
    for (const Launch& launch : sequence.launches) {
        const KernelInfo* kernel = binaries.kernel_of(launch);
        if (!kernel) continue;
        const int blocks = occupancy_of(*kernel, launch, limits).blocks;
        total.registers = std::max(total.registers, kernel->registers);
        total.shared_bytes =
            std::max(total.shared_bytes, kernel->static_shared_bytes + static_cast<int>(launch.shared_bytes));
        total.blocks_per_sm = first ? blocks : std::min(total.blocks_per_sm, blocks);
        first = false;
    }
    return total;
}

std::optional<Outcome> gate(const Variant& variant, const Binaries& binaries, const LaunchSequence& sequence,
                            const DeviceLimits& limits) {
    for (const Launch& launch : sequence.launches) {
        const KernelInfo* kernel = binaries.kernel_of(launch);
        if (!kernel) continue;  // the device says so with its own words
        if (std::optional<Outcome> failure = does_not_fit(*kernel, launch, limits)) return failure;
    }
    if (std::optional<Outcome> failure = spilled(variant, binaries)) return failure;
    return lost_its_pipeline(variant, binaries);
}

double floor_us(double flops, double bytes, const DeviceIdentity& device, double copy_bandwidth_gbs,
                std::size_t smallest_bytes) {
    constexpr double margin = 0.9;
    const double peak = peak_gflops(device, smallest_bytes);
    const double beyond_cache = std::max(0.0, bytes - static_cast<double>(device.limits.l2_bytes));
    const double by_flops = peak > 0 ? flops / (peak * 1e3) : 0;
    const double by_bytes = copy_bandwidth_gbs > 0 ? beyond_cache / (copy_bandwidth_gbs * 1e3) : 0;
    return margin * std::max(by_flops, by_bytes);
}

}  // namespace autotune
