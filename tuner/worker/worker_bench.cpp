#include "tuner/worker/worker_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <map>
#include <mutex>

#include "autotune/error.h"
#include "device/emulator/parts.h"
#include "device/identity.h"
#include "tuner/model/cache_root.h"
#include "tuner/model/space.h"
#include "tuner/worker/candidate_task.h"
#include "tuner/worker/compiled_sources.h"
#include "tuner/worker/effort_plan.h"
#include "tuner/worker/emulated_bench.h"
#include "tuner/worker/emulator_desk.h"
#include "tuner/worker/final_rounds.h"
#include "tuner/worker/gates.h"
#include "tuner/worker/idle_meter.h"
#include "tuner/worker/json_types.h"
#include "tuner/worker/memory_need.h"
#include "tuner/worker/predictor.h"
#include "tuner/worker/queued_trial.h"
#include "tuner/worker/recheck.h"
#include "tuner/worker/reference_desk.h"
#include "tuner/worker/run_lane.h"
#include "tuner/worker/trial_desk.h"

namespace autotune {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Of all variants, before any constraint.
double raw_size(const Op& op) {
    double raw = 0;
    for (const Variant& variant : op.variants) {
        double values = 1;
        for (const Parameter& parameter : variant.parameters) values *= static_cast<double>(parameter.values.size());
        raw += values;
    }
    return raw;
}

class RealBench final : public WorkerBench {
public:
    explicit RealBench(const WorkerOptions& options)
        : options_{with_paths(options)},
          plan_{plan_of(options)},
          lane_{options_.worker, options.device, log_},
          trial_desk_{lane_,
                      {.limit_s = options.trial_limit_s,
                       .least_s = std::min(2.0, options.trial_limit_s),
                       .times_expected = 10}},
          store_{{.worker = options_.worker, .workers = options.compile_workers, .limit_s = options.compile_limit_s},
                 options.keep_artefacts ? std::numeric_limits<std::size_t>::max() : 256},
          references_{options_.worker, options_.cache_dir, lane_, store_, log_},
          emulator_{options_, store_, references_, log_} {}

    ~RealBench() override {
        {
            const std::lock_guard lock{mutex_};
            for (const auto& trial : trials_) trial->cancelled = true;
        }
        lane_.thread().post([this] { lane_.abandon(); });  // its device closes while the others are ended
    }

    const DeviceIdentity& device() override { return lane_.device(); }

    Instance sized(const Instance& instance) override { return references_.sized(instance, options_.seed, waiter()); }
    void use_ready(Ready ready) override { store_.use_ready(std::move(ready)); }
    void expect(const Instance& instance, std::span<const Config> first) override;
    Preparation prepare(const Instance& instance) override;
    Predictions predict(std::span<const Config> configs, const std::function<bool()>& go_on) override;
    std::size_t capacity() const override { return store_.pool().workers() + 4; }
    void submit(const Config& config) override;
    Outcome next(const std::function<void()>& idle) override;
    std::optional<Outcome> next_while(const std::function<bool()>& go_on) override;
    void cancel() override;
    void best_so_far(double time_us) override { note_best(time_us); }
    void best_is_now(double time_us) override { best_us_ = time_us; }
    std::vector<Outcome> rounds(std::span<const Config> finalists, int rounds) override;
    Verification verify(const Config& config) override;
    std::vector<Artefact> artefacts(const Config& config) override;
    BenchUse use() const override;
    Outcome count(const Config& config) override { return emulator_.count(device(), instance(), config); }
    std::string explain(const Config& config, const Outcome& outcome) override;

private:
    static WorkerOptions with_paths(WorkerOptions options) {
        options.worker = find_worker(options.worker);
        if (options.cache_dir.empty()) options.cache_dir = cache_root();
        return options;
    }

    static EffortPlan plan_of(const WorkerOptions& options) {
        EffortPlan plan = plan_for(options.effort);
        if (options.round_us > 0) plan.round_us = options.round_us;
        return plan;
    }

    const Instance& instance() const {
        if (!instance_) throw Error{Error::Kind::internal, "no problem was prepared"};
        return *instance_;
    }
    std::string arch() const { return arch_name(instance_->limits().cc); }
    ReferenceDesk::Waiter waiter() const { return {.note = options_.note, .stop_requested = options_.stop_requested}; }

    // What overlaps with the opening of the device.
    void begin_use();
    void compile_ahead(const Instance& instance);
    void refuse_what_cannot_fit(const Instance& instance) const;

    // One trial, from its binaries to its outcome.
    void take_binaries(const std::shared_ptr<QueuedTrial>& trial, BinariesResult result);
    void try_out(const std::shared_ptr<QueuedTrial>& trial, const TrialTask& task);
    void finish(const std::shared_ptr<QueuedTrial>& trial, Outcome outcome);
    void stop(const std::shared_ptr<QueuedTrial>& trial, const Error& error);
    void note_best(double time_us);
    TrialTask trial_task(CandidateTask candidate) const;

    const WorkerOptions options_;
    const EffortPlan plan_;
    std::optional<Instance> instance_;
    std::optional<double> bandwidth_gbs_;
    double floor_us_ = 0;
    std::atomic<double> best_us_ = 0;
    std::atomic<bool> graph_ = true;
    int rounds_begun_ = 0;
    std::map<std::string, double> known_us_;  ///< of timed trials, by config; the lane's thread's own

    mutable std::mutex mutex_;
    std::condition_variable finished_;
    std::deque<std::shared_ptr<QueuedTrial>> trials_;  ///< guarded, as what follows
    std::vector<std::function<void()>> held_back_;     ///< until the first trial, the default's, is done
    std::shared_ptr<QueuedTrial> first_;
    bool first_done_ = false;
    IdleMeter meter_;
    double check_s_ = 0, time_s_ = 0;
    BenchUse before_;  ///< of the problems before, as far as it is counted on

    StageLog log_;
    // In this order: the store's thread posts to the lane, and the references use both.
    RunLane lane_;
    TrialDesk trial_desk_;
    CompiledSources store_;
    ReferenceDesk references_;
    EmulatorDesk emulator_;
};

// ---- Preparing a problem.

Preparation RealBench::prepare(const Instance& instance) {
    cancel();
    begin_use();
    instance_ = instance;
    emulator_.begin();
    best_us_ = 0;
    graph_ = true;
    lane_.thread().post([this] { known_us_.clear(); });
    first_ = nullptr;
    first_done_ = false;
    refuse_what_cannot_fit(instance);
    compile_ahead(instance);
    auto ready = references_.begin(instance, options_.seed, 0, true);
    if (!bandwidth_gbs_)
        bandwidth_gbs_ = lane_.thread().run([this] {
            const StageLog::Span span{log_, "copy bandwidth"};
            return lane_.ask_surely(Message::bandwidth, nlohmann::json::object()).json().at("gbs").get<double>();
        });
    const std::shared_ptr<const HeldProblem> problem = references_.wait(std::move(ready), instance.op().name, waiter());
    trial_desk_.set_main(problem);
    const bool warm = lane_.thread().run([&] { return lane_.hold(problem); });
    if (const std::string trouble = store_.pool().trouble(); !trouble.empty())
        throw Error{Error::Kind::compile, fmt::format("no compiler: {}", trouble), "autotune doctor"};

    std::size_t smallest = 8;
    for (const BoundTensor& tensor : instance.tensors())
        if (tensor.present && tensor.role == Role::in && info(tensor.dtype).floating)
            smallest = std::min(smallest, size_of(tensor.dtype));
    floor_us_ = floor_us(instance.flops(), instance.bytes(), device(), *bandwidth_gbs_, smallest);
    return {.reference = problem->words,
            .method = "graph",
            .copy_bandwidth_gbs = *bandwidth_gbs_,
            .floor_us = floor_us_,
            .warm = warm};
}

/// Before a reference is computed that the host has no memory for either.
void RealBench::refuse_what_cannot_fit(const Instance& instance) const {
    const MemoryNeed need = memory_need(tensor_tasks(instance, options_.seed));
    const auto have = static_cast<double>(instance.limits().memory_bytes);
    if (have <= 0 || need.total() <= have) return;
    throw Error{Error::Kind::device,
                fmt::format("'{}' {} {}, and this one has {}", instance.op().name, instance.problem().text(),
                            need.text(), memory_text(have)),
                fmt::format("autotune ops {}", instance.op().name)};
}

/// While the device is opened and the reference is made, compilers would stand idle: they begin with the default, the
/// reference and, where the space is small, with all of it.
void RealBench::compile_ahead(const Instance& instance) {
    constexpr double small_space = 4096;
    constexpr std::size_t most = 64;
    const std::string arch = arch_name(instance.limits().cc);
    try {
        store_.expect(instance.sources(instance.default_config()), arch, true);
        references_.expect(instance, arch);
        if (raw_size(instance.op()) > small_space) return;
        const Space space = Space::make(instance);
        if (space.size() > most) return;
        for (std::size_t i = 0; i < space.size(); ++i) store_.expect(instance.sources(space.config(i)), arch);
    } catch (const Error&) {  // whoever asks for it in earnest is told
    }
}

void RealBench::expect(const Instance& instance, std::span<const Config> first) {
    cancel();
    refuse_what_cannot_fit(instance);
    compile_ahead(instance);
    try {
        for (const Config& config : first) store_.expect(instance.sources(config), arch_name(instance.limits().cc));
    } catch (const Error&) {  // as above
    }
}

// ---- Predictions.

/// In processes of their own, which are gone when this returns: none of them disturbs what is timed.
Predictions RealBench::predict(std::span<const Config> configs, const std::function<bool()>& go_on) {
    constexpr double longest_s = 3;  // of one config: the search that waits for it is short
    const std::optional<std::string> part = emulated_like(device());
    if (!part) return Bench::predict(configs, go_on);
    struct Lane {
        RunLane lane;
        TrialDesk desk;
        Lane(const WorkerOptions& options, const std::string& part, StageLog& log)
            : lane{options.worker, part, log}, desk{lane, {.limit_s = longest_s, .least_s = longest_s}} {}
    };
    const std::shared_ptr<const HeldProblem> whole = references_.modelled(instance(), options_.seed);
    StageLog own_log;  // theirs are no stages of the device's
    const StageLog::Span span{log_, "predictions"};
    std::vector<std::unique_ptr<Lane>> lanes;
    std::vector<ModellingLane> modelling;
    for (std::size_t i = 0; i < std::min(store_.pool().workers(), configs.size()); ++i) {
        lanes.push_back(std::make_unique<Lane>(options_, *part, own_log));
        lanes.back()->desk.set_main(whole);
        modelling.push_back({&lanes.back()->lane, &lanes.back()->desk});
    }
    const auto end_lanes = [&] {  // before their desks go, which a job may be using
        for (const auto& one : lanes) one->lane.thread().post([&lane = one->lane] { lane.abandon(); });
        for (const auto& one : lanes) one->lane.thread().run([] {});
    };
    try {
        Predictions predictions{.model = emulated_device(*part)->name,
                                .time_us = predict_times(instance(), configs, store_, modelling, go_on)};
        end_lanes();
        return predictions;
    } catch (...) {
        end_lanes();
        throw;
    }
}

// ---- Trials.

void RealBench::submit(const Config& config) {
    auto trial = std::make_shared<QueuedTrial>(QueuedTrial{.config = config});
    {
        const std::lock_guard lock{mutex_};
        trials_.push_back(trial);
        meter_.begin_waiting();
        if (!first_) first_ = trial;
    }
    try {
        if (const std::optional<std::string> objection = instance().objection(config))
            return finish(trial, {.ending = Ending::not_valid, .reason = *objection});
        store_.want(instance().sources(config), arch(),
                    [this, trial](BinariesResult result) { take_binaries(trial, std::move(result)); });
    } catch (const Error& e) {
        finish(trial, {.ending = Ending::compile_failed, .reason = e.what()});
    }
}

/// On the pool's thread, or the caller's when the binaries were there already.
void RealBench::take_binaries(const std::shared_ptr<QueuedTrial>& trial, BinariesResult result) {
    if (result.obstacle) return stop(trial, *result.obstacle);
    if (!result.binaries) return finish(trial, std::move(result.failure));
    try {
        const CandidateTask candidate =
            candidate_task(instance(), trial->config, *result.binaries, 0, lane_.device().emulated);
        const Resources used = resources_of(*result.binaries, candidate.sequence, instance().limits());
        Outcome facts;
        facts.compile_ms = result.compile_ms;
        facts.registers = used.registers;
        facts.spill_bytes = used.spill_bytes;
        facts.shared_bytes = used.shared_bytes;
        facts.blocks_per_sm = used.blocks_per_sm;
        {
            const std::lock_guard lock{mutex_};
            trial->outcome = facts;
        }
        const Variant* variant = instance().op().variant(trial->config.variant);
        if (std::optional<Outcome> failure = gate(*variant, *result.binaries, candidate.sequence, instance().limits()))
            return finish(trial, std::move(*failure));
        const auto job = [this, trial, candidate] { try_out(trial, trial_task(candidate)); };
        const std::lock_guard lock{mutex_};
        if (first_done_ || trial == first_)
            lane_.thread().post(job);
        else
            held_back_.push_back(job);    // the default sets the method, and what others are measured against
    } catch (const EvaluationError& e) {  // of a launch's geometry
        finish(trial, {.ending = Ending::not_valid, .reason = e.what()});
    } catch (const std::exception& e) {
        finish(trial, {.ending = Ending::compile_failed, .reason = e.what()});
    }
}

TrialTask RealBench::trial_task(CandidateTask candidate) const {
    const double best = best_us_;
    return {.candidate = std::move(candidate),
            .twice = plan_.twice,
            .plan = {.warmup = 1,
                     .samples = plan_.samples,
                     .at_least_us = plan_.at_least_us,
                     .drop_above_us = best * plan_.drop_factor,
                     .graph = graph_},
            .most_ms = plan_.most_ms,
            .floor_us = floor_us_,
            .expect_s = best * 1e-6};
}

/// On the lane's thread.
void RealBench::try_out(const std::shared_ptr<QueuedTrial>& trial, const TrialTask& task) {
    {
        const std::lock_guard lock{mutex_};
        if (trial->cancelled) return;
    }
    const auto start = Clock::now();
    Outcome outcome;
    try {
        outcome = trial_desk_.ask(task);
    } catch (const Error& e) {  // the worker does not start, or its device is gone: another config would meet the same
        return stop(trial, e);
    }
    log_.extend("trials", start, Clock::now());
    if (outcome.ok()) {
        note_best(outcome.time_us);
        known_us_[trial->config.text()] = outcome.time_us;
        if (outcome.method == "events") graph_ = false;
    }
    {
        const std::lock_guard lock{mutex_};
        meter_.add_busy(seconds_since(start));
        check_s_ += outcome.check_ms * 1e-3;
        time_s_ += outcome.time_ms * 1e-3;
    }
    finish(trial, std::move(outcome));
}

void RealBench::stop(const std::shared_ptr<QueuedTrial>& trial, const Error& error) {
    {
        const std::lock_guard lock{mutex_};
        trial->obstacle = std::make_shared<const Error>(error);
    }
    finish(trial, {.ending = Ending::crashed, .reason = error.what()});
}

void RealBench::finish(const std::shared_ptr<QueuedTrial>& trial, Outcome outcome) {
    const std::lock_guard lock{mutex_};
    if (trial->cancelled) return;
    const Outcome& facts = trial->outcome;
    outcome.compile_ms = std::max(outcome.compile_ms, facts.compile_ms);
    outcome.registers = facts.registers;
    outcome.spill_bytes = facts.spill_bytes;
    outcome.shared_bytes = facts.shared_bytes;
    outcome.blocks_per_sm = facts.blocks_per_sm;
    trial->outcome = std::move(outcome);
    trial->done = true;
    meter_.end_waiting();
    if (trial == first_ && !first_done_) {
        first_done_ = true;
        for (auto& job : held_back_) lane_.thread().post(std::move(job));
        held_back_.clear();
    }
    finished_.notify_all();
}

Outcome RealBench::next(const std::function<void()>& idle) { return next_outcome(trials_, mutex_, finished_, idle); }

std::optional<Outcome> RealBench::next_while(const std::function<bool()>& go_on) {
    return next_outcome_while(trials_, mutex_, finished_, go_on);
}

void RealBench::cancel() {
    {
        const std::lock_guard lock{mutex_};
        if (trials_.empty()) return;
        first_done_ = true;
        for (const auto& trial : trials_) {
            if (!trial->done) meter_.end_waiting();
            trial->cancelled = true;
        }
        trials_.clear();
        held_back_.clear();
    }
    store_.abandon();
    lane_.thread().run([] {});  // the one that runs is let finish
}

void RealBench::note_best(double time_us) {
    double best = best_us_;
    while ((best == 0 || time_us < best) && !best_us_.compare_exchange_weak(best, time_us)) {
    }
}

// ---- What follows the trials.

std::vector<Outcome> RealBench::rounds(std::span<const Config> configs, int rounds) {
    const FinalRounds::Setting setting{.lane = lane_,
                                       .store = store_,
                                       .desk = trial_desk_,
                                       .log = log_,
                                       .plan = plan_,
                                       .instance = instance(),
                                       .known_us = known_us_,
                                       .graph = graph_,
                                       .seed = options_.seed + static_cast<std::uint64_t>(rounds_begun_++)};
    return FinalRounds{setting, configs}.run(rounds);
}

Verification RealBench::verify(const Config& config) {
    const Recheck::Setting setting{.lane = lane_,
                                   .store = store_,
                                   .references = references_,
                                   .desk = trial_desk_,
                                   .log = log_,
                                   .plan = plan_,
                                   .instance = instance(),
                                   .seed = options_.seed,
                                   .waiter = waiter(),
                                   .like = trial_task({})};
    return Recheck{setting}.run(config);
}

std::vector<Artefact> RealBench::artefacts(const Config& config) {
    const BinariesResult result = store_.get(instance().sources(config), arch());
    return result.binaries ? result.binaries->artefacts : std::vector<Artefact>{};
}

/// Endings of which a GPU tells no more than that they happened.
std::string RealBench::explain(const Config& config, const Outcome& outcome) {
    constexpr std::array told_badly{Ending::crashed, Ending::timed_out, Ending::out_of_bounds, Ending::invalid_access};
    if (std::ranges::find(told_badly, outcome.ending) == told_badly.end()) return {};
    return emulator_.explain(device(), instance(), config);
}

BenchUse RealBench::use() const {
    const std::lock_guard lock{mutex_};
    return {.compile_s = store_.pool().busy_s() - before_.compile_s,
            .check_s = check_s_,
            .time_s = time_s_,
            .compile_workers = store_.pool().workers(),
            .gpu_idle_share = meter_.idle_share(),
            .workers_replaced = lane_.replaced() + store_.pool().replaced() - before_.workers_replaced,
            .stages = log_.stages()};
}

/// A problem's own use begins.
void RealBench::begin_use() {
    const std::lock_guard lock{mutex_};
    before_ = {.compile_s = store_.pool().busy_s(), .workers_replaced = lane_.replaced() + store_.pool().replaced()};
    meter_ = {};
    check_s_ = time_s_ = 0;
}

}  // namespace

std::unique_ptr<WorkerBench> make_worker_bench(const WorkerOptions& options) {
    if (emulated_device(options.device)) return make_emulated_bench(options);
    return std::make_unique<RealBench>(options);
}

std::vector<DeviceIdentity> list_devices(const WorkerOptions& options) {
    return devices_from_worker(find_worker(options.worker));
}

}  // namespace autotune
