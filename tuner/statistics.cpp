#include "tuner/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
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

}  // namespace autotune
