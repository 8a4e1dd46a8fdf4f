#include "tuner/worker/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace autotune {
namespace {

using Clock = std::chrono::steady_clock;

/// What a launch and its wait cost the host on top of the device's time: usually, and where compilers use all cores.
constexpr double launch_cost_us = 100;
constexpr double stall_us = 5000;
/// So much slower than what is dropped, by the host's clock and after a stall, that no sample is needed to drop it.
constexpr double surely = 2;
/// The same by the device's clock, for runs beside which a first launch's cost (cold code, cold tables) is below 5 %.
constexpr double surely_by_device = 1.1, first_launch_us = 200, telling_us = 4000;

Outcome failed(Ending ending, std::string reason) { return {.ending = ending, .reason = std::move(reason)}; }

std::string number(double value) { return std::isnan(value) ? "nan" : fmt::format("{:.4g}", value); }

struct RunTime {
    double host_us = 0, device_us = 0;  ///< device_us: 0 where the device has no clock
    double seconds() const noexcept { return (device_us > 0 ? device_us : host_us) * 1e-6; }
};

RunTime run_once(Device& device, ProblemMemory& memory, Candidate& candidate, std::uint8_t poison, double expect_s,
                 const Progress& progress) {
    memory.reset_outputs(0, poison);
    candidate.poison_scratch(0, poison);
    if (progress) progress("running", expect_s);
    const auto start = Clock::now();
    RunTime time;
    time.device_us = device.run_timed(candidate.bound().front());
    time.host_us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    return time;
}

/// What is dropped anyway needs no second run, and where the clock leaves no doubt no sample either.
void judge_time(const RunTime& run, const TrialTask& task, CheckResult& result) {
    const double limit_us = task.measure ? task.plan.drop_above_us : 0;
    if (limit_us <= 0) return;
    const double run_us = run.seconds() * 1e6;
    result.slow = run_us - launch_cost_us > limit_us;
    if (run.device_us > telling_us && run.device_us > surely_by_device * limit_us)
        result.too_slow_us = run.device_us - first_launch_us;
    else if (run.device_us == 0 && run.host_us - stall_us > surely * limit_us)
        result.too_slow_us = run.host_us - stall_us;
}

std::string buffer_name(const ProblemMemory& memory, const Candidate& candidate, std::size_t buffer) {
    if (buffer < memory.tensors().size()) return memory.tensors()[buffer].name;
    return candidate.task().sequence.scratch[buffer - memory.tensors().size()].name;
}

std::optional<Outcome> check_gaps(ProblemMemory& memory) {
    const std::optional<ProblemMemory::Gap> gap = memory.written_gap(0);
    if (!gap) return std::nullopt;
    return failed(Ending::out_of_bounds,
                  fmt::format("it writes between the rows of '{}', behind {}", memory.tensors()[gap->tensor].name,
                              element_name(memory.tensors()[gap->tensor], gap->element)));
}

std::optional<Outcome> check_guards(Device& device, const ProblemMemory& memory, const Candidate& candidate) {
    std::optional<Outcome> failure;
    const std::vector<Buffer>& buffers = candidate.bound().front().buffers;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        std::int64_t where = 0;
        if (buffers[i].address == 0 || device.guards_intact(buffers[i], where))
            continue;  // all are looked at: that mends them
        if (failure) continue;
        const std::string name = buffer_name(memory, candidate, i);
        failure =
            failed(Ending::out_of_bounds,
                   where < 0 ? fmt::format("it writes outside of '{}', {} bytes before its start", name, -where)
                             : fmt::format("it writes outside of '{}', {} bytes behind its last", name, where + 1));
    }
    return failure;
}

struct Judgement {
    std::size_t tensor = 0;
    Comparison comparison;
};

std::string describe(const ProblemMemory& memory, const Judgement& bad) {
    const Comparison& c = bad.comparison;
    std::string text = fmt::format("{} is {}, reference {}, bound {}; {} of {} elements differ",
                                   element_name(memory.tensors()[bad.tensor], c.first_bad), number(c.got),
                                   number(c.want), number(c.bound), c.bad, c.elements);
    if (c.still_poison == c.bad) text += "; all bad elements still hold the poison value: the kernel never writes them";
    return text;
}

/// Compares all outputs of set `number` with the reference.
std::optional<Outcome> check_outputs(Device& device, const ProblemMemory& memory, std::size_t set, std::uint8_t poison,
                                     double& max_error) {
    std::optional<Judgement> first_bad;
    bool nothing_written = true;
    for (const std::size_t i : memory.outputs()) {
        const TensorTask& tensor = memory.tensors()[i];
        const ProblemMemory::Expected& expected = memory.expected(i);
        const Comparison c = device.compare(memory.set(set)[i], tensor.dtype, tensor.shape, tensor.strides,
                                            expected.value, expected.magnitude, tensor.bound, poison);
        max_error = std::max(max_error, c.largest_ratio);
        if (c.elements > 0 && (tensor.role == Role::inout || c.still_poison < c.elements)) nothing_written = false;
        if (c.bad > 0 && !first_bad) first_bad = Judgement{i, c};
    }
    if (!first_bad) return std::nullopt;
    if (nothing_written)
        return failed(Ending::no_output,
                      fmt::format("nothing was written to '{}': every element still holds the poison value",
                                  memory.tensors()[first_bad->tensor].name));
    return failed(Ending::wrong_result, describe(memory, *first_bad));
}

std::optional<Outcome> check_inputs(ProblemMemory& memory, std::size_t set) {
    const int changed = memory.changed_input(set);
    if (changed < 0) return std::nullopt;
    memory.restore_inputs(false);
    return failed(Ending::wrong_result,
                  fmt::format("it writes its input '{}'", memory.tensors()[static_cast<std::size_t>(changed)].name));
}

}  // namespace

CheckResult check(Device& device, ProblemMemory& memory, Candidate& candidate, const TrialTask& task,
                  const Progress& progress) {
    CheckResult result;
    // What launches after its own check did to guards is no later candidate's deed: that mends them.
    (void)check_guards(device, memory, candidate);
    const RunTime run = run_once(device, memory, candidate, first_poison, task.expect_s, progress);
    result.run_s = run.seconds();
    result.failure = check_guards(device, memory, candidate);
    if (!result.failure) result.failure = check_gaps(memory);
    if (!result.failure) result.failure = check_outputs(device, memory, 0, first_poison, result.max_error);
    if (std::optional<Outcome> changed = check_inputs(memory, 0); changed && !result.failure) result.failure = changed;
    if (result.failure) return result;
    // How long an emulation takes says nothing about the device that it stands for.
    if (!device.identity().emulated) judge_time(run, task, result);
    if (task.twice && !result.slow) result.failure = check_again(device, memory, candidate, task, result, progress);
    return result;
}

// On other poison: what was read without having been written shows here.
std::optional<Outcome> check_again(Device& device, ProblemMemory& memory, Candidate& candidate, const TrialTask& task,
                                   CheckResult& result, const Progress& progress) {
    memory.save_outputs(0);
    result.run_s = run_once(device, memory, candidate, second_poison, task.expect_s, progress).seconds();
    if (std::optional<Outcome> outside = check_guards(device, memory, candidate)) return outside;
    if (std::optional<Outcome> between = check_gaps(memory)) return between;
    if (task.candidate.deterministic) {
        const int differs = memory.differs_from_saved(0);
        result.twice = differs < 0;
        if (result.twice) return std::nullopt;
        if (std::optional<Outcome> wrong = check_outputs(device, memory, 0, second_poison, result.max_error))
            return wrong;
        return failed(Ending::not_deterministic, fmt::format("two runs on the same inputs gave other bits in '{}'",
                                                             memory.tensors()[static_cast<std::size_t>(differs)].name));
    }
    return check_outputs(device, memory, 0, second_poison, result.max_error);
}

std::optional<Outcome> check_after_timing(Device& device, ProblemMemory& memory, const Candidate& candidate,
                                          const TrialTask& task, const CheckResult& checked) {
    const auto in_a_row = [](Outcome failure) {
        failure.reason = "after launches in a row " + failure.reason;
        return failure;
    };
    if (std::optional<Outcome> outside = check_guards(device, memory, candidate)) return in_a_row(std::move(*outside));
    if (std::optional<Outcome> changed = check_inputs(memory, 0)) return changed;
    const bool in_place =
        std::ranges::any_of(memory.outputs(), [&](std::size_t i) { return memory.tensors()[i].role == Role::inout; });
    if (in_place || !candidate.task().idempotent) return std::nullopt;
    if (checked.twice && memory.differs_from_saved(0) < 0) return std::nullopt;
    double ignored = 0;
    if (std::optional<Outcome> wrong = check_outputs(device, memory, 0, first_poison, ignored))
        return in_a_row(std::move(*wrong));
    if (!task.candidate.deterministic || !checked.twice) return std::nullopt;
    return failed(Ending::not_deterministic, "launches in a row gave other bits than one alone");
}

}  // namespace autotune
