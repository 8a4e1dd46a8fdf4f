#include "tuner/worker/run_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "autotune/error.h"
#include "device/emulator/counters.h"
#include "tuner/statistics.h"
#include "tuner/worker/check.h"

namespace autotune {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Outcome outcome_of(const DeviceFault& fault) { return {.ending = ending_of(fault.kind), .reason = fault.message}; }

std::string slower_than(double time_us, double limit_us) {
    return fmt::format("its first sample, {:.4g} us, is slower than {:.4g} us", time_us, limit_us);
}

/// Long candidates get fewer samples, but never fewer than two: final rounds tell close ones apart. One that just ran
/// needs no warm-up.
TimePlan fit(TimePlan plan, double run_s, double most_ms) {
    if (run_s > 2e-3) {  // the launch's own cost is nothing beside it
        plan.warmup = 0;
        plan.about_us = run_s * 1e6;
    }
    if (most_ms > 0 && run_s > 0) {
        const double fitting = std::floor(most_ms / (run_s * 1e3));
        plan.samples = std::min(plan.samples, static_cast<int>(std::clamp(fitting, 2.0, 1000.0)));
    }
    return plan;
}

}  // namespace

struct RunWorker::Slot {
    std::unique_ptr<ProblemMemory> memory;
    ReferenceTask reference;
    std::vector<MappedMemory> values;
    bool has_reference = false;
    bool reference_touched = false;  ///< some candidate ran since it was made
};

RunWorker::RunWorker(Device& device, Progress progress, Watch watch)
    : device_{device}, progress_{std::move(progress)}, watch_{std::move(watch)}, pool_{device} {}

RunWorker::~RunWorker() = default;

RunWorker::Slot& RunWorker::slot(int number) {
    const auto found = slots_.find(number);
    if (found == slots_.end()) throw Error{Error::Kind::internal, fmt::format("problem {} was not prepared", number)};
    return *found->second;
}

void RunWorker::prepare(ProblemTask task, std::vector<MappedMemory> contents) {
    const int number = task.slot;
    drop(number);
    auto slot = std::make_unique<Slot>();
    slot->memory = std::make_unique<ProblemMemory>(device_, std::move(task), std::move(contents));
    slots_[number] = std::move(slot);
}

void RunWorker::set_reference(ReferenceTask task, std::vector<MappedMemory> values) {
    Slot& mine = slot(task.slot);
    mine.reference = std::move(task);
    mine.values = std::move(values);
    establish_reference(device_, pool_, *mine.memory, mine.reference, mine.values, progress_);
    mine.has_reference = true;
    mine.reference_touched = false;
}

std::vector<Comparison> RunWorker::anchor(const ReferenceTask& task) {
    return compare_references(device_, pool_, *slot(task.slot).memory, task, progress_);
}

void RunWorker::drop(int number) {
    std::erase_if(finalists_, [&](const auto& entry) { return entry.second->task().slot == number; });
    slots_.erase(number);
}

bool RunWorker::warm(int number) { return slot(number).memory->warm(); }

Outcome RunWorker::trial(const TrialTask& task) {
    Outcome outcome;
    try {
        Slot& mine = slot(task.candidate.slot);
        if (!task.check) return task.measure ? model(mine, task) : run_once(mine, task);
        if (!mine.has_reference) throw Error{Error::Kind::internal, "the problem has no reference yet"};
        outcome = judge(mine, task);
        // A stray write may have hit anything: what candidates share is made anew.
        if (outcome.ending == Ending::out_of_bounds) {
            mine.memory->restore_inputs(true);
            establish_reference(device_, pool_, *mine.memory, mine.reference, mine.values, progress_);
        }
    } catch (const DeviceFailure& e) {
        outcome = outcome_of(e.fault());
        lost_ = lost_ || e.fault().sticky;
    }
    return outcome;
}

/// The time of a candidate where nothing can be measured.
Outcome RunWorker::model(Slot& mine, const TrialTask& task) {
    const auto start = Clock::now();
    const Candidate candidate{device_, pool_, *mine.memory, task.candidate, 1};
    if (progress_) progress_("modelling", 0);
    const Samples samples = device_.time(candidate.bound(), {}, task.plan);
    Outcome outcome{.ending = samples.dropped ? Ending::dropped : Ending::timed, .samples_us = samples.time_us};
    outcome.time_us = median(samples.time_us);
    outcome.predicted = samples.predicted;
    outcome.method = "modelled";
    outcome.clock_mhz = samples.clock_mhz;
    if (const auto* const counting = dynamic_cast<const emulator::Counting*>(&device_))
        outcome.counters = counting->counted();
    outcome.time_ms = milliseconds_since(start);
    if (samples.dropped) outcome.reason = slower_than(outcome.time_us, task.plan.drop_above_us);
    return outcome;
}

/// What the device itself says of a run: nobody looks at its results.
Outcome RunWorker::run_once(Slot& mine, const TrialTask& task) {
    const auto start = Clock::now();
    Candidate candidate{device_, pool_, *mine.memory, task.candidate, 1};
    mine.memory->reset_outputs(0, first_poison);
    candidate.poison_scratch(0, first_poison);
    if (progress_) progress_("running", task.expect_s);
    device_.run(candidate.bound().front());
    Outcome outcome;
    outcome.check_ms = milliseconds_since(start);
    return outcome;
}

Outcome RunWorker::judge(Slot& mine, const TrialTask& task) {
    const auto start = Clock::now();
    Candidate candidate{device_, pool_, *mine.memory, task.candidate, task.measure ? mine.memory->sets() : 1};
    CheckResult checked = check_surely(mine, candidate, task);
    Outcome outcome = checked.failure.value_or(Outcome{});
    outcome.max_error = checked.max_error;
    outcome.check_ms = milliseconds_since(start);
    if (checked.failure || !task.measure) return outcome;
    if (checked.too_slow_us > 0) {
        outcome.ending = Ending::dropped;
        outcome.samples_us = {checked.too_slow_us};
        outcome.time_us = checked.too_slow_us;
        outcome.reason = slower_than(outcome.time_us, task.plan.drop_above_us);
        return outcome;
    }
    const auto begin = Clock::now();
    outcome = measure(mine, candidate, task, checked);
    if (outcome.ok() && checked.slow && task.twice)
        if (std::optional<Outcome> failure = check_again(device_, *mine.memory, candidate, task, checked, progress_)) {
            failure->max_error = checked.max_error;
            return *failure;
        }
    outcome.max_error = checked.max_error;
    outcome.time_ms = milliseconds_since(begin);
    outcome.check_ms = milliseconds_since(start) - outcome.time_ms;
    return outcome;
}

/// A wrong result counts only against a reference that no earlier candidate can have overwritten.
CheckResult RunWorker::check_surely(Slot& mine, Candidate& candidate, const TrialTask& task) {
    const bool touched = mine.reference_touched;
    mine.reference_touched = true;
    CheckResult checked = check(device_, *mine.memory, candidate, task, progress_);
    const bool wrong = checked.failure && (checked.failure->ending == Ending::wrong_result ||
                                           checked.failure->ending == Ending::no_output);
    if (!wrong || !touched) return checked;
    mine.memory->restore_inputs(true);
    establish_reference(device_, pool_, *mine.memory, mine.reference, mine.values, progress_);
    return check(device_, *mine.memory, candidate, task, progress_);
}

Outcome RunWorker::measure(Slot& mine, Candidate& candidate, const TrialTask& task, const CheckResult& checked) {
    ProblemMemory& memory = *mine.memory;
    const double run_s = checked.run_s;
    const TimePlan plan = fit(task.plan, run_s, task.most_ms);
    memory.reset_outputs(0, first_poison);
    if (progress_)
        progress_("timing", run_s * (plan.samples + plan.warmup + 1) + plan.at_least_us * 1e-6 * (plan.samples + 1));
    const Samples samples = device_.time(candidate.bound(), memory.restores(), plan);

    Outcome outcome{.ending = samples.dropped ? Ending::dropped : Ending::timed, .samples_us = samples.time_us};
    outcome.time_us = samples.time_us.empty() ? 0 : median(samples.time_us);
    outcome.predicted = samples.predicted;
    outcome.method = samples.graph ? "graph" : "events";
    outcome.clock_mhz = samples.clock_mhz;
    outcome.tainted = !samples.predicted && disturbed();
    if (samples.dropped) outcome.reason = slower_than(outcome.time_us, plan.drop_above_us);
    if (!samples.predicted && !samples.dropped)
        if (std::optional<Outcome> wrong = check_after_timing(device_, memory, candidate, task, checked)) return *wrong;
    if (!samples.predicted && task.floor_us > 0 && outcome.time_us > 0 && outcome.time_us < task.floor_us) {
        outcome.ending = Ending::below_floor;
        outcome.reason = fmt::format(
            "{:.4g} us is faster than the device can be for this work, {:.4g} us: work was left out or counted wrongly",
            outcome.time_us, task.floor_us);
    }
    return outcome;
}

/// Whether another process or a slowdown disturbed what was just timed. Looking takes some milliseconds, which is more
/// than many a trial: trials that follow each other share a look. Clocks are compared among finalists only, since what
/// two kernels draw differs.
bool RunWorker::disturbed() {
    constexpr std::chrono::milliseconds fresh{200};
    if (!watch_) return false;
    if (seen_at_ == Clock::time_point{} || Clock::now() - seen_at_ > fresh) {
        seen_ = watch_();
        seen_at_ = Clock::now();
    }
    return seen_.other_processes > 0 || seen_.throttled;
}

void RunWorker::load(const CandidateTask& finalist) {
    Slot& mine = slot(finalist.slot);
    auto candidate = std::make_unique<Candidate>(device_, pool_, *mine.memory, finalist, mine.memory->sets());
    for (std::size_t s = 0; s < mine.memory->sets(); ++s) mine.memory->reset_outputs(s, first_poison);
    if (progress_) progress_("running", 0);
    device_.run(candidate->bound().front());
    finalists_[finalist.id] = std::move(candidate);
}

RoundSamples RunWorker::round(const RoundTask& task) {
    RoundSamples result;
    for (std::size_t i = 0; i < task.order.size(); ++i) {
        const int id = task.order[i];
        const auto found = finalists_.find(id);
        if (found == finalists_.end())
            throw Error{Error::Kind::internal, fmt::format("finalist {} was not loaded", id)};
        ProblemMemory& memory = *slot(found->second->task().slot).memory;
        TimePlan plan = task.plan;
        plan.about_us = i < task.about_us.size() ? task.about_us[i] : 0;
        if (progress_) progress_("timing", 0);
        try {
            result.samples.push_back(device_.time(found->second->bound(), memory.restores(), plan));
        } catch (const DeviceFailure& e) {
            result.failure = e.fault().message;
            lost_ = lost_ || e.fault().sticky;
            break;
        }
    }
    if (watch_ && task.watch && !lost_) result.state = watch_();
    return result;
}

void RunWorker::unload() { finalists_.clear(); }

}  // namespace autotune
