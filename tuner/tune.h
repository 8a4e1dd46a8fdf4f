#ifndef AUTOTUNE_TUNER_TUNE_H
#define AUTOTUNE_TUNER_TUNE_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/bench.h"
#include "tuner/strategy.h"

namespace autotune {

/// What ends a search, whichever comes first. Neither given: every valid config.
struct Budget {
    std::optional<double> seconds;
    std::optional<std::size_t> trials;  ///< distinct configs tried, failures and the default included; finals not
};

/// What a search of this effort is expected to gain from a trial at least, as a share of the best time; 0: it goes on
/// to the end of its budget. It stops when so many trials in a row promised less.
constexpr double worth_a_trial(Effort effort) {
    return effort == Effort::quick ? 1e-3 : effort == Effort::normal ? 1e-4 : 0;
}
inline constexpr std::size_t patience_trials = 64;

/// What is known of configs before any is tried.
enum class Prior {
    none,
    records,  ///< those of near problems and other GPUs: TuneOptions::first
    model,  ///< beside them a cost model's predictions order the first asks; it decides nothing and leaves nothing out
};
/// Configs drawn from the space, by the seed, for the model to predict; all of a smaller space.
inline constexpr std::size_t prior_pool = 128;
/// The best predicted ones that are asked for before the strategy's own.
inline constexpr std::size_t prior_first = 16;
/// The share of a time budget that predictions may take. Where only trials are counted they take as long as they take,
/// so that a seed gives the same sequence.
inline constexpr double prior_share = 0.2;

/// What the model said, and how it fits what the search found out.
struct PriorUse {
    std::string model;  ///< of which GPU; empty: there is none like the one at hand
    std::size_t asked = 0, predicted = 0, first = 0;
    double seconds = 0;
    /// Spearman's, of predictions and times of the `compared` trials that have both; those dropped early count with the
    /// least that they take. nullopt: too few.
    std::optional<double> rank_correlation;
    std::size_t compared = 0;
};

/// One finished trial, as observers and the store get it.
struct Trial {
    std::size_t ordinal = 0;  ///< 1 for the first: the default's, unless that failed before
    Config config;
    Outcome outcome;
    bool new_best = false;
    bool resumed = false;  ///< known from an earlier run: not tried again, not in the budget
};

/// A finalist after the interleaved rounds.
struct Ranked {
    Config config;
    Outcome outcome;                              ///< with the samples of the rounds
    double time_us = 0, low_us = 0, high_us = 0;  ///< median and its 95 % interval
    bool same_as_best = false;  ///< not distinguishable: the intervals of the paired differences cover 0.5 %
};

struct TuneOptions {
    std::string strategy = "guided";
    std::uint64_t seed = 1;
    Budget budget;
    Effort effort = Effort::normal;
    std::vector<std::pair<Config, Outcome>> known;  ///< of an earlier run: told, not tried
    std::vector<Config> first;  ///< to be tried before others, in this order; what is not valid here is left out
    bool verify_winner = true;
    Prior prior = Prior::none;
};

/// Calls of the loop to whoever watches; each may be empty. The store hangs on `trial`, the console on all.
struct TuneEvents {
    std::function<void(const Preparation&, const Space&)> prepared;
    std::function<void(const PriorUse&)> predicted;                     ///< with a prior: before the first trial
    std::function<void(const Trial&)> trial;                            ///< each outcome, as it ends
    std::function<void(const Trial&)> explained;                        ///< a failure whose reason says more since
    std::function<void(std::size_t in_flight, double elapsed_s)> idle;  ///< ten times a second while waiting
    std::function<bool()> stop_requested;  ///< true ends the search after the running trial
};

struct Tuning {
    Preparation preparation;
    Config default_config;
    std::optional<Ranked> best, default_result;
    std::vector<Ranked> ranking;  ///< finalists, fastest first; the default among them when it is valid
    std::map<Ending, std::size_t> counts;
    std::vector<Trial> failures_by_example;  ///< the first trial of each failed ending
    std::size_t space_size = 0, tried = 0, resumed = 0;
    std::size_t unfinished = 0;   ///< begun and not tried, since the time was up
    std::size_t asked_first = 0;  ///< of TuneOptions::first
    double raw_size = 0;
    Verification verification;
    std::optional<PriorUse> prior;
    BenchUse use;
    double elapsed_s = 0;
    bool interrupted = false;
    std::string stopped;  ///< why the search ended before its budget and its space did; empty when it did not
};

/// The whole search for one problem: the default first, then what the strategy asks for, then finals among the best
/// and the default, and a re-check of the winner. Throws Error when nothing could be tried; a search that found no
/// valid config returns with `best` empty.
Tuning tune(Bench& bench, const Instance& instance, const TuneOptions& options, const TuneEvents& events = {});

}  // namespace autotune
#endif
