#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <set>

#include "autotune/error.h"
#include "cache/dispatch/ladder.h"
#include "cache/store/location.h"
#include "cache/store/miss_list.h"
#include "tools/bench_source.h"
#include "tools/format.h"
#include "tools/interrupt.h"
#include "tools/json_events.h"
#include "tools/run_keeper.h"
#include "tools/search.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tools/suggestion.h"
#include "tools/tune_report.h"
#include "tuner/strategies/guided.h"

namespace autotune {
namespace {

constexpr double default_budget_s = 60;
/// Configs of near problems and other GPUs that are tried first: as many as an informed search begins with.
constexpr std::size_t records_first = first_of_known;
/// A config that has been tried for longer is named, so that a hang does not look like a crash.
constexpr double named_after_s = 5;

using Clock = std::chrono::steady_clock;

/// Watches one search: console, JSON and database hang on its events.
class Watch {
public:
    Watch(const Instance& instance, const DeviceIdentity& device, const Budget& budget, Console& console,
          RunKeeper& keeper)
        : instance_{instance}, device_{device}, budget_{budget}, console_{console}, keeper_{keeper} {}

    TuneEvents events() {
        return {.prepared = [this](const Preparation& p, const Space& s) { prepared(p, s); },
                .predicted = [this](const PriorUse& p) { console_.line(prior_line(p, device_)); },
                .trial = [this](const Trial& t) { trial(t); },
                .explained = [this](const Trial& t) { explained(t); },
                .idle = [this](std::size_t in_flight, double elapsed_s) { idle(in_flight, elapsed_s); },
                .stop_requested = [] { return interrupted() != 0; }};
    }

private:
    void prepared(const Preparation& preparation, const Space& space) {
        preparation_ = preparation;
        size_ = space.size();
        default_ = space.config(space.default_number());
        console_.line(problem_line(instance_, space, preparation));
        if (console_.json()) console_.json_line(json_prepared(instance_, device_, space, preparation));
        progress_ = {.op = instance_.op().name, .total = budget_.trials ? std::min(*budget_.trials, size_) : size_};
    }

    void trial(const Trial& trial) {
        if (!trial.resumed) keep(trial);
        if (console_.json()) console_.json_line(json_trial(instance_, trial));
        const bool of_default = trial.config == default_;
        if (trial.outcome.ok() && of_default) default_us_ = trial.outcome.time_us;
        last_trial_ = Clock::now();
        progress_.tried = trial.ordinal;
        if (!trial.outcome.ok() && trial.outcome.ending != Ending::dropped) ++progress_.failed;
        if (!trial.new_best) return console_.trial_line(trial_line(trial));
        progress_.best_us = trial.outcome.time_us;
        progress_.speedup = default_us_ / trial.outcome.time_us;
        if (!trial.resumed) console_.line(new_best_line(instance_, trial, default_us_, of_default));
    }

    /// In place of the outcome as it ended.
    void explained(const Trial& trial) {
        keep(trial);
        if (console_.json()) console_.json_line(json_explained(instance_, trial));
        console_.trial_line(trial_line(trial));
    }

    void keep(const Trial& trial) {
        keeper_.keep(trial.config, trial.outcome);
        // For the test that kills a search after its n-th commit.
        static const char* const limit = std::getenv("AUTOTUNE_TEST_KILL_AFTER");
        if (limit && ++commits_ == std::strtoul(limit, nullptr, 10)) std::raise(SIGKILL);
    }

    void idle(std::size_t in_flight, double elapsed_s) {
        progress_.in_flight = in_flight;
        const double by_time = budget_.seconds ? elapsed_s / *budget_.seconds : 0;
        const double by_count =
            progress_.total ? static_cast<double>(progress_.tried) / static_cast<double>(progress_.total) : 0;
        progress_.share_done = std::max(by_time, by_count);
        if (progress_.tried >= 5 && progress_.share_done > 0) {
            const double left = elapsed_s * (1 - progress_.share_done) / progress_.share_done;
            progress_.eta_s = std::min(progress_.eta_s.value_or(left), left);
        }
        const double waited = std::chrono::duration<double>(Clock::now() - last_trial_).count();
        progress_.running = waited > named_after_s ? fmt::format("for {}", format_duration(waited)) : std::string{};
        console_.status(progress_);
    }

    const Instance& instance_;
    const DeviceIdentity& device_;
    const Budget& budget_;
    Console& console_;
    RunKeeper& keeper_;
    Preparation preparation_;
    Progress progress_;
    std::size_t size_ = 0, commits_ = 0;
    Config default_;
    double default_us_ = 0;  ///< 0: it was not timed, or not yet
    Clock::time_point last_trial_ = Clock::now();
};

class TuneCommand {
public:
    TuneCommand(const Request& request, Console& console, const BenchSource& source)
        : request_{request},
          console_{console},
          source_{source},
          session_{request, console},
          store_{session_.open_store(Store::Mode::write)} {
        if (!request.budget.seconds && !request.budget.trials)
            budget_.seconds = default_budget_s;
        else
            budget_ = request.budget;
        static_cast<void>(strategy_named(request.strategy));  // a word that is none ends it before anything is prepared
    }

    int run() {
        if (request_.from_misses) return run_misses();
        const std::vector<AskedProblem> problems = session_.problems();
        for (const PresentGpu& gpu : source_.gpus(session_)) {
            console_.line(device_line(gpu.ordinal, gpu.identity, session_.nvrtc_version()));
            // Every problem is read before the first is tuned: a typo on the last line costs no hour.
            std::vector<Instance> instances;
            for (const AskedProblem& problem : problems)
                instances.push_back(Session::instance(problem, gpu.identity.limits));
            take_shard(instances, [](const Instance& instance) -> const Instance& { return instance; });
            std::unique_ptr<Bench> bench;
            for (const Instance& instance : instances) {
                if (!bench) bench = source_.bench(session_, gpu);
                tune_one(*bench, bench->sized(instance), gpu.identity);
                if (interrupted()) return not_stored_ ? exit_code(Error::Kind::store) : interrupted();
            }
        }
        return ending();
    }

private:
    int ending() const {
        if (not_stored_) return exit_code(Error::Kind::store);
        return found_nothing_ ? exit_code(Error::Kind::nothing_found) : 0;
    }

    int run_misses() {
        MissList list{store_.path().empty() ? Store::default_path() : store_.path()};
        std::size_t tuned = 0, waiting = 0;
        for (const PresentGpu& gpu : source_.gpus(session_)) {
            console_.line(device_line(gpu.ordinal, gpu.identity, session_.nvrtc_version()));
            std::unique_ptr<Bench> bench;
            std::vector<MissedProblem> problems = missed_problems(list, gpu.identity);
            waiting += problems.size();
            take_shard(problems, [](const MissedProblem& missed) -> const Instance& { return missed.instance; });
            for (const MissedProblem& missed : problems) {
                if (!bench) bench = source_.bench(session_, gpu);
                ++tuned;
                const bool stored = tune_one(*bench, bench->sized(missed.instance), gpu.identity);
                if (interrupted()) return not_stored_ ? exit_code(Error::Kind::store) : interrupted();
                if (stored) forget(list, missed.name);
            }
        }
        if (!tuned && !waiting)
            console_.note(fmt::format("no problem that an application missed here waits in '{}'", shown(list.path())));
        return ending();
    }

    /// Leaves those that this machine tunes, whatever any has stored.
    template <class Problem, class InstanceOf>
    void take_shard(std::vector<Problem>& problems, const InstanceOf& instance_of) {
        const Shard& shard = request_.shard;
        if (shard.count == 1 || problems.empty()) return;
        const std::size_t all = problems.size();
        std::erase_if(problems, [&](const Problem& problem) { return !shard.holds(instance_of(problem).key()); });
        console_.line(fmt::format("shard {}/{}: {} of {}", shard.number, shard.count, problems.size(),
                                  format_count(all, "problem", "problems")));
    }

    struct MissedProblem {
        Instance instance;
        std::string name;
    };

    /// Those of the GPU and of ops known here, what most asked for first. What is tuned by now or cannot be any more is
    /// dropped from the list.
    std::vector<MissedProblem> missed_problems(MissList& list, const DeviceIdentity& device) {
        std::vector<MissedProblem> problems;
        std::set<std::string> over, unknown;
        const MissList::Contents listed = list.contents();
        if (listed.left_out > 0)
            console_.warning(fmt::format("{} of '{}' left out, since they are no misses",
                                         format_count(listed.left_out, "line", "lines"), shown(list.path())));
        for (const StoredMiss& miss : listed.misses) {
            if (miss.device_fp != device.fp || (!request_.op.empty() && miss.op != request_.op)) continue;
            const Op* op = session_.ops().find_or_null(miss.op);
            if (!op) {
                unknown.insert(miss.op);
                continue;
            }
            try {
                const Instance instance =
                    Instance::make(*op, miss.fields, device.limits, {.strides = miss.strides, .align = miss.align});
                if (is_tuned(instance, device))
                    over.insert(miss.name());
                else
                    problems.push_back({instance, miss.name()});
            } catch (const Error& error) {
                console_.note(fmt::format("a missed problem of '{}' is none any more: {}", miss.op, error.what()));
                over.insert(miss.name());
            }
        }
        for (const std::string& op : unknown)
            console_.note(fmt::format("problems of '{}' wait until its op is given with --ops", op));
        if (!over.empty()) list.drop([&](const StoredMiss& miss) { return over.contains(miss.name()); });
        return problems;
    }

    bool is_tuned(const Instance& instance, const DeviceIdentity& device) const {
        const auto records =
            store_.records({.op = instance.op().name, .device_fp = device.fp, .problem_key = instance.key()},
                           session_.today({&instance.op()}));
        return std::ranges::any_of(records, &Record::fresh);
    }

    void forget(MissList& list, const std::string& name) {
        if (!list.drop([&](const StoredMiss& miss) { return miss.name() == name; }))
            console_.warning(
                fmt::format("'{}' could not be written, so what was tuned stays in it", shown(list.path())));
    }

    /// Whether its records are stored.
    bool tune_one(Bench& bench, const Instance& instance, const DeviceIdentity& device) {
        TuneOptions options{.strategy = request_.strategy,
                            .seed = request_.seed,
                            .budget = budget_,
                            .effort = request_.effort,
                            .prior = request_.prior};
        if (request_.prior != Prior::none) options.first = first_of_records(instance, device);
        const RunStart start = start_of(instance, device, options);
        if (!request_.fresh) options.known = store_.known_outcomes(start);
        RunKeeper keeper{store_, start};
        Watch watch{instance, device, budget_, console_, keeper};
        const TuneEvents events = watch.events();
        Tuning tuning;
        try {
            tuning = tune(bench, instance, options, events);
        } catch (const Error& error) {
            if (error.kind() != Error::Kind::nothing_found) throw;
            console_.end_status();
            console_.error(error.what(), error.help());
            found_nothing_ = true;
            return false;  // nothing runs of this problem: of others it may
        }
        console_.end_status();
        const RunSummary kept = keeper.finish(end_of(tuning, device));
        if (tuning.best && request_.db != "none" && !keep_binaries(store_, bench, instance, tuning.best->config))
            console_.warning(fmt::format("the winner's binary could not be kept in '{}', so an application compiles it",
                                         shown(store_.binaries_folder())));
        report(instance, device, tuning,
               {.path = request_.db == "none" ? "" : store_.path().string(),
                .records = kept.records + kept.predictions,
                .kept_better = kept.kept_better,
                .nowhere = request_.db == "none" ? "the database is in memory" : store_.why_not_kept(),
                .lost = keeper.trouble() ? keeper.trouble()->what() : "",
                .same_flags = same_flags(request_)});
        say_what_was_lost(keeper);
        return tuning.best && !tuning.interrupted && !keeper.trouble();
    }

    /// What a dispatcher would launch here, the best first. Only an order comes of it, so nothing that is wrong with
    /// the database is lost or said here.
    std::vector<Config> first_of_records(const Instance& instance, const DeviceIdentity& device) {
        std::vector<Config> first;
        const LayeredStore layer{.store = &store_, .layer = Layer::user};
        const OpKnowledge known = read_knowledge({&layer, 1}, instance.op(), device, {});
        for (const LadderStep& step : ladder(instance, known, records_first)) {
            if (!step.refused.empty() || step.rung >= Rung::default_config || first.size() == records_first) continue;
            if (std::ranges::find(first, step.config) == first.end()) first.push_back(step.config);
        }
        return first;
    }

    void say_what_was_lost(const RunKeeper& keeper) {
        // That the database is in memory only was said when it was opened.
        if (request_.db != "none" && store_.path().empty()) not_stored_ = true;
        if (const std::optional<Error>& trouble = keeper.trouble()) {
            not_stored_ = true;
            console_.error(trouble->what(), trouble->help());
        } else if (keeper.lost())
            console_.warning(fmt::format("{} of this run are not stored, so a next run tries them again: {}",
                                         format_count(keeper.lost(), "outcome", "outcomes"), keeper.lost_why()));
    }

    void say_interrupted(std::size_t tried) {
        console_.error(tried == 0 ? "interrupted before anything was tried"
                                  : fmt::format("interrupted, and none of the {} tried gave a correct result",
                                                format_count(tried, "config", "configs")));
    }

    void report(const Instance& instance, const DeviceIdentity& device, const Tuning& tuning, const Stored& stored) {
        if (console_.json()) console_.json_line(json_summary(instance, device, tuning, stored));
        if (tuning.best) return console_.result("\n" + summary(instance, device, tuning, stored));
        if (tuning.interrupted) return say_interrupted(tuning.tried + tuning.resumed);
        found_nothing_ = true;
        const auto slow = tuning.counts.find(Ending::not_emulated);
        const bool no_times = slow != tuning.counts.end() && slow->second == tuning.tried + tuning.resumed;
        console_.error(fmt::format(
            "none of the {} configs of '{}' that were tried {}", tuning.tried + tuning.resumed, instance.op().name,
            no_times ? "could be emulated: a smaller problem is a quicker one" : "gave a correct result"));
        console_.line(failure_summary(instance, tuning, stored));
        if (stored.lost.empty() && !stored.path.empty() && !no_times)
            console_.note(
                fmt::format("{} are stored; without --fresh the next run skips them until the op's files "
                            "change",
                            format_count(tuning.tried + tuning.resumed, "outcome", "outcomes")));
    }

    const Request& request_;
    Console& console_;
    const BenchSource& source_;
    Session session_;
    Store store_;
    Budget budget_;
    bool found_nothing_ = false, not_stored_ = false;
};

}  // namespace

int tune_with(const Request& request, Console& console, const BenchSource& source) {
    return TuneCommand{request, console, source}.run();
}

int run_tune(const Request& request, Console& console) { return tune_with(request, console, real_benches()); }

}  // namespace autotune
