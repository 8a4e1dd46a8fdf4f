#include "tuner/worker/recheck.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <future>
#include <utility>

#include "autotune/error.h"
#include "device/identity.h"
#include "tuner/worker/candidate_task.h"
#include "tuner/worker/ragged.h"

namespace autotune {
namespace {

constexpr int slot = recheck_slot;
constexpr std::size_t references_ahead = 3;

/// Scalars at the next of their check values.
Binding binding_for(const Instance& instance, int turn) {
    Binding binding = instance.binding();
    for (const Scalar& scalar : instance.op().scalars) {
        if (scalar.check.empty()) continue;
        std::erase_if(binding.scalars, [&](const auto& entry) { return entry.first == scalar.name; });
        binding.scalars.emplace_back(scalar.name, scalar.check[static_cast<std::size_t>(turn) % scalar.check.size()]);
    }
    return binding;
}

}  // namespace

/// The problem with its scalars at the next of their check values, and with the dims of that seed's inputs; as it is
/// where the config cannot run on that.
Recheck::Turn Recheck::same_problem(const Config& config, int turn) const {
    const Instance& instance = setting_.instance;
    const std::uint64_t seed = setting_.seed + 1 + static_cast<std::uint64_t>(turn);
    try {
        const Instance same = setting_.references.sized(
            Instance::make(instance.op(), given_fields(instance), instance.limits(), binding_for(instance, turn)), seed,
            setting_.waiter);
        if (!same.objection(config)) return {same, seed};
    } catch (const Error& error) {
        if (error.kind() == Error::Kind::interrupted) throw;
    }
    const bool sized = std::ranges::any_of(instance.op().fields, &Field::from_inputs);
    return {instance, sized ? setting_.seed : seed};  // a generator's dims are those of its seed
}

std::vector<Recheck::Turn> Recheck::turns(const Config& config) const {
    std::vector<Turn> all;
    for (int turn = 0; turn < setting_.plan.seeds; ++turn) all.push_back(same_problem(config, turn));
    const std::uint64_t seed = setting_.seed + 101;
    for (const Instance& near : ragged_problems(setting_.instance, config, setting_.plan.most_work)) {
        if (all.size() >= setting_.plan.problems + static_cast<std::size_t>(setting_.plan.seeds)) break;
        try {
            Instance problem = setting_.references.sized(near, seed, setting_.waiter);
            if (!problem.objection(config)) all.push_back({std::move(problem), seed});
        } catch (const Error& error) {  // its generator makes none of this size
            if (error.kind() == Error::Kind::interrupted) throw;
        }
    }
    return all;
}

Verification Recheck::run(const Config& config) {
    const std::vector<Turn> all = turns(config);
    const auto seeds = static_cast<std::size_t>(setting_.plan.seeds);
    verification_ = {.problems = 1 + static_cast<int>(all.size() - seeds), .inputs = static_cast<int>(all.size())};
    const std::string arch = arch_name(setting_.instance.limits().cc);
    for (const Turn& one : all) setting_.store.expect(one.problem.sources(config), arch, true);
    // References are made on the desk's thread while the device checks the problem before.
    std::deque<std::future<std::shared_ptr<const HeldProblem>>> ready;
    std::size_t begun = 0;
    for (std::size_t i = 0; i < all.size() && !verification_.failure; ++i) {
        for (; begun < all.size() && ready.size() < references_ahead; ++begun)
            ready.push_back(setting_.references.begin(all[begun].problem, all[begun].seed, slot, false));
        std::future<std::shared_ptr<const HeldProblem>> next = std::move(ready.front());
        ready.pop_front();
        try {
            const std::string& op = all[i].problem.op().name;
            verification_.failure =
                check_on(all[i].problem, config, setting_.references.wait(std::move(next), op, setting_.waiter));
        } catch (const Error& error) {
            if (i < seeds || error.kind() == Error::Kind::interrupted) throw;
            --verification_.problems;  // its reference or its memory fails: it says nothing about the config
            --verification_.inputs;
        }
        if (verification_.failure) verification_.failed_on = all[i].problem.problem().text();
    }
    for (auto& rest : ready) rest.wait();
    setting_.lane.thread().run([&] {
        if (setting_.lane.holds(slot)) setting_.lane.drop(slot);
    });
    return std::move(verification_);
}

std::optional<Outcome> Recheck::check_on(const Instance& problem, const Config& config,
                                         std::shared_ptr<const HeldProblem> held) {
    const BinariesResult result = setting_.store.get(problem.sources(config), arch_name(problem.limits().cc));
    throw_obstacle(result.obstacle);
    if (!result.binaries) return result.failure;
    TrialTask task = setting_.like;
    try {
        task.candidate =
            candidate_task(problem, config, *result.binaries, held->task.slot, setting_.lane.device().emulated);
    } catch (const EvaluationError& e) {  // of a launch's geometry, which no constraint forbids
        return Outcome{.ending = Ending::not_valid, .reason = e.what()};
    }
    task.measure = false;
    task.twice = true;
    task.plan.drop_above_us = 0;
    const Outcome outcome = setting_.lane.thread().run([&] {
        try {
            setting_.lane.hold(held);
        } catch (const Error& e) {
            if (e.kind() != Error::Kind::device || !setting_.lane.holds(0)) throw;
            setting_.lane.drop(0);  // no room for both
            setting_.lane.hold(held);
        }
        const StageLog::Span span{setting_.log, "winner checked again"};
        return setting_.desk.ask(task);
    });
    verification_.largest_error = std::max(verification_.largest_error, outcome.max_error);
    if (outcome.ok()) return std::nullopt;
    if (outcome.ending == Ending::out_of_memory) throw Error{Error::Kind::device, outcome.reason};
    return outcome;
}

}  // namespace autotune
