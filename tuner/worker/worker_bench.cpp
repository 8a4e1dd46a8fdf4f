#include "tuner/worker/worker_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <random>

#include "autotune/error.h"
#include "device/identity.h"
#include "tuner/model/space.h"
#include "tuner/statistics.h"
#include "tuner/worker/compiled_sources.h"
#include "tuner/worker/gates.h"
#include "tuner/worker/json_types.h"
#include "tuner/worker/memory_need.h"
#include "tuner/worker/ragged.h"
#include "tuner/worker/reference_desk.h"
#include "tuner/worker/run_lane.h"

namespace autotune {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), half, values.end());
    return *half;
}

/// What an effort means for one trial, one round and the re-check.
struct EffortPlan {
    int samples;
    double at_least_us;    ///< of one sample
    double most_ms;        ///< of all samples of a long candidate
    double drop_factor;    ///< over the best so far
    bool twice;            ///< a second run must give the same bits
    double round_us;       ///< of one sample in final rounds
    double rounds_us;      ///< device time after which they end, when each finalist has the fewest samples that tell
    double warm_up_s;      ///< before them
    int seeds;             ///< other inputs that the winner meets
    double most_work;      ///< of a ragged problem, relative to the problem
    std::size_t problems;  ///< ragged ones at most
};

/// Fewer rounds have no interval at 95 % that is narrower than all samples.
constexpr int fewest_rounds = 7;

EffortPlan plan_for(Effort effort) {
    switch (effort) {
        case Effort::quick:
            return {3, 100, 6, 1.2, false, 500, 1e5, 0.02, 1, 0.6, 6};
        case Effort::normal:
            return {5, 300, 8, 1.3, true, 2000, 3e5, 0.05, 2, 1.1, 24};
        case Effort::full:
            return {9, 1000, 100, 2.0, true, 4000, 60e6, 0.2, 4, 2.5, 64};
    }
    return plan_for(Effort::normal);
}

std::filesystem::path usual_cache_dir() {
    if (const char* given = std::getenv("AUTOTUNE_CACHE_DIR"); given && *given) return given;
    if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) return std::filesystem::path{xdg} / "autotune";
    if (const char* home = std::getenv("HOME"); home && *home) return std::filesystem::path{home} / ".cache/autotune";
    return "/tmp/autotune-cache";
}

struct Trial {
    Config config;
    Outcome outcome;
    bool done = false, cancelled = false;   ///< guarded by the bench's mutex
    std::shared_ptr<const Error> obstacle;  ///< what ended it is no fault of the config's, and ends the run
};

/// How long candidates waited for the device in vain.
class IdleMeter {
public:
    void begin_waiting() {
        if (outstanding_++ == 0) since_ = Clock::now();
    }
    void end_waiting() {
        if (--outstanding_ == 0) waited_s_ += seconds_since(since_);
    }
    void add_busy(double seconds) { busy_s_ += seconds; }
    double idle_share() const {
        const double waited = waited_s_ + (outstanding_ > 0 ? seconds_since(since_) : 0);
        return waited > 0 ? std::clamp(1 - busy_s_ / waited, 0.0, 1.0) : 0;
    }

private:
    int outstanding_ = 0;
    Clock::time_point since_{};
    double waited_s_ = 0, busy_s_ = 0;
};

class RealBench final : public WorkerBench {
public:
    explicit RealBench(const WorkerOptions& options)
        : options_{with_paths(options)},
          plan_{plan_for(options.effort)},
          patience_{
              .limit_s = options.trial_limit_s, .least_s = std::min(2.0, options.trial_limit_s), .times_expected = 10},
          lane_{options_.worker, options.gpu, log_},
          store_{{.worker = options_.worker, .workers = options.compile_workers, .limit_s = options.compile_limit_s},
                 options.keep_artefacts ? std::numeric_limits<std::size_t>::max() : 256},
          desk_{options_.worker, options_.cache_dir / "host", lane_, store_, log_} {}

    ~RealBench() override {
        {
            const std::lock_guard lock{mutex_};
            for (const auto& trial : trials_) trial->cancelled = true;
        }
        lane_.thread().post([this] { lane_.abandon(); });  // its device closes while the others are ended
    }

    const DeviceIdentity& device() override { return lane_.device(); }

    Instance sized(const Instance& instance) override { return desk_.sized(instance, options_.seed); }
    Preparation prepare(const Instance& instance) override;
    std::size_t capacity() const override { return store_.pool().workers() + 4; }
    void submit(const Config& config) override;
    Outcome next(const std::function<void()>& idle) override;
    void cancel() override;
    void best_so_far(double time_us) override { note_best(time_us); }
    void best_is_now(double time_us) override { best_us_ = time_us; }
    std::vector<Outcome> rounds(std::span<const Config> finalists, int rounds) override;
    Verification verify(const Config& config) override;
    std::vector<Artefact> artefacts(const Config& config) override;
    BenchUse use() const override;

private:
    static WorkerOptions with_paths(WorkerOptions options) {
        options.worker = find_worker(options.worker);
        if (options.cache_dir.empty()) options.cache_dir = usual_cache_dir();
        return options;
    }

    const Instance& instance() const {
        if (!instance_) throw Error{Error::Kind::internal, "no problem was prepared"};
        return *instance_;
    }
    std::string arch() const { return arch_name(instance_->limits().cc); }

    // What overlaps with the opening of the device.
    void compile_ahead();
    void refuse_what_cannot_fit();

    // One trial, from its binaries to its outcome.
    void take_binaries(const std::shared_ptr<Trial>& trial, BinariesResult result);
    void enqueue(std::function<void()> job);
    void try_out(const std::shared_ptr<Trial>& trial, const TrialTask& task);
    void finish(const std::shared_ptr<Trial>& trial, Outcome outcome);
    Outcome ask_trial(const TrialTask& task);
    void stop(const std::shared_ptr<Trial>& trial, const Error& error);
    void hold_main(int slot);
    void note_best(double time_us);
    LaunchSequence sequence_of(const Instance& problem, const Config& config, const Binaries& binaries) const;
    CandidateTask candidate_of(const Instance& problem, const Config& config, std::shared_ptr<const Binaries> binaries,
                               int slot) const;
    TrialTask trial_task(CandidateTask candidate);

    // Final rounds and the re-check.
    struct Finalist {
        std::size_t number = 0;
        CandidateTask task;
        double about_us = 0;  ///< 0: not known yet
        std::vector<double> clocks;
    };
    std::vector<Finalist> load_finalists(std::span<const Config> finalists, std::vector<Outcome>& outcomes);
    bool run_rounds(std::span<const Config> configs, std::vector<Finalist>& finalists, int rounds,
                    std::vector<Outcome>& outcomes);
    bool load(const Finalist& finalist, Outcome& outcome);
    DeviceState take_rounds(std::vector<Finalist>& finalists, int rounds, std::vector<Outcome>& outcomes,
                            std::size_t& running);
    void warm_up(std::vector<Finalist>& finalists, Clock::time_point since, std::size_t& running);
    void look_at_device(DeviceState& state);
    void take_sample(Finalist& finalist, bool watch, Outcome& outcome, DeviceState& state);
    void sum_up(std::vector<Finalist>& finalists, const DeviceState& state, std::vector<Outcome>& outcomes);
    struct Recheck {
        Instance problem;
        std::uint64_t seed;
    };
    Recheck same_problem(const Config& config, int turn);
    std::vector<Recheck> rechecks(const Config& config);
    std::optional<Outcome> check_on(const Instance& problem, const Config& config,
                                    std::shared_ptr<const HeldProblem> held, Verification& verification);

    const WorkerOptions options_;
    const EffortPlan plan_;
    const Patience patience_;
    std::optional<Instance> instance_;
    std::shared_ptr<const HeldProblem> main_;  ///< of slot 0
    std::optional<double> bandwidth_gbs_;
    double floor_us_ = 0;
    std::atomic<double> best_us_ = 0;
    std::atomic<bool> graph_ = true;
    int rounds_begun_ = 0;
    std::map<std::string, double> known_us_;  ///< of timed trials, by config; the lane's thread's own

    mutable std::mutex mutex_;
    std::condition_variable finished_;
    std::deque<std::shared_ptr<Trial>> trials_;     ///< guarded, as what follows
    std::vector<std::function<void()>> held_back_;  ///< until the first trial, the default's, is done
    std::shared_ptr<Trial> first_;
    bool first_done_ = false;
    IdleMeter meter_;
    double check_s_ = 0, time_s_ = 0;

    StageLog log_;
    // In this order: the store's thread posts to the lane, and the desk uses both.
    RunLane lane_;
    CompiledSources store_;
    ReferenceDesk desk_;
};

// ---- Preparing a problem.

Preparation RealBench::prepare(const Instance& instance) {
    cancel();
    instance_ = instance;
    best_us_ = 0;
    graph_ = true;
    lane_.thread().post([this] { known_us_.clear(); });
    first_ = nullptr;
    first_done_ = false;
    refuse_what_cannot_fit();
    compile_ahead();
    auto ready = desk_.begin(instance, options_.seed, 0, true);
    if (!bandwidth_gbs_)
        bandwidth_gbs_ = lane_.thread().run([this] {
            const StageLog::Span span{log_, "copy bandwidth"};
            return lane_.ask_surely(Message::bandwidth, nlohmann::json::object()).json().at("gbs").get<double>();
        });
    main_ = ready.get();
    const bool warm = lane_.thread().run([&] { return lane_.hold(main_); });
    if (const std::string trouble = store_.pool().trouble(); !trouble.empty())
        throw Error{Error::Kind::compile, fmt::format("no compiler: {}", trouble), "autotune doctor"};

    std::size_t smallest = 8;
    for (const BoundTensor& tensor : instance.tensors())
        if (tensor.present && tensor.role == Role::in && info(tensor.dtype).floating)
            smallest = std::min(smallest, size_of(tensor.dtype));
    floor_us_ = floor_us(instance.flops(), instance.bytes(), device(), *bandwidth_gbs_, smallest);
    return {.reference = main_->words,
            .method = "graph",
            .copy_bandwidth_gbs = *bandwidth_gbs_,
            .floor_us = floor_us_,
            .warm = warm};
}

/// Before a reference is computed that the host has no memory for either.
void RealBench::refuse_what_cannot_fit() {
    const MemoryNeed need = memory_need(tensor_tasks(instance(), options_.seed));
    const auto have = static_cast<double>(instance().limits().memory_bytes);
    if (have <= 0 || need.total() <= have) return;
    throw Error{Error::Kind::device,
                fmt::format("'{}' {} {}, and this one has {}", instance().op().name, instance().problem().text(),
                            need.text(), memory_text(have)),
                fmt::format("autotune ops {}", instance().op().name)};
}

/// While the device is opened and the reference is made, compilers would stand idle: they begin with the default, the
/// reference, the other variants' defaults and, where the space is small, with all of it.
void RealBench::compile_ahead() {
    constexpr double small_space = 4096;
    constexpr std::size_t most = 64;
    try {
        store_.expect(instance().sources(instance().default_config()), arch(), true);
        desk_.expect(instance(), arch());
        double raw = 0;
        for (const Variant& variant : instance().op().variants) {
            double values = 1;
            for (const Parameter& parameter : variant.parameters)
                values *= static_cast<double>(parameter.values.size());
            raw += values;
            const std::optional<Config> config = instance().defaults_of(variant);
            if (config && !instance().objection(*config)) store_.expect(instance().sources(*config), arch());
        }
        if (raw > small_space) return;
        const Space space = Space::make(instance());
        if (space.size() > most) return;
        for (std::size_t i = 0; i < space.size(); ++i) store_.expect(instance().sources(space.config(i)), arch());
    } catch (const Error&) {  // whoever asks for it in earnest is told
    }
}

// ---- Trials.

void RealBench::submit(const Config& config) {
    auto trial = std::make_shared<Trial>(Trial{.config = config});
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
void RealBench::take_binaries(const std::shared_ptr<Trial>& trial, BinariesResult result) {
    if (result.obstacle) return stop(trial, *result.obstacle);
    if (!result.binaries) return finish(trial, std::move(result.failure));
    try {
        const CandidateTask candidate = candidate_of(instance(), trial->config, result.binaries, 0);
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
            held_back_.push_back(job);  // the default sets the method, and what others are measured against
    } catch (const std::exception& e) {
        finish(trial, {.ending = Ending::compile_failed, .reason = e.what()});
    }
}

LaunchSequence RealBench::sequence_of(const Instance& problem, const Config& config, const Binaries& binaries) const {
    if (!problem.needs_blocks_per_sm(config)) return problem.launches(config);
    // The grid depends on how many blocks fit, which does not depend on the grid.
    const int blocks = std::max(1, resources_of(binaries, problem.launches(config, 1), problem.limits()).blocks_per_sm);
    return problem.launches(config, blocks);
}

CandidateTask RealBench::candidate_of(const Instance& problem, const Config& config,
                                      std::shared_ptr<const Binaries> binaries, int slot) const {
    const Variant* variant = problem.op().variant(config.variant);
    CandidateTask task{.slot = slot,
                       .sources = binaries->sources,
                       .artefacts = binaries->artefacts,
                       .sequence = sequence_of(problem, config, *binaries),
                       .deterministic = variant->deterministic,
                       .idempotent = variant->idempotent};
    for (Artefact& artefact : task.artefacts) {
        artefact.log.clear();
        // Code for this very device needs no PTX beside it, and decoding it is time in which the device waits.
        if (!artefact.cubin.empty() && artefact.arch.starts_with(arch())) artefact.ptx.clear();
    }
    return task;
}

TrialTask RealBench::trial_task(CandidateTask candidate) {
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
void RealBench::try_out(const std::shared_ptr<Trial>& trial, const TrialTask& task) {
    {
        const std::lock_guard lock{mutex_};
        if (trial->cancelled) return;
    }
    const auto start = Clock::now();
    Outcome outcome;
    try {
        outcome = ask_trial(task);
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

/// Asks the run worker; one that is lost is that candidate's outcome, and replaced for the next.
Outcome RealBench::ask_trial(const TrialTask& task) {
    try {
        hold_main(task.candidate.slot);
        const nlohmann::json body = lane_.ask(Message::trial, task, patience_).json();
        auto outcome = body.at("outcome").get<Outcome>();
        if (std::string text = lane_.take_text(); !outcome.ok()) outcome.log = std::move(text);
        if (body.at("lost").get<bool>()) lane_.retire();
        return outcome;
    } catch (const WorkerLost& e) {
        return {.ending = e.ending(), .reason = e.what(), .log = e.log()};
    } catch (const nlohmann::json::exception& e) {
        lane_.retire();
        return {.ending = Ending::crashed, .reason = fmt::format("its process sent nonsense: {}", e.what())};
    } catch (const FrameError& e) {
        lane_.retire();
        return {.ending = Ending::crashed, .reason = e.what()};
    }
}

void RealBench::stop(const std::shared_ptr<Trial>& trial, const Error& error) {
    {
        const std::lock_guard lock{mutex_};
        trial->obstacle = std::make_shared<const Error>(error);
    }
    finish(trial, {.ending = Ending::crashed, .reason = error.what()});
}

/// The re-check of a large problem may have needed the room.
void RealBench::hold_main(int slot) {
    if (slot == 0 && !lane_.holds(0)) lane_.hold(main_);
}

void RealBench::finish(const std::shared_ptr<Trial>& trial, Outcome outcome) {
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

Outcome RealBench::next(const std::function<void()>& idle) {
    std::unique_lock lock{mutex_};
    if (trials_.empty()) throw Error{Error::Kind::internal, "no trial was submitted"};
    const std::shared_ptr<Trial> trial = trials_.front();
    while (!finished_.wait_for(lock, std::chrono::milliseconds{100}, [&] { return trial->done; })) {
        if (!idle) continue;
        lock.unlock();
        idle();
        lock.lock();
    }
    trials_.pop_front();
    throw_obstacle(trial->obstacle);
    return trial->outcome;
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
    lane_.thread().run([] {});  // the one that runs is let finish
}

void RealBench::note_best(double time_us) {
    double best = best_us_;
    while ((best == 0 || time_us < best) && !best_us_.compare_exchange_weak(best, time_us)) {
    }
}

// ---- Final rounds.

std::vector<Outcome> RealBench::rounds(std::span<const Config> configs, int rounds) {
    std::vector<Outcome> outcomes(configs.size());
    // A finalist that ends the worker is left out, and the others begin again.
    for (std::size_t attempt = 0; attempt <= configs.size(); ++attempt) {
        std::vector<Finalist> finalists = load_finalists(configs, outcomes);
        if (finalists.empty() || run_rounds(configs, finalists, rounds, outcomes)) break;
    }
    return outcomes;
}

/// Loads those that have not failed yet.
std::vector<RealBench::Finalist> RealBench::load_finalists(std::span<const Config> configs,
                                                           std::vector<Outcome>& outcomes) {
    std::vector<Finalist> finalists;
    std::vector<std::future<BinariesResult>> binaries;
    for (const Config& config : configs) {
        auto promise = std::make_shared<std::promise<BinariesResult>>();
        binaries.push_back(promise->get_future());
        store_.want(
            instance().sources(config), arch(),
            [promise](BinariesResult result) { promise->set_value(std::move(result)); }, true);
    }
    for (std::size_t i = 0; i < configs.size(); ++i) {
        const BinariesResult result = binaries[i].get();
        if (!outcomes[i].ok()) continue;
        throw_obstacle(result.obstacle);
        if (!result.binaries) {
            outcomes[i] = result.failure;
            continue;
        }
        Finalist finalist{.number = i, .task = candidate_of(instance(), configs[i], result.binaries, 0)};
        finalist.task.id = static_cast<int>(i);
        const Resources used = resources_of(*result.binaries, finalist.task.sequence, instance().limits());
        outcomes[i].compile_ms = result.compile_ms;
        outcomes[i].registers = used.registers;
        outcomes[i].spill_bytes = used.spill_bytes;
        outcomes[i].shared_bytes = used.shared_bytes;
        outcomes[i].blocks_per_sm = used.blocks_per_sm;
        finalists.push_back(std::move(finalist));
    }
    return finalists;
}

/// Whether more rounds would tell nothing new: each finalist is known to be slower than the fastest.
bool all_told_apart(const std::vector<Outcome>& outcomes) {
    const std::vector<double>* best = nullptr;
    for (const Outcome& outcome : outcomes)
        if (outcome.ok() && (!best || median(outcome.samples_us) < median(*best))) best = &outcome.samples_us;
    return best && std::ranges::all_of(outcomes, [&](const Outcome& outcome) {
               return !outcome.ok() || &outcome.samples_us == best ||
                      paired_ratio(outcome.samples_us, *best).low > 1 + same_within;
           });
}

/// False: the worker was lost; its culprit's outcome says so.
bool RealBench::run_rounds(std::span<const Config> configs, std::vector<Finalist>& finalists, int rounds,
                           std::vector<Outcome>& outcomes) {
    return lane_.thread().run([&] {
        std::size_t running = 0;
        try {
            const auto start = Clock::now();
            hold_main(0);
            for (Finalist& finalist : finalists)
                if (const auto known = known_us_.find(configs[finalist.number].text()); known != known_us_.end())
                    finalist.about_us = known->second;
            for (; running < finalists.size(); ++running)
                if (!load(finalists[running], outcomes[finalists[running].number])) return false;
            for (const Finalist& finalist : finalists) outcomes[finalist.number].samples_us.clear();
            warm_up(finalists, start, running);
            const auto begin = Clock::now();
            log_.add(fmt::format("{} finalists loaded", finalists.size()), start, begin);
            const DeviceState state = take_rounds(finalists, rounds, outcomes, running);
            log_.add(fmt::format("{} final rounds", outcomes[finalists.front().number].samples_us.size()), begin,
                     Clock::now());
            lane_.ask(Message::unload, nlohmann::json::object(), patience_);
            sum_up(finalists, state, outcomes);
            return true;
        } catch (const WorkerLost& e) {
            outcomes[finalists[running].number] = {.ending = e.ending(), .reason = e.what(), .log = e.log()};
            lane_.retire();
            return false;
        }
    });
}

/// False: there is no room for it beside those before, which are unloaded; its outcome says so.
bool RealBench::load(const Finalist& finalist, Outcome& outcome) {
    try {
        lane_.ask(Message::load, finalist.task, patience_);
        return true;
    } catch (const Error& e) {
        if (e.kind() != Error::Kind::device) throw;
        outcome = {.ending = Ending::out_of_memory, .reason = e.what()};
    }
    lane_.ask(Message::unload, nlohmann::json::object(), patience_);
    return false;
}

/// Samples of each finalist in turn, in an order of its own each round. running: whom a loss is laid to
DeviceState RealBench::take_rounds(std::vector<Finalist>& finalists, int rounds, std::vector<Outcome>& outcomes,
                                   std::size_t& running) {
    std::mt19937_64 random{options_.seed + static_cast<std::uint64_t>(rounds_begun_++)};
    std::vector<std::size_t> order(finalists.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    DeviceState state;
    double device_us = 0;
    for (int round = 0; round < rounds; ++round) {
        std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t index : order) {
            running = index;
            const bool watch = round == 0 && index == order.back();
            take_sample(finalists[index], watch, outcomes[finalists[index].number], state);
            device_us += std::max(finalists[index].about_us, plan_.round_us);
        }
        if (round + 1 >= fewest_rounds && (device_us > plan_.rounds_us || all_told_apart(outcomes))) break;
    }
    look_at_device(state);
    return state;
}

void RealBench::take_sample(Finalist& finalist, bool watch, Outcome& outcome, DeviceState& state) {
    constexpr double long_us = 2000;  // nothing that a launch before it warms up shows in it
    const RoundTask task{.order = {finalist.task.id},
                         .about_us = {finalist.about_us},
                         .plan = {.warmup = finalist.about_us > long_us ? 0 : 1,
                                  .samples = 1,
                                  .at_least_us = plan_.round_us,
                                  .graph = graph_},
                         .watch = watch};
    const auto result = lane_.ask(Message::round, task, patience_).json().get<RoundSamples>();
    if (!result.failure.empty()) throw WorkerLost{Ending::crashed, result.failure, lane_.take_text()};
    for (const Samples& samples : result.samples) {
        if (!samples.time_us.empty()) finalist.about_us = samples.time_us.back();
        outcome.samples_us.insert(outcome.samples_us.end(), samples.time_us.begin(), samples.time_us.end());
        outcome.method = samples.graph ? "graph" : "events";
        outcome.predicted = samples.predicted;
        if (samples.clock_mhz > 0) finalist.clocks.push_back(samples.clock_mhz);
    }
    state.other_processes = std::max(state.other_processes, result.state.other_processes);
    state.throttled = state.throttled || result.state.throttled;
}

/// What disturbs the device now.
void RealBench::look_at_device(DeviceState& state) {
    const auto seen = lane_.ask(Message::round, RoundTask{.watch = true}, patience_).json().get<RoundSamples>().state;
    state.other_processes = std::max(state.other_processes, seen.other_processes);
    state.throttled = state.throttled || seen.throttled;
}

/// The clock settles before the first round counts; loading the finalists, which runs each, is part of that.
/// running: whom a loss is laid to
void RealBench::warm_up(std::vector<Finalist>& finalists, Clock::time_point since, std::size_t& running) {
    const bool known = std::ranges::all_of(finalists, [](const Finalist& one) { return one.about_us > 0; });
    if (known && seconds_since(since) >= plan_.warm_up_s) return;
    do
        for (running = 0; running < finalists.size(); ++running) {
            Outcome ignored;
            DeviceState nobody;
            take_sample(finalists[running], false, ignored, nobody);
        }
    while (seconds_since(since) < plan_.warm_up_s);
}

/// Medians, and whether something disturbed them: other processes, a slowdown, or clocks that differ by more than 2 %.
void RealBench::sum_up(std::vector<Finalist>& finalists, const DeviceState& state, std::vector<Outcome>& outcomes) {
    constexpr double clocks_differ = 1.02;
    double slowest = 0, fastest = 0;
    for (Finalist& finalist : finalists) {
        Outcome& outcome = outcomes[finalist.number];
        outcome.time_us = median(outcome.samples_us);
        outcome.clock_mhz = median(finalist.clocks);
        if (outcome.clock_mhz == 0) continue;
        slowest = slowest == 0 ? outcome.clock_mhz : std::min(slowest, outcome.clock_mhz);
        fastest = std::max(fastest, outcome.clock_mhz);
    }
    const bool disturbed =
        state.other_processes > 0 || state.throttled || (slowest > 0 && fastest > clocks_differ * slowest);
    for (const Finalist& finalist : finalists) outcomes[finalist.number].tainted = disturbed;
}

// ---- The re-check.

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

/// The problem with its scalars at the next of their check values, and with the dims of that seed's inputs; as it is
/// where the config cannot run on that.
RealBench::Recheck RealBench::same_problem(const Config& config, int turn) {
    const std::uint64_t seed = options_.seed + 1 + static_cast<std::uint64_t>(turn);
    try {
        const Instance same = desk_.sized(Instance::make(instance().op(), given_fields(instance()), instance().limits(),
                                                         binding_for(instance(), turn)),
                                          seed);
        if (!same.objection(config)) return {same, seed};
    } catch (const Error&) {
    }
    const bool sized = std::ranges::any_of(instance().op().fields, &Field::from_inputs);
    return {instance(), sized ? options_.seed : seed};  // a generator's dims are those of its seed
}

std::vector<RealBench::Recheck> RealBench::rechecks(const Config& config) {
    std::vector<Recheck> all;
    for (int turn = 0; turn < plan_.seeds; ++turn) all.push_back(same_problem(config, turn));
    const std::uint64_t seed = options_.seed + 101;
    for (const Instance& near : ragged_problems(instance(), config, plan_.most_work)) {
        if (all.size() >= plan_.problems + static_cast<std::size_t>(plan_.seeds)) break;
        try {
            Instance problem = desk_.sized(near, seed);
            if (!problem.objection(config)) all.push_back({std::move(problem), seed});
        } catch (const Error&) {  // its generator makes none of this size
        }
    }
    return all;
}

Verification RealBench::verify(const Config& config) {
    constexpr int slot = 1;
    const std::vector<Recheck> problems = rechecks(config);
    Verification verification{.problems = 1 + static_cast<int>(problems.size()) - plan_.seeds, .seeds = plan_.seeds};
    for (const Recheck& one : problems) store_.expect(one.problem.sources(config), arch(), true);
    // References are made on the desk's thread while the device checks the problem before.
    std::deque<std::future<std::shared_ptr<const HeldProblem>>> ready;
    std::size_t begun = 0;
    for (std::size_t i = 0; i < problems.size() && !verification.failure; ++i) {
        for (; begun < problems.size() && ready.size() < 3; ++begun)
            ready.push_back(desk_.begin(problems[begun].problem, problems[begun].seed, slot, false));
        std::future<std::shared_ptr<const HeldProblem>> next = std::move(ready.front());
        ready.pop_front();
        try {
            verification.failure = check_on(problems[i].problem, config, next.get(), verification);
        } catch (const Error&) {
            if (i < static_cast<std::size_t>(plan_.seeds)) throw;
            --verification.problems;  // its reference or its memory fails: it says nothing about the config
        }
        if (verification.failure) verification.failed_on = problems[i].problem.problem().text();
    }
    for (auto& rest : ready) rest.wait();
    lane_.thread().run([&] {
        if (lane_.holds(slot)) lane_.drop(slot);
    });
    return verification;
}

std::optional<Outcome> RealBench::check_on(const Instance& problem, const Config& config,
                                           std::shared_ptr<const HeldProblem> held, Verification& verification) {
    const BinariesResult result = store_.get(problem.sources(config), arch());
    throw_obstacle(result.obstacle);
    if (!result.binaries) return result.failure;
    TrialTask task = trial_task(candidate_of(problem, config, result.binaries, held->task.slot));
    task.measure = false;
    task.twice = true;
    task.plan.drop_above_us = 0;
    const Outcome outcome = lane_.thread().run([&] {
        try {
            lane_.hold(held);
        } catch (const Error& e) {
            if (e.kind() != Error::Kind::device || !lane_.holds(0)) throw;
            lane_.drop(0);  // no room for both
            lane_.hold(held);
        }
        const StageLog::Span span{log_, "winner checked again"};
        return ask_trial(task);
    });
    verification.largest_error = std::max(verification.largest_error, outcome.max_error);
    if (outcome.ok()) return std::nullopt;
    if (outcome.ending == Ending::out_of_memory) throw Error{Error::Kind::device, outcome.reason};
    return outcome;
}

std::vector<Artefact> RealBench::artefacts(const Config& config) {
    const BinariesResult result = store_.get(instance().sources(config), arch());
    return result.binaries ? result.binaries->artefacts : std::vector<Artefact>{};
}

BenchUse RealBench::use() const {
    const std::lock_guard lock{mutex_};
    return {.compile_s = store_.pool().busy_s(),
            .check_s = check_s_,
            .time_s = time_s_,
            .compile_workers = store_.pool().workers(),
            .gpu_idle_share = meter_.idle_share(),
            .workers_replaced = lane_.replaced() + store_.pool().replaced(),
            .stages = log_.stages()};
}

}  // namespace

std::unique_ptr<WorkerBench> make_worker_bench(const WorkerOptions& options) {
    return std::make_unique<RealBench>(options);
}

std::vector<DeviceIdentity> list_devices(const WorkerOptions& options) {
    return devices_from_worker(find_worker(options.worker));
}

}  // namespace autotune
