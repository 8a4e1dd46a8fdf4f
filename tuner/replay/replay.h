#ifndef AUTOTUNE_REPLAY_REPLAY_H
#define AUTOTUNE_REPLAY_REPLAY_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tuner/replay/recorded_space.h"
#include "tuner/strategy.h"

namespace autotune {

/// One search of a recorded space. Evaluations are distinct configs that work; those that fail are counted beside.
struct ReplayRun {
    std::vector<double> best_us;  ///< after each evaluation; shorter than asked for where the space ends before
    std::size_t failed = 0;
    std::vector<double> ask_ms;  ///< the strategy's own time for each config it asked for, telling included
};

/// Searches until so many evaluations are done or the strategy is.
/// window          configs asked for and not told yet, at most
/// stop_requested  looked at before each ask: true ends the search where it stands
ReplayRun replay(const RecordedSpace& space, Strategy& strategy, std::size_t evaluations, std::size_t window = 1,
                 const std::function<bool()>& stop_requested = {});

/// The evaluations after which runs are compared.
inline constexpr std::array<std::size_t, 6> replay_points{10, 25, 50, 100, 200, 400};

/// How often, and after how many evaluations, runs came within a share of the optimum.
struct Reached {
    double share = 0;                   ///< of the runs
    std::optional<double> median, p90;  ///< evaluations; nullopt where fewer runs got there
};

/// Runs of one strategy on one space, of different seeds.
struct ReplayFigures {
    std::size_t runs = 0;
    std::vector<std::size_t> points;        ///< those of replay_points that the runs went to; of shorter ones their end
    std::vector<double> mean, worst_tenth;  ///< optimum over best: their mean, and their 10 % quantile, at each point
    std::optional<double> score;            ///< performance_score()
    Reached within_5pct, within_1pct;
    double failed_share = 0;  ///< of all trials
    double ask_ms = 0;        ///< median time for one config
};

/// evaluations: what the runs were asked for
ReplayFigures figures_of(const RecordedSpace& space, std::span<const ReplayRun> runs, std::size_t evaluations);

/// The aggregate performance of Willemsen et al., "A methodology for comparing optimization algorithms for
/// auto-tuning", on the axis of evaluations up to `at_most`, with the mean rank: 1 is the optimum from the first
/// evaluation on. The formula's baseline is one rank better than the mean of random search, which scores a little below
/// 0 therefore (docs/search.md). nullopt where the space is too small or flat to tell.
std::optional<double> performance_score(const RecordedSpace& space, std::span<const ReplayRun> runs,
                                        std::size_t at_most);

}  // namespace autotune
#endif
