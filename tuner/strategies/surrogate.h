#ifndef AUTOTUNE_STRATEGIES_SURROGATE_H
#define AUTOTUNE_STRATEGIES_SURROGATE_H

#include <cstddef>
#include <span>
#include <vector>

#include "tuner/strategies/features.h"

namespace autotune {

/// What a surrogate takes configs to have in common. All are fitted to what was observed.
struct Covariance {
    std::vector<double> length;  ///< of each column, logarithm
    double additive = -2;        ///< logit of the share of the columns' sum beside their product
    double noise = -7;           ///< logarithm of the noise's variance over the signal's
};

/// A Gaussian process over configs: Matern 3/2 kernels of one column each, their product and their sum, with a length
/// for each column and a level and a scale that are unknown.
///
/// The posterior of every config is kept up to date, so an observation costs configs x (observations + columns), and a
/// solve() configs x the values that changed; a fit() costs observations^3 a step and configs x observations^2 once.
class Surrogate {
public:
    /// The features must outlive it.
    explicit Surrogate(const Features& features);

    std::size_t observations() const noexcept { return seen_.size(); }
    const Covariance& covariance() const noexcept { return covariance_; }
    void set(const Covariance& covariance);

    /// Adds a config; its value comes with the next solve().
    void observe(std::size_t config);
    /// Forgets all observations but these.
    void observe_only(std::vector<std::size_t> configs);
    /// The posterior mean of all configs. values: of the observations, in their order and in any unit
    void solve(std::span<const double> values);
    /// Fits the covariance to the observations: so many steps up the posterior density of its parameters. Where all
    /// values are equal it stays.
    void fit(std::span<const double> values, int steps);

    std::span<const float> mean() const noexcept { return mean_; }
    /// Of the posterior, over scale().
    std::span<const float> variance() const noexcept { return variance_; }
    double scale() const noexcept { return scale_; }
    /// A config's covariance with all, over scale().
    std::vector<float> kernel_row(std::size_t config) const;

private:
    struct Joint {
        float product = 1, sum = 0;
    };
    struct Group {
        std::vector<std::uint16_t> level;  ///< of each config: those of its columns, as one number
        std::size_t levels = 1;
        std::vector<std::size_t> columns;
    };

    void make_tables();
    void make_groups();
    double kernel_of(std::size_t config, std::size_t other) const;
    void put_kernel(std::size_t config, std::span<float> out) const;
    void extend_factor(std::size_t config);
    void add_row(std::size_t observation, std::size_t begin, std::size_t count);

    const Features& features_;
    std::vector<Group> groups_;
    Covariance covariance_;
    std::vector<std::vector<float>> tables_;  ///< of each column: its kernel, level x level
    std::vector<std::size_t> seen_;
    std::vector<float> rows_;  ///< of each observation: the factor's inverse times the covariance with all configs
    std::vector<std::vector<double>> factor_;     ///< of Cholesky, row by row, the diagonal last
    std::vector<double> values_, solved_, ones_;  ///< the factor's inverse times the values, and times ones
    std::vector<float> by_values_, by_ones_;      ///< of each config: sums of those times the rows
    std::vector<float> mean_, variance_;
    double scale_ = 1;
};

}  // namespace autotune
#endif
