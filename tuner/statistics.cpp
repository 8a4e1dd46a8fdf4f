#include "tuner/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <vector>

namespace autotune {
namespace {

/// The largest k for which P(Binomial(n, 1/2) < k) is at most 2.5 %: the interval runs from the k-th smallest to the
/// k-th largest. 0 when there is none.
std::size_t rank_of_interval(std::size_t n) {
    double term = std::pow(0.5, static_cast<double>(n));
    double below = 0;
    std::size_t k = 0;
    while (below + term <= 0.025 && k < n / 2) {
        below += term;
        term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
        ++k;
    }
    return k;
}

double median_of_sorted(std::span<const double> sorted) {
    const std::size_t n = sorted.size();
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

std::vector<double> sorted_copy(std::span<const double> samples) {
    assert(!samples.empty());
    std::vector<double> sorted(samples.begin(), samples.end());
    std::ranges::sort(sorted);
    return sorted;
}

/// Ranks from 1; equal values share the mean of theirs.
std::vector<double> ranks_of(std::span<const double> values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
    std::vector<double> ranks(values.size());
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
        do ++end;
        while (end < order.size() && values[order[end]] == values[order[begin]]);
        for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + 1 + end) / 2;
    }
    return ranks;
}

}  // namespace

double median(std::span<const double> samples) { return median_of_sorted(sorted_copy(samples)); }

Interval median_interval(std::span<const double> samples) {
    const std::vector<double> sorted = sorted_copy(samples);
    const std::size_t n = sorted.size();
    // Beyond a thousand samples 2^-n underflows, and the interval is narrower than any difference that counts.
    const std::size_t k =
        std::max<std::size_t>(1, n <= 1000 ? rank_of_interval(n) : n / 2 - static_cast<std::size_t>(std::sqrt(n)));
    return {.median = median_of_sorted(sorted), .low = sorted[k - 1], .high = sorted[n - k]};
}

Interval paired_ratio(std::span<const double> a, std::span<const double> b) {
    assert(a.size() == b.size());
    std::vector<double> ratios(a.size());
    std::ranges::transform(a, b, ratios.begin(), [](double x, double y) { return x / y; });
    return median_interval(ratios);
}

std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b) {
    assert(a.size() == b.size());
    if (a.size() < 3) return std::nullopt;
    const std::vector<double> x = ranks_of(a), y = ranks_of(b);
    const double mean = static_cast<double>(a.size() + 1) / 2;
    double both = 0, of_x = 0, of_y = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        both += (x[i] - mean) * (y[i] - mean);
        of_x += (x[i] - mean) * (x[i] - mean);
        of_y += (y[i] - mean) * (y[i] - mean);
    }
    if (of_x == 0 || of_y == 0) return std::nullopt;
    return both / std::sqrt(of_x * of_y);
}

}  // namespace autotune
