// What a dispatcher tries in the calls of its application, and what comes of it.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "autotune/error.h"
#include "cache/dispatch/dispatcher_impl.h"

namespace autotune {

namespace {

/// What won most problems of the op on this kind of GPU, the most frequent first.
std::vector<Config> frequent_winners(const Snapshot& snapshot) {
    std::map<std::uint32_t, std::size_t> wins;
    std::map<std::uint32_t, const SnapshotRow*> rows;
    for (const Snapshot::Problem& problem : snapshot.problems()) {
        const SnapshotRow& best = snapshot.rows(problem).front();
        ++wins[best.config];
        rows[best.config] = &best;
    }
    std::vector<std::pair<std::size_t, std::uint32_t>> order;
    for (const auto& [config, count] : wins) order.emplace_back(count, config);
    std::ranges::sort(order, [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::vector<Config> configs;
    for (const auto& [count, config] : order) configs.push_back(snapshot.config(*rows[config]));
    return configs;
}

bool every_variant_repeats(const Op& op) { return std::ranges::all_of(op.variants, &Variant::idempotent); }

}  // namespace

void Dispatcher::Impl::start_online() {
    for (const std::string& name : options.online) {
        const Op& op = ops().find(name);
        if (!every_variant_repeats(op))
            throw Error{
                Error::Kind::usage,
                fmt::format("op '{}' cannot be tuned online: running a kernel of it again changes something", name)};
    }
    if (!(options.online_share > 0 && options.online_share <= 0.5))
        throw Error{
            Error::Kind::usage,
            fmt::format("online tuning takes a share of GPU time above 0 and up to 0.5, not {}", options.online_share)};
    if (!calls) return;
    online = std::make_unique<OnlineTuner>(
        *calls, kernel_options(), options.online_share,
        OnlineTuner::Hooks{.workspace =
                               [this](CUstream stream, int device, std::uint64_t bytes) {
                                   const std::lock_guard lock{mutex};
                                   return workspaces->ensure(stream, device, bytes);
                               },
                           .found = [this](const OnlineFinding& finding) { take_in(finding); }});
}

void Dispatcher::Impl::attach_online(Plan& plan, const Call& call, const Instance& instance,
                                     const DeviceIdentity& device, const LadderStep& decided,
                                     const std::vector<LadderStep>& steps) {
    if (frozen || plan.decision.rung == Rung::exact ||
        std::ranges::find(options.online, instance.op().name) == options.online.end() ||
        !OnlineTuner::allows(instance, plan))
        return;
    const OpKnowledge& knows = known(instance.op(), device);
    std::vector<LadderStep> candidates;
    const auto add = [&](const LadderStep& step) {
        const bool known_already = std::ranges::find(candidates, step.name, &LadderStep::name) != candidates.end();
        if (step.refused.empty() && step.name != decided.name && !known_already &&
            !failed.contains(name_here(step.name, call.device)) && candidates.size() < OnlineTuner::most_candidates)
            candidates.push_back(step);
    };
    for (const Config& config : frequent_winners(knows.snapshot)) {
        LadderStep step{.config = config, .compilers = knows.compilers};
        judge(step, instance, knows);
        add(step);
    }
    for (const LadderStep& step : steps) add(step);
    plan.online =
        online->problem(plan, instance, device, call.device, call.scalars.size(), decided, std::move(candidates));
}

CUresult Dispatcher::Impl::online_turn(const Plan& plan, std::span<const TensorArgument> tensors,
                                       std::span<const ScalarArgument> scalars, CUstream stream,
                                       const Workspace* workspace, bool& begun, Decision& decision) {
    if (in_child()) return CUDA_ERROR_NOT_INITIALIZED;  // the tuner's thread, and maybe its lock, are the parent's
    if (frozen || capturing(stream)) {
        plan.online->postpone();
        return launch_plan(*calls, plan, tensors, scalars, stream, workspace, begun);
    }
    return online->turn(*plan.online, plan, tensors, scalars, stream, workspace, *workspaces, begun, decision);
}

/// On the thread of the online tuner.
void Dispatcher::Impl::take_in(const OnlineFinding& finding) {
    const OnlineProblem& problem = finding.problem;
    const Config& config = finding.candidate.step.config;
    const std::string& op = problem.instance.op().name;
    const std::lock_guard lock{mutex};
    Lesson lesson{.start = run_of_dispatch(problem.instance, problem.device, "online", finding.candidate.nvrtc)};
    if (finding.kind != OnlineFinding::Kind::better) {
        const bool wrong = finding.kind == OnlineFinding::Kind::wrong_result;
        failed.insert(name_here(finding.candidate.step.name, problem.ordinal));
        log(fmt::format("'{}' of '{}' is left out of online tuning: {}", finding.candidate.text, op, finding.what));
        if (!wrong) return learn_failure(problem.instance, problem.device, config, problem.status);
        lesson.trials = {{config, Outcome{.ending = Ending::wrong_result, .reason = finding.what}}};
        lesson.end = {.evaluated = 1, .space_size = 2};
    } else {
        const double us = OnlineTuner::time_us(finding.candidate), before_us = OnlineTuner::decided_us(problem);
        adopted.put({.op = op,
                     .device_fp = problem.device.fp,
                     .problem_key = problem.instance.key(),
                     .problem = problem.instance.problem().text(),
                     .config = config,
                     .rung = Rung::exact});
        if (!frozen) forget_plans();
        log(fmt::format("'{}' {} takes {:.1f} us with '{}' and took {:.1f} with '{}', so that runs from now on", op,
                        problem.instance.problem().text(), us, finding.candidate.text, before_us,
                        problem.decided.config.text()));
        const auto [low, high] = std::ranges::minmax(finding.candidate.samples_us);
        lesson.end = {.finalists = {{.config = config,
                                     .time_us = us,
                                     .low_us = low,
                                     .high_us = high,
                                     .samples = static_cast<int>(finding.candidate.samples_us.size())}},
                      .evaluated = problem.candidates.size() + 1,
                      .space_size = problem.candidates.size() + 1,
                      .method = "events",
                      .reference = "the config that ran before"};
        if (problem.decided.rung == Rung::default_config) lesson.end.default_us = before_us;
    }
    if (learner) learner->add(std::move(lesson));
}

}  // namespace autotune
