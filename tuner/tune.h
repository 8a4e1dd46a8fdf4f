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

/// One finished trial, as observers and the store get it.
struct Trial {
    std::size_t ordinal = 0;  ///< 1 for the first; the default's
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
    std::string strategy = "local";
    std::uint64_t seed = 1;
    Budget budget;
    Effort effort = Effort::normal;
    std::vector<std::pair<Config, Outcome>> known;  ///< of an earlier run: told, not tried
    bool verify_winner = true;
};

/// Calls of the loop to whoever watches; each may be empty. The store hangs on `trial`, the console on all.
struct TuneEvents {
    std::function<void(const Preparation&, const Space&)> prepared;
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
    double raw_size = 0;
    Verification verification;
    BenchUse use;
    double elapsed_s = 0;
    bool interrupted = false;
};

/// The whole search for one problem: the default first, then what the strategy asks for, then finals among the best
/// and the default, and a re-check of the winner. Throws Error when nothing could be tried; a search that found no
/// valid config returns with `best` empty.
Tuning tune(Bench& bench, const Instance& instance, const TuneOptions& options, const TuneEvents& events = {});

}  // namespace autotune
#endif
