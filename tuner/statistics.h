#ifndef AUTOTUNE_TUNER_STATISTICS_H
#define AUTOTUNE_TUNER_STATISTICS_H

#include <cstddef>
#include <optional>
#include <span>

namespace autotune {

/// A median with the interval that holds the true one in at least 95 of 100 repetitions.
struct Interval {
    double median = 0, low = 0, high = 0;
};

/// samples  at least 1, in any order; of an even number, the mean of the middle two
double median(std::span<const double> samples);

/// samples  at least 1, in any order, any unit
/// returns  the median and a distribution-free interval from order statistics; with fewer than 6 samples no such
///          interval exists at 95 %, and the extremes are returned
/// source   the binomial interval of a quantile: Conover, Practical Nonparametric Statistics, section 3.2
Interval median_interval(std::span<const double> samples);

/// Whether `a` differs from `b`, sample i of both taken in the same round: the interval of the median of a[i] / b[i].
/// Both at least 1 long and equally long.
Interval paired_ratio(std::span<const double> a, std::span<const double> b);

/// Spearman's: 1 where both put all in the same order, -1 in the opposite one. Equal values share the mean of their
/// ranks.
///
/// a, b     equally long
/// returns  nullopt for fewer than 3 pairs, or where all of a side are equal
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

/// The least difference that is ever called one: clocks and allocation make identical binaries differ by about as much.
inline constexpr double same_within = 0.005;

}  // namespace autotune
#endif
