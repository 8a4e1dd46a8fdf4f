#include "tuner/replay/replay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>
#include <numeric>

namespace autotune {
namespace {

double ms_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

/// Linear between the two nearest; of a sorted, non-empty list.
double quantile(std::span<const double> sorted, double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, sorted.size() - 1);
    return sorted[low] + (place - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

/// The best time after so many evaluations; infinite before the first.
double best_after(const ReplayRun& run, std::size_t evaluations) {
    if (run.best_us.empty() || evaluations == 0) return std::numeric_limits<double>::infinity();
    return run.best_us[std::min(evaluations, run.best_us.size()) - 1];
}

Reached reached(const RecordedSpace& space, std::span<const ReplayRun> runs, double within) {
    std::vector<double> evaluations;
    for (const ReplayRun& run : runs) {
        const auto there =
            std::ranges::find_if(run.best_us, [&](double t) { return t <= space.optimum_us() * within; });
        evaluations.push_back(there == run.best_us.end() ? std::numeric_limits<double>::infinity()
                                                         : static_cast<double>(there - run.best_us.begin() + 1));
    }
    std::ranges::sort(evaluations);
    const auto got = std::ranges::count_if(evaluations, [](double e) { return std::isfinite(e); });
    const auto of = [&](double share) -> std::optional<double> {
        const auto place = static_cast<std::size_t>(std::ceil(share * static_cast<double>(evaluations.size()))) - 1;
        return std::isfinite(evaluations[place]) ? std::optional{evaluations[place]} : std::nullopt;
    };
    return {.share = static_cast<double>(got) / static_cast<double>(runs.size()), .median = of(0.5), .p90 = of(0.9)};
}

/// Evaluations of random search without repeats that are expected until the gap between median and optimum is closed to
/// this share.
std::size_t budget_for(std::span<const double> ascending, double share) {
    const std::size_t n = ascending.size();
    const double best = ascending.front();
    const double middle = n % 2 ? ascending[n / 2] : (ascending[n / 2 - 1] + ascending[n / 2]) / 2;
    const double wanted = best + (middle - best) * (1 - share);
    const auto good = std::ranges::upper_bound(ascending, wanted) - ascending.begin();
    const double before = static_cast<double>(n) - static_cast<double>(good);  // those that are worse
    return static_cast<std::size_t>(std::ceil(before / (static_cast<double>(n) + 1 - before)));
}

}  // namespace

ReplayRun replay(const RecordedSpace& space, Strategy& strategy, std::size_t evaluations, std::size_t window,
                 const std::function<bool()>& stop_requested) {
    ReplayRun run;
    std::deque<std::size_t> outstanding;
    double best_us = std::numeric_limits<double>::infinity();
    while (run.best_us.size() < evaluations && !(stop_requested && stop_requested())) {
        const auto begin = std::chrono::steady_clock::now();
        const std::vector<std::size_t> asked = strategy.ask(window - outstanding.size());
        double own_ms = ms_since(begin);
        outstanding.insert(outstanding.end(), asked.begin(), asked.end());
        if (outstanding.empty()) break;
        const std::size_t number = outstanding.front();
        outstanding.pop_front();
        const Outcome outcome = space.outcome(number);
        const auto told = std::chrono::steady_clock::now();
        strategy.tell(number, outcome);
        own_ms += ms_since(told);
        if (!asked.empty()) run.ask_ms.push_back(own_ms / static_cast<double>(asked.size()));
        if (!outcome.ok()) {
            ++run.failed;
            continue;
        }
        best_us = std::min(best_us, outcome.time_us);
        run.best_us.push_back(best_us);
    }
    return run;
}

std::optional<double> performance_score(const RecordedSpace& space, std::span<const ReplayRun> runs,
                                        std::size_t at_most) {
    const std::vector<double>& ascending = space.sorted_us();
    const std::size_t n = ascending.size();
    if (n < 2 || runs.empty()) return std::nullopt;
    const std::size_t first = std::max<std::size_t>(budget_for(ascending, 0.01), 1);
    const std::size_t end = std::min(budget_for(ascending, 0.95), at_most + 1);
    double sum = 0;
    std::size_t points = 0;
    for (std::size_t m = first; m < end; ++m) {
        double ranks = 0;
        for (const ReplayRun& run : runs)
            ranks += static_cast<double>(std::ranges::lower_bound(ascending, best_after(run, m)) - ascending.begin());
        const double rank = std::nearbyint(ranks / static_cast<double>(runs.size()));
        const double reached_us = ascending[std::min(static_cast<std::size_t>(rank), n - 1)];
        const double share = static_cast<double>(m) / static_cast<double>(m + 1);
        const auto place =
            std::min(n - 1, static_cast<std::size_t>(std::nearbyint(share * static_cast<double>(n + 1))));
        const double random_us = ascending[n - 1 - place];
        if (random_us == ascending.front()) break;  // random search is at the optimum
        sum += (reached_us - random_us) / (ascending.front() - random_us);
        ++points;
    }
    return points ? std::optional{sum / static_cast<double>(points)} : std::nullopt;
}

ReplayFigures figures_of(const RecordedSpace& space, std::span<const ReplayRun> runs, std::size_t evaluations) {
    ReplayFigures figures{.runs = runs.size()};
    if (runs.empty() || space.sorted_us().empty()) return figures;
    std::vector<std::size_t> points;
    std::ranges::copy_if(replay_points, std::back_inserter(points), [&](std::size_t p) { return p <= evaluations; });
    if (points.empty()) points.push_back(evaluations);
    for (const std::size_t point : points) {
        std::vector<double> shares;
        for (const ReplayRun& run : runs) shares.push_back(space.optimum_us() / best_after(run, point));
        std::ranges::sort(shares);
        figures.points.push_back(point);
        figures.mean.push_back(std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size()));
        figures.worst_tenth.push_back(quantile(shares, 0.1));
    }
    figures.score = performance_score(space, runs, evaluations);
    figures.within_5pct = reached(space, runs, 1.05);
    figures.within_1pct = reached(space, runs, 1.01);
    double failed = 0, tried = 0;
    std::vector<double> ask_ms;
    for (const ReplayRun& run : runs) {
        failed += static_cast<double>(run.failed);
        tried += static_cast<double>(run.failed + run.best_us.size());
        ask_ms.insert(ask_ms.end(), run.ask_ms.begin(), run.ask_ms.end());
    }
    figures.failed_share = tried > 0 ? failed / tried : 0;
    std::ranges::sort(ask_ms);
    if (!ask_ms.empty()) figures.ask_ms = quantile(ask_ms, 0.5);
    return figures;
}

}  // namespace autotune
