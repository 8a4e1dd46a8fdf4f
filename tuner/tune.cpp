#include "tuner/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <set>
#include <utility>

#include "autotune/error.h"
#include "tuner/statistics.h"
#include "tuner/strategies/prior.h"

namespace autotune {
namespace {

using Clock = std::chrono::steady_clock;

/// Trials asked for and not told yet. A constant, not the machine's number of workers: so that a seed and a count
/// budget give the same sequence of trials on every machine.
constexpr std::size_t window = 32;
/// A run in which the first so many trials all fail has a cause that more trials do not cure.
constexpr std::size_t give_up_after = 200;
/// The share of a time budget that is kept for finals and the re-check of the winner.
constexpr double kept_for_finals = 0.1;
constexpr std::size_t most_finalists = 8;
/// Finalists are those within this of the best by their trial's own few samples.
constexpr double finalist_within = 1.05;
/// How often finals that were disturbed (clocks, other processes) are timed again before their result is kept, marked.
constexpr int patience = 2;
/// No failure is explained that was not begun to be by then.
constexpr double most_explaining_s = 5;

int rounds_for(Effort effort) {
    switch (effort) {
        case Effort::quick:
            return 7;
        case Effort::normal:
            return 15;
        case Effort::full:
            return 41;
    }
    return 15;
}

/// Throws Error{nothing_found} where nothing is valid, with what the defaults break.
Space space_of(Bench& bench, const Instance& instance) {
    Space space = bench.space(instance);
    if (space.size() > 0) return space;
    static_cast<void>(instance.default_config());
    throw Error{Error::Kind::nothing_found,
                fmt::format("no config of '{}' is valid for {}", instance.op().name, instance.problem().text())};
}

class Search {
public:
    Search(Bench& bench, const Instance& instance, const TuneOptions& options, const TuneEvents& events)
        : bench_{bench},
          options_{options},
          events_{events},
          space_{space_of(bench, instance)},
          strategy_{make_strategy()} {
        recall();
        if (options_.prior == Prior::model)
            draw_pool();
        else {
            lead();
            first_asked_ = strategy_->ask(room(default_begun_ ? 0 : 1));
        }
        expect_first(instance);
        tuning_.preparation = bench_.prepare(instance);
        tuning_.default_config = space_.config(space_.default_number());
        tuning_.space_size = space_.size();
        tuning_.raw_size = space_.raw_size();
        if (events_.prepared) events_.prepared(tuning_.preparation, space_);
        if (options_.prior == Prior::model) {
            consult_model();
            lead();
        }
    }

    Tuning run() {
        take_in_known();
        begin_default();
        while (collect_or_submit()) {
        }
        if (late()) tuning_.unfinished = in_flight_.size();
        forget_outstanding();
        // A finalist that fails, or a winner that fails its re-check, may have kept others out: then they come back.
        do retry_dropped();
        while (!finals() || !winner_stands());
        explain_failures();
        if (tuning_.prior) compare_with_prior();
        tuning_.use = bench_.use();
        tuning_.elapsed_s = elapsed_s();
        return std::move(tuning_);
    }

private:
    std::unique_ptr<Strategy> make_strategy() const {
        return strategy_named(options_.strategy).make(space_, options_.seed);
    }

    /// What an earlier run found out is told, not tried.
    void recall() {
        for (const auto& [config, outcome] : options_.known)
            if (const std::optional<std::size_t> number = space_.find(config)) {
                default_begun_ = default_begun_ || *number == space_.default_number();
                strategy_->tell(*number, outcome);
                known_.emplace_back(*number, &outcome);
            }
        tuning_.resumed = known_.size();
    }

    /// What others found to be fast comes first; the default and what is known need no second trial.
    void lead() {
        std::set<std::size_t> without{space_.default_number()};
        for (const auto& [number, outcome] : known_) without.insert(number);
        std::vector<Expectation> expected;
        for (const Config& config : options_.first)
            if (const std::optional<std::size_t> number = space_.find(config); number && without.insert(*number).second)
                expected.push_back({*number, static_cast<double>(expected.size() + 1)});
        tuning_.asked_first = expected.size();
        if (expected.empty()) return;
        const std::size_t all = expected.size();
        strategy_ = make_prior(std::move(strategy_), std::move(expected), all);
    }

    void take_in_known() {
        for (const auto& [number, outcome] : known_) take_in(number, *outcome, true);
    }

    /// While the bench prepares the problem, its compilers need not stand idle.
    void expect_first(const Instance& instance) {
        std::vector<Config> first;
        if (!default_begun_) first.push_back(space_.config(space_.default_number()));
        for (const std::size_t number : first_asked_) first.push_back(space_.config(number));
        for (std::size_t i = 0; i < std::min(window, pool_.size()); ++i) first.push_back(space_.config(pool_[i]));
        bench_.expect(instance, first);
    }

    /// What the model is asked about: a part of what is not known yet, and the default, to judge the model by.
    void draw_pool() {
        std::vector<std::size_t> without{space_.default_number()};
        for (const auto& [number, outcome] : known_) without.push_back(number);
        pool_ = sample_of(space_, without, prior_pool - 1, options_.seed);
        if (!default_begun_) pool_.insert(pool_.begin(), space_.default_number());
    }

    void consult_model() {
        std::vector<Config> configs;
        for (const std::size_t number : pool_) configs.push_back(space_.config(number));
        const double begun_s = elapsed_s();
        const double most_s =
            options_.budget.seconds ? *options_.budget.seconds * prior_share : std::numeric_limits<double>::infinity();
        const Predictions predictions = bench_.predict(configs, [&] {
            if (events_.idle) events_.idle(0, elapsed_s());
            return elapsed_s() - begun_s < most_s && !(events_.stop_requested && events_.stop_requested());
        });
        std::vector<Expectation> expected;
        for (std::size_t i = 0; i < pool_.size(); ++i) {
            if (!predictions.time_us[i] || !std::isfinite(*predictions.time_us[i])) continue;
            predicted_us_[pool_[i]] = *predictions.time_us[i];
            if (pool_[i] != space_.default_number()) expected.push_back({pool_[i], *predictions.time_us[i]});
        }
        tuning_.prior = {.model = predictions.model,
                         .asked = pool_.size(),
                         .predicted = predicted_us_.size(),
                         .first = std::min(prior_first, expected.size()),
                         .seconds = elapsed_s() - begun_s};
        strategy_ = make_prior(std::move(strategy_), std::move(expected), prior_first);
        if (events_.predicted) events_.predicted(*tuning_.prior);
    }

    /// Whether the model was any good here.
    void compare_with_prior() {
        std::vector<double> predicted_us, seen_us;
        const auto add = [&](std::size_t number, double time_us) {
            const auto found = predicted_us_.find(number);
            if (found == predicted_us_.end()) return;
            predicted_us.push_back(found->second);
            seen_us.push_back(time_us);
        };
        for (const auto& [time_us, number] : timed_) add(number, time_us);
        for (const auto& [number, least_us] : dropped_) add(number, least_us);
        tuning_.prior->compared = seen_us.size();
        tuning_.prior->rank_correlation = rank_correlation(predicted_us, seen_us);
    }

    void begin_default() {
        if (!default_begun_) submit(space_.default_number());
    }

    std::vector<std::size_t> ask() {
        std::vector<std::size_t> asked = std::exchange(first_asked_, {});
        if (!asked.empty()) return asked;
        asked = strategy_->ask(room(in_flight_.size()));
        if (!asked.empty()) note_promise(asked.size());
        return asked;
    }

    /// One step of the search: fill the window, then take in one outcome. False when the search is over.
    bool collect_or_submit() {
        if (stopping()) return false;
        // The strategy may ask for the default before it is told how its trial ended.
        for (const std::size_t number : ask())
            if (number != space_.default_number() || !default_begun_) submit(number);
        if (in_flight_.empty()) return false;
        const std::optional<std::pair<std::size_t, Outcome>> taken = take_outcome([this] { return !late(); });
        if (!taken) return false;
        const auto& [number, outcome] = *taken;
        ++tuning_.tried;
        strategy_->tell(number, outcome);
        take_in(number, outcome, false);
        return true;
    }

    /// Further trials cost as much as those before. When none of many is expected to gain, they are not worth it.
    void note_promise(std::size_t trials) {
        const std::optional<double> gain = strategy_->expected_gain();
        const double worth = worth_a_trial(options_.effort);
        calm_ = gain && *gain < worth ? calm_ + trials : 0;
        if (calm_ >= patience_trials)
            tuning_.stopped = fmt::format("of the last {} trials none was expected to gain {:g} %", calm_, 100 * worth);
    }

    /// nullopt: none ended while there was time.
    std::optional<std::pair<std::size_t, Outcome>> take_outcome(const std::function<bool()>& in_time) {
        std::optional<Outcome> outcome = bench_.next_while([&] {
            idle();
            return in_time();
        });
        if (!outcome) return std::nullopt;
        const std::size_t number = in_flight_.front();
        in_flight_.pop_front();
        return std::pair{number, std::move(*outcome)};
    }

    void forget_outstanding() {
        if (!in_flight_.empty()) bench_.cancel();
        in_flight_.clear();
    }

    std::size_t room(std::size_t outstanding) const {
        const std::size_t free = window - std::min(window, outstanding);
        if (!options_.budget.trials) return free;
        const std::size_t begun = tuning_.tried + outstanding;
        return std::min(free, *options_.budget.trials - std::min(*options_.budget.trials, begun));
    }

    bool stopping() {
        if (events_.stop_requested && events_.stop_requested()) tuning_.interrupted = true;
        const bool hopeless = tuning_.tried >= give_up_after && timed_.empty();
        return tuning_.interrupted || late() || hopeless || !tuning_.stopped.empty();
    }

    /// The default's trial is waited for, however little time there is: there is nothing to tell without it.
    bool late() const {
        return options_.budget.seconds && tuning_.tried + tuning_.resumed > 0 &&
               elapsed_s() >= *options_.budget.seconds * (1 - kept_for_finals);
    }

    void submit(std::size_t number) {
        default_begun_ = default_begun_ || number == space_.default_number();
        bench_.submit(space_.config(number));
        in_flight_.push_back(number);
    }

    void idle() const {
        if (events_.idle) events_.idle(in_flight_.size(), elapsed_s());
    }

    void take_in(std::size_t number, const Outcome& outcome, bool resumed) {
        tried_[number] = outcome.ending;
        ++tuning_.counts[outcome.ending];
        if (outcome.ending == Ending::dropped) dropped_[number] = outcome.time_us;
        const bool best = outcome.ok() && (timed_.empty() || outcome.time_us < timed_.begin()->first);
        if (outcome.ok()) timed_.emplace(outcome.time_us, number);
        if (best) bench_.best_so_far(outcome.time_us);
        const Trial trial{.ordinal = tuning_.tried,
                          .config = space_.config(number),
                          .outcome = outcome,
                          .new_best = best,
                          .resumed = resumed};
        if (!outcome.ok() && outcome.ending != Ending::dropped && tuning_.counts[outcome.ending] == 1)
            tuning_.failures_by_example.push_back(trial);
        if (events_.trial) events_.trial(trial);
    }

    /// Tries those again that were dropped though nothing right is known to be faster: what they were measured against
    /// was struck out since, here or in an earlier run. They are in the budget already.
    void retry_dropped() {
        const double best_us = timed_.empty() ? std::numeric_limits<double>::infinity() : timed_.begin()->first;
        std::vector<std::pair<double, std::size_t>> again;
        for (const auto& [number, least_us] : dropped_)
            if (least_us < best_us) again.emplace_back(least_us, number);
        if (again.empty() || tuning_.interrupted) return;
        std::ranges::sort(again);
        bench_.best_is_now(timed_.empty() ? 0 : best_us);
        const double until_s = retries_until_s();
        std::size_t begun = 0;
        while (begun < again.size() || !in_flight_.empty()) {
            if (events_.stop_requested && events_.stop_requested()) tuning_.interrupted = true;
            if (tuning_.interrupted || elapsed_s() > until_s) break;
            while (begun < again.size() && in_flight_.size() < window) submit(again[begun++].second);
            const auto taken = take_outcome([&] { return elapsed_s() <= until_s; });
            if (!taken) break;
            const auto& [number, outcome] = *taken;
            dropped_.erase(number);
            --tuning_.counts[Ending::dropped];
            take_in(number, outcome, false);
        }
        forget_outstanding();
    }

    /// What is left of the budget, or a short while where it is spent.
    double retries_until_s() const {
        if (!options_.budget.seconds) return std::numeric_limits<double>::infinity();
        const double budget_s = *options_.budget.seconds;
        return std::max(budget_s * (1 - kept_for_finals), elapsed_s() + std::max(1.0, budget_s * kept_for_finals));
    }

    /// The fastest by their trials, and the default, in interleaved rounds, unless those stand in the ranking already.
    /// False: one failed, and others may be in its place.
    bool finals() {
        const std::vector<std::size_t> finalists = choose_finalists();
        const auto is_ranked = [&](std::size_t number) {
            return std::ranges::find(tuning_.ranking, space_.config(number), &Ranked::config) != tuning_.ranking.end();
        };
        if (std::ranges::all_of(finalists, is_ranked)) return true;
        return rank(finalists, time_finalists(finalists));
    }

    std::vector<std::size_t> choose_finalists() const {
        std::vector<std::size_t> finalists;
        for (const auto& [time_us, number] : timed_) {
            if (finalists.size() == most_finalists || time_us > timed_.begin()->first * finalist_within) break;
            finalists.push_back(number);
        }
        const std::size_t first = space_.default_number();
        const auto is_first = [&](const auto& entry) { return entry.second == first; };
        if (std::ranges::any_of(timed_, is_first) && std::ranges::find(finalists, first) == finalists.end())
            finalists.push_back(first);
        return finalists;
    }

    std::vector<Outcome> time_finalists(const std::vector<std::size_t>& finalists) {
        std::vector<Config> configs;
        for (const std::size_t number : finalists) configs.push_back(space_.config(number));
        const int rounds = rounds_for(tuning_.interrupted ? Effort::quick : options_.effort);
        std::vector<Outcome> outcomes = bench_.rounds(configs, rounds);
        const auto disturbed = [&] { return std::ranges::any_of(outcomes, &Outcome::tainted); };
        for (int again = 0; again < patience && disturbed() && !tuning_.interrupted; ++again)
            outcomes = bench_.rounds(configs, rounds);
        return outcomes;
    }

    bool rank(const std::vector<std::size_t>& finalists, const std::vector<Outcome>& outcomes) {
        tuning_.ranking.clear();
        bool all_well = true;
        for (std::size_t i = 0; i < finalists.size(); ++i) {
            if (!outcomes[i].ok() || outcomes[i].samples_us.empty()) {
                fail(finalists[i], outcomes[i]);
                all_well = false;
                continue;
            }
            const Interval interval = median_interval(outcomes[i].samples_us);
            tuning_.ranking.push_back({.config = space_.config(finalists[i]),
                                       .outcome = outcomes[i],
                                       .time_us = interval.median,
                                       .low_us = interval.low,
                                       .high_us = interval.high});
        }
        std::ranges::stable_sort(tuning_.ranking, {}, &Ranked::time_us);
        compare_with_best();
        return all_well;
    }

    void compare_with_best() {
        tuning_.best.reset();
        tuning_.default_result.reset();
        if (tuning_.ranking.empty()) return;
        const std::vector<double>& best = tuning_.ranking.front().outcome.samples_us;
        for (Ranked& finalist : tuning_.ranking) {
            finalist.same_as_best = paired_ratio(finalist.outcome.samples_us, best).low < 1 + same_within;
            if (finalist.config == tuning_.default_config) tuning_.default_result = finalist;
        }
        tuning_.best = tuning_.ranking.front();
    }

    /// The winner is checked again; one that fails is struck out.
    bool winner_stands() {
        if (!options_.verify_winner || !tuning_.best || tuning_.interrupted) return true;
        try {
            tuning_.verification = bench_.verify(tuning_.best->config);
        } catch (const Error& error) {
            if (error.kind() != Error::Kind::interrupted) throw;
            tuning_.interrupted = true;  // what was found is kept, unverified
            tuning_.verification = {};   // of one that was struck out before
            return true;
        }
        if (!tuning_.verification.failure) return true;
        fail(*space_.find(tuning_.best->config), *tuning_.verification.failure);
        tuning_.ranking.erase(tuning_.ranking.begin());
        compare_with_best();
        return false;
    }

    /// A config that was timed and then failed counts as the failure it is.
    void fail(std::size_t number, const Outcome& failure) {
        --tuning_.counts[Ending::timed];
        std::erase_if(timed_, [&](const auto& entry) { return entry.second == number; });
        tried_[number] = failure.ending;
        const Trial trial{.ordinal = tuning_.tried, .config = space_.config(number), .outcome = failure};
        if (++tuning_.counts[failure.ending] == 1) tuning_.failures_by_example.push_back(trial);
        if (events_.trial) events_.trial(trial);
    }

    /// The first of each ending runs once more where it can be watched: nothing is timed any more.
    void explain_failures() {
        const double until_s = elapsed_s() + most_explaining_s;
        for (Trial& trial : tuning_.failures_by_example) {
            if (events_.stop_requested && events_.stop_requested()) tuning_.interrupted = true;
            if (tuning_.interrupted || elapsed_s() > until_s) return;
            if (trial.resumed) continue;  // told by the run that tried it
            const std::string more = bench_.explain(trial.config, trial.outcome);
            if (more.empty()) continue;
            trial.outcome.reason += "; " + more;
            if (events_.explained) events_.explained(trial);
        }
    }

    double elapsed_s() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

    Bench& bench_;
    const TuneOptions& options_;
    const TuneEvents& events_;
    const Clock::time_point start_ = Clock::now();
    const Space space_;
    std::unique_ptr<Strategy> strategy_;
    std::vector<std::pair<std::size_t, const Outcome*>> known_;  ///< of earlier runs
    std::vector<std::size_t> first_asked_;        ///< before the problem was prepared, and not submitted yet
    std::vector<std::size_t> pool_;               ///< what the model is asked about
    std::map<std::size_t, double> predicted_us_;  ///< what it answered
    std::deque<std::size_t> in_flight_;           ///< in the order of submission
    bool default_begun_ = false;
    std::size_t calm_ = 0;  ///< trials in a row that promised too little
    std::map<std::size_t, Ending> tried_;
    std::multimap<double, std::size_t> timed_;  ///< by the time of their trial
    std::map<std::size_t, double> dropped_;     ///< with what they take at least
    Tuning tuning_;
};

}  // namespace

Tuning tune(Bench& bench, const Instance& instance, const TuneOptions& options, const TuneEvents& events) {
    return Search{bench, instance, options, events}.run();
}

}  // namespace autotune
