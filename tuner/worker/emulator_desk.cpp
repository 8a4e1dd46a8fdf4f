#include "tuner/worker/emulator_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "autotune/error.h"
#include "device/emulator/parts.h"
#include "device/identity.h"
#include "tuner/worker/candidate_task.h"
#include "tuner/worker/small_problem.h"

namespace autotune {
namespace {

constexpr int rerun_slot = 1;
/// Inputs that the emulator fills in about a second.
constexpr std::uint64_t most_rerun_bytes = std::uint64_t{1} << 26;

std::uint64_t input_bytes(const Instance& instance, std::uint64_t seed) {
    std::uint64_t bytes = 0;
    for (const TensorTask& tensor : tensor_tasks(instance, seed))
        if (tensor.present) bytes += tensor.bytes;
    return bytes;
}

/// What it ended with is about the config, and not about the emulator.
bool found_something(const Outcome& outcome) {
    return !outcome.ok() && outcome.ending != Ending::timed_out && outcome.ending != Ending::out_of_memory;
}

}  // namespace

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

std::string EmulatorDesk::explain(const DeviceIdentity& gpu, const Instance& instance, const Config& config) {
    try {
        start(gpu);
        return told(instance, config);
    } catch (const std::exception& e) {
        return fmt::format("not emulated: {}", e.what());
    }
}

std::string EmulatorDesk::told(const Instance& instance, const Config& config) {
    const auto finding = [](const Outcome& outcome, const std::string& where) {
        if (outcome.ending == Ending::not_emulated) return outcome.reason;
        return fmt::format("emulated{}: {}", where, outcome.reason);
    };
    std::string before;
    if (input_bytes(instance, options_.seed) <= most_rerun_bytes) {
        const Outcome same = run(instance, config);
        if (same.ok()) return "emulated with the same inputs: nothing was found";
        if (found_something(same)) return finding(same, "");
        before = same.reason;
    }
    const std::optional<Instance> small = small_problem(instance, config);
    if (!small || small->problem() == instance.problem())
        return before.empty() ? "not emulated: this problem is too large to be interpreted, and no smaller one stands "
                                "for it"
                              : fmt::format("emulated with the same inputs: nothing was found; {}", before);
    const std::string where = fmt::format(" on {}", small->problem().text());
    const Outcome near = run(*small, config);
    if (found_something(near)) return finding(near, where);
    return fmt::format("emulated{}: nothing was found{}; {}", where, near.ok() ? "" : ", " + near.reason,
                       before.empty() ? "this problem is too large to be interpreted"
                                      : fmt::format("with the same inputs, {}", before));
}

/// The first question starts the process.
void EmulatorDesk::start(const DeviceIdentity& gpu) {
    if (lane_) return;
    const std::optional<std::string> part = emulated_like(gpu);
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

/// One run, all checks on, on inputs of the same seed. Throws Error where the problem cannot be had.
Outcome EmulatorDesk::run(const Instance& problem, const Config& config) {
    const TrialTask task{.candidate = candidate_task(problem, config, *binaries_of(problem, config), rerun_slot, true),
                         .measure = false,
                         .check = false};
    const std::shared_ptr<const HeldProblem> inputs = references_.inputs(problem, options_.seed, rerun_slot);
    return lane_->thread().run([&] {
        const StageLog::Span span{log_, "failure emulated"};
        lane_->prepare(inputs->task, inputs->contents);
        Outcome outcome = desk_->ask(task);
        lane_->drop(rerun_slot);
        return outcome;
    });
}

}  // namespace autotune
