#include "tuner/worker/emulated_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "autotune/error.h"
#include "device/emulator/parts.h"
#include "device/identity.h"
#include "tuner/model/cache_root.h"
#include "tuner/worker/candidate_task.h"
#include "tuner/worker/compiled_sources.h"
#include "tuner/worker/effort_plan.h"
#include "tuner/worker/gates.h"
#include "tuner/worker/predictor.h"
#include "tuner/worker/process.h"
#include "tuner/worker/queued_trial.h"
#include "tuner/worker/recheck.h"
#include "tuner/worker/reference_desk.h"
#include "tuner/worker/run_lane.h"
#include "tuner/worker/small_problem.h"
#include "tuner/worker/trial_desk.h"

namespace autotune {
namespace {

constexpr int first_small_slot = 16;
/// Small problems that a lane holds at a time: most configs of a space share one.
constexpr std::size_t most_held = 8;

/// A problem that configs are checked on.
struct SmallProblem {
    Instance instance;
    std::shared_ptr<const HeldProblem> held;
};

/// A check runs a small problem, a model the one that was asked for.
constexpr double modelling_over_check = 3;

/// One emulating process, and what it holds.
struct EmulatingLane {
    EmulatingLane(const WorkerOptions& options, StageLog& log)
        : lane{options.worker, options.device, log},
          desk{lane, {.limit_s = options.trial_limit_s, .least_s = options.trial_limit_s, .processor_time = true}} {}

    void hold(const SmallProblem& small) {
        const int slot = small.held->task.slot;
        if (lane.holds(slot)) return;
        if (held.size() == most_held) {
            lane.drop(held.front());
            held.pop_front();
        }
        lane.hold(small.held);
        held.push_back(slot);
    }

    RunLane lane;
    TrialDesk desk;
    std::deque<int> held;  ///< slots, oldest first
};

class EmulatedBench final : public WorkerBench {
public:
    explicit EmulatedBench(const WorkerOptions& options)
        : options_{options},
          plan_{plan_for(options.effort)},
          identity_{*emulated_device(options.device)},
          lanes_{make_lanes(options_, log_)},
          store_{{.worker = options_.worker, .workers = options.compile_workers, .limit_s = options.compile_limit_s}},
          references_{options_.worker, options_.cache_dir, lanes_.front()->lane, store_, log_} {}

    ~EmulatedBench() override {
        cancel_all();
        for (const auto& one : lanes_) one->lane.thread().post([&lane = one->lane] { lane.abandon(); });
    }

    const DeviceIdentity& device() override { return identity_; }
    Instance sized(const Instance& instance) override { return references_.sized(instance, options_.seed, waiter()); }
    void expect(const Instance& instance, std::span<const Config> first) override {
        try {
            for (const Config& config : first) store_.expect(instance.sources(config), arch_name(instance.limits().cc));
        } catch (const Error&) {  // whoever asks for it in earnest is told
        }
    }
    Preparation prepare(const Instance& instance) override;
    Predictions predict(std::span<const Config> configs, const std::function<bool()>& go_on) override {
        std::vector<ModellingLane> lanes;
        for (const auto& one : lanes_) lanes.push_back({&one->lane, &one->desk});
        return {.model = identity_.name, .time_us = predict_times(instance(), configs, store_, lanes, go_on)};
    }
    std::size_t capacity() const override { return store_.pool().workers() + lanes_.size() + 2; }
    void submit(const Config& config) override;
    Outcome next(const std::function<void()>& idle) override;
    std::optional<Outcome> next_while(const std::function<bool()>& go_on) override {
        return next_outcome_while(trials_, mutex_, finished_, go_on);
    }
    void cancel() override {
        if (cancel_all()) store_.abandon();
        for (const auto& one : lanes_) one->lane.thread().run([] {});  // those that run are let finish
    }
    void best_so_far(double) override {}  // a modelled time costs as much, however long it is
    std::vector<Outcome> rounds(std::span<const Config> finalists, int rounds) override;
    Verification verify(const Config& config) override;
    std::vector<Artefact> artefacts(const Config& config) override {
        const BinariesResult result = store_.get(instance().sources(config), arch_name(instance().limits().cc));
        return result.binaries ? result.binaries->artefacts : std::vector<Artefact>{};
    }
    BenchUse use() const override;
    Outcome count(const Config& config) override { return rounds({&config, 1}, 1).front(); }

private:
    using Lanes = std::vector<std::unique_ptr<EmulatingLane>>;
    static Lanes make_lanes(WorkerOptions& options, StageLog& log) {
        options.worker = find_worker(options.worker);
        if (options.cache_dir.empty()) options.cache_dir = cache_root();
        const std::size_t count = options.compile_workers ? options.compile_workers : usable_threads();
        Lanes lanes;
        for (std::size_t i = 0; i < count; ++i) lanes.push_back(std::make_unique<EmulatingLane>(options, log));
        return lanes;
    }

    const Instance& instance() const {
        if (!instance_) throw Error{Error::Kind::internal, "no problem was prepared"};
        return *instance_;
    }

    bool cancel_all();
    std::shared_ptr<const SmallProblem> small_for(const Config& config, const ReferenceDesk::Waiter& waiter);
    ReferenceDesk::Waiter waiter() const { return {.note = options_.note, .stop_requested = options_.stop_requested}; }
    void take_binaries(const std::shared_ptr<QueuedTrial>& trial, EmulatingLane& lane,
                       std::shared_ptr<const SmallProblem> small, BinariesResult result);
    void try_out(const std::shared_ptr<QueuedTrial>& trial, EmulatingLane& lane, const SmallProblem& small,
                 const Binaries& binaries);
    Outcome judge(const Config& config, EmulatingLane& lane, const SmallProblem& small, const Binaries& binaries);
    Outcome model(const Config& config, EmulatingLane& lane, const Binaries& binaries);
    void finish(const std::shared_ptr<QueuedTrial>& trial, Outcome outcome);

    WorkerOptions options_;
    const EffortPlan plan_;
    const DeviceIdentity identity_;
    std::optional<Instance> instance_;
    std::map<std::string, std::shared_ptr<const SmallProblem>> small_;  ///< of the problem at hand, by their text
    int next_slot_ = first_small_slot;
    std::size_t next_lane_ = 0;

    mutable std::mutex mutex_;
    std::condition_variable finished_;
    std::deque<std::shared_ptr<QueuedTrial>> trials_;  ///< guarded, as what follows
    double check_s_ = 0, time_s_ = 0, compile_before_s_ = 0;

    StageLog log_;
    // In this order: the store's thread posts to the lanes, and the references use both.
    Lanes lanes_;
    CompiledSources store_;
    ReferenceDesk references_;
};

Preparation EmulatedBench::prepare(const Instance& instance) {
    cancel();
    instance_ = instance;
    small_.clear();
    compile_before_s_ = store_.pool().busy_s();
    check_s_ = time_s_ = 0;
    const std::shared_ptr<const HeldProblem> whole = references_.modelled(instance, options_.seed, waiter());
    for (const auto& one : lanes_) one->desk.set_main(whole);
    // On the first only: that it fits. The others follow with their first candidate.
    lanes_.front()->lane.thread().run([&] { lanes_.front()->desk.hold_main_anew(); });
    for (std::size_t i = 1; i < lanes_.size(); ++i)
        lanes_[i]->lane.thread().run([&lane = lanes_[i]->lane] {
            if (lane.holds(0)) lane.drop(0);
        });
    if (const std::string trouble = store_.pool().trouble(); !trouble.empty())
        throw Error{Error::Kind::compile, fmt::format("no compiler: {}", trouble), "autotune doctor"};
    const std::shared_ptr<const SmallProblem> small = small_for(instance.default_config(), waiter());
    return {.reference = fmt::format("{}, on {}", small->held->words, small->instance.problem().text()),
            .method = "modelled"};
}

/// The problem that a config is checked on, with its reference. Throws Error where there is none.
std::shared_ptr<const SmallProblem> EmulatedBench::small_for(const Config& config,
                                                             const ReferenceDesk::Waiter& waiter) {
    const std::optional<Instance> small = small_problem(instance(), config);
    if (!small)
        throw Error{Error::Kind::usage, "no problem that its constraints allow is small enough to be interpreted"};
    const std::string name = small->problem().text();
    if (const auto found = small_.find(name); found != small_.end()) return found->second;
    auto held =
        references_.wait(references_.begin(*small, options_.seed, next_slot_++, false), instance().op().name, waiter);
    return small_[name] = std::make_shared<const SmallProblem>(SmallProblem{*small, std::move(held)});
}

void EmulatedBench::submit(const Config& config) {
    auto trial = std::make_shared<QueuedTrial>(QueuedTrial{.config = config});
    EmulatingLane& lane = *lanes_[next_lane_++ % lanes_.size()];
    {
        const std::lock_guard lock{mutex_};
        trials_.push_back(trial);
    }
    if (const std::optional<std::string> objection = instance().objection(config))
        return finish(trial, {.ending = Ending::not_valid, .reason = *objection});
    std::shared_ptr<const SmallProblem> small;
    try {
        // No stop: an exception would lose the trials that others are at.
        small = small_for(config, {.note = options_.note, .stop_requested = {}});
    } catch (const Error& e) {
        return finish(trial, {.ending = Ending::not_emulated, .reason = e.what()});
    }
    try {
        store_.want(instance().sources(config), arch_name(instance().limits().cc),
                    [this, trial, &lane, small](BinariesResult result) {
                        take_binaries(trial, lane, small, std::move(result));
                    });
    } catch (const Error& e) {
        finish(trial, {.ending = Ending::compile_failed, .reason = e.what()});
    }
}

/// On the pool's thread, or the caller's when the binaries were there already.
void EmulatedBench::take_binaries(const std::shared_ptr<QueuedTrial>& trial, EmulatingLane& lane,
                                  std::shared_ptr<const SmallProblem> small, BinariesResult result) {
    if (result.obstacle) {
        {
            const std::lock_guard lock{mutex_};
            trial->obstacle = result.obstacle;
        }
        return finish(trial, {.ending = Ending::crashed, .reason = result.obstacle->what()});
    }
    if (!result.binaries) return finish(trial, std::move(result.failure));
    {
        const std::lock_guard lock{mutex_};
        trial->outcome.compile_ms = result.compile_ms;
    }
    lane.lane.thread().post(
        [this, trial, &lane, small, binaries = result.binaries] { try_out(trial, lane, *small, *binaries); });
}

/// On the lane's thread.
void EmulatedBench::try_out(const std::shared_ptr<QueuedTrial>& trial, EmulatingLane& lane, const SmallProblem& small,
                            const Binaries& binaries) {
    {
        const std::lock_guard lock{mutex_};
        if (trial->cancelled) return;
    }
    Outcome outcome;
    try {
        outcome = judge(trial->config, lane, small, binaries);
    } catch (const EvaluationError& e) {  // of a launch's geometry
        outcome = {.ending = Ending::not_valid, .reason = e.what()};
    } catch (const Error& e) {  // the emulator does not start: another config would meet the same
        const std::lock_guard lock{mutex_};
        trial->obstacle = std::make_shared<const Error>(e);
    }
    finish(trial, std::move(outcome));
}

/// Gates, the check on the small problem, the time on the problem asked for.
Outcome EmulatedBench::judge(const Config& config, EmulatingLane& lane, const SmallProblem& small,
                             const Binaries& binaries) {
    const CandidateTask asked = candidate_task(instance(), config, binaries, 0, true);
    const Resources used = resources_of(binaries, asked.sequence, instance().limits());
    std::optional<Outcome> outcome =
        gate(*instance().op().variant(config.variant), binaries, asked.sequence, instance().limits());
    if (!outcome) {
        lane.hold(small);
        TrialTask check{.candidate = candidate_task(small.instance, config, binaries, small.held->task.slot, true),
                        .twice = plan_.twice,
                        .measure = false};
        outcome = lane.desk.ask(check);
        if (!outcome->ok()) outcome->reason = fmt::format("{}: {}", small.instance.problem().text(), outcome->reason);
        if (outcome->ok()) {
            Outcome modelled = model(config, lane, binaries);
            modelled.max_error = outcome->max_error;
            modelled.check_ms = outcome->check_ms;
            outcome = std::move(modelled);
        }
    }
    outcome->registers = used.registers;
    outcome->spill_bytes = used.spill_bytes;
    outcome->shared_bytes = used.shared_bytes;
    outcome->blocks_per_sm = used.blocks_per_sm;
    return std::move(*outcome);
}

/// Only of a config that was found right on something small: a model that takes long says nothing against it, so a next
/// run tries it again.
Outcome EmulatedBench::model(const Config& config, EmulatingLane& lane, const Binaries& binaries) {
    TrialTask task{.candidate = candidate_task(instance(), config, binaries, 0, true), .check = false};
    const double limit_s = modelling_over_check * options_.trial_limit_s;
    Outcome outcome = lane.desk.ask(task, {.limit_s = limit_s, .least_s = limit_s, .processor_time = true});
    if (outcome.ending != Ending::timed_out) return outcome;
    return {
        .ending = Ending::not_emulated,
        .reason = fmt::format("it is right, but modelling its time takes more than {:.0f} s of processor time; {:.0f} "
                              "times what --trial-limit says are allowed",
                              limit_s, modelling_over_check),
        .tainted = true};
}

void EmulatedBench::finish(const std::shared_ptr<QueuedTrial>& trial, Outcome outcome) {
    const std::lock_guard lock{mutex_};
    if (trial->cancelled) return;
    outcome.compile_ms = std::max(outcome.compile_ms, trial->outcome.compile_ms);
    check_s_ += outcome.check_ms * 1e-3;
    time_s_ += outcome.time_ms * 1e-3;
    trial->outcome = std::move(outcome);
    trial->done = true;
    finished_.notify_all();
}

Outcome EmulatedBench::next(const std::function<void()>& idle) {
    return next_outcome(trials_, mutex_, finished_, idle);
}

/// Whether there was a trial.
bool EmulatedBench::cancel_all() {
    const std::lock_guard lock{mutex_};
    const bool any = !trials_.empty();
    for (const auto& trial : trials_) trial->cancelled = true;
    trials_.clear();
    return any;
}

/// The model says the same each time, so one look is all rounds.
std::vector<Outcome> EmulatedBench::rounds(std::span<const Config> finalists, int) {
    std::vector<Outcome> outcomes;
    EmulatingLane& lane = *lanes_.front();
    for (const Config& config : finalists) {
        const BinariesResult result = store_.get(instance().sources(config), arch_name(instance().limits().cc));
        throw_obstacle(result.obstacle);
        outcomes.push_back(result.binaries
                               ? lane.lane.thread().run([&] { return model(config, lane, *result.binaries); })
                               : result.failure);
    }
    return outcomes;
}

Verification EmulatedBench::verify(const Config& config) {
    const std::shared_ptr<const SmallProblem> small = small_for(config, waiter());
    EmulatingLane& lane = *lanes_.front();
    const Recheck::Setting setting{.lane = lane.lane,
                                   .store = store_,
                                   .references = references_,
                                   .desk = lane.desk,
                                   .log = log_,
                                   .plan = plan_,
                                   .instance = small->instance,
                                   .seed = options_.seed,
                                   .waiter = waiter()};
    return Recheck{setting}.run(config);
}

BenchUse EmulatedBench::use() const {
    const std::lock_guard lock{mutex_};
    return {.compile_s = store_.pool().busy_s() - compile_before_s_,
            .check_s = check_s_,
            .time_s = time_s_,
            .compile_workers = store_.pool().workers(),
            .stages = log_.stages()};
}

}  // namespace

std::unique_ptr<WorkerBench> make_emulated_bench(const WorkerOptions& options) {
    return std::make_unique<EmulatedBench>(options);
}

}  // namespace autotune
