#include "tuner/worker/emulator_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "autotune/error.h"
#include "device/emulator/parts.h"
#include "device/identity.h"
#include "tuner/worker/candidate_task.h"

namespace autotune {

Outcome EmulatorDesk::count(const DeviceIdentity& gpu, const Instance& instance, const Config& config) {
    try {
        start(gpu);
        const TrialTask task{.candidate = candidate_task(instance, config, *binaries_of(instance, config), 0, true),
                             .check = false};
        if (!modelled_) {
            modelled_ = references_.modelled(instance, options_.seed);
            desk_->set_main(modelled_);
            lane_->thread().run([&] { desk_->hold_main_anew(); });
        }
        return lane_->thread().run([&] { return desk_->ask(task); });
    } catch (const std::exception& e) {
        return {.ending = Ending::not_emulated, .reason = e.what()};
    }
}

/// The first question starts the process.
void EmulatorDesk::start(const DeviceIdentity& gpu) {
    if (lane_) return;
    const std::optional<std::string> part = emulator::twin_of(gpu);
    if (!part)
        throw Error{Error::Kind::usage, fmt::format("no GPU of compute capability {}.{} is emulated",
                                                    gpu.limits.cc / 10, gpu.limits.cc % 10)};
    lane_ = std::make_unique<RunLane>(options_.worker, *part, log_);
    desk_.emplace(*lane_, Patience{.limit_s = options_.emulation_limit_s, .least_s = options_.emulation_limit_s});
}

std::shared_ptr<const Binaries> EmulatorDesk::binaries_of(const Instance& instance, const Config& config) {
    const BinariesResult result = store_.get(instance.sources(config), arch_name(instance.limits().cc));
    throw_obstacle(result.obstacle);
    if (!result.binaries) throw Error{Error::Kind::compile, result.failure.reason};
    if (std::ranges::any_of(result.binaries->artefacts, [](const Artefact& one) { return one.ptx.empty(); }))
        throw Error{Error::Kind::compile, "there is no PTX of it"};
    return result.binaries;
}

}  // namespace autotune
