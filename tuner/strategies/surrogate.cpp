#include "tuner/strategies/surrogate.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace autotune {
namespace {

constexpr std::size_t block = 2048;  // configs at a time, so that what is summed up stays in the first cache
constexpr std::size_t few = 128;     // configs whose whole rows stay in the second cache
constexpr std::size_t joint_levels_at_most = 512;
/// Eigen cuts sums as the caches of the machine would have it; a seed gives the same sequence on any machine.
const bool sums_are_cut_alike = (Eigen::setCpuCacheSizes(32 << 10, 256 << 10, 2 << 20), true);
constexpr double root3 = 1.7320508075688772;
constexpr float least_variance = 1e-8f;
/// Pseudo-observations of variance 1 that the scale starts from.
constexpr double scale_weight = 2;

double matern(double distance) { return (1 + root3 * distance) * std::exp(-root3 * distance); }
double share_of(double logit) { return 1 / (1 + std::exp(-logit)); }

/// What a parameter of the covariance is expected to be, a normal distribution with deviation 1.
const Covariance typical{};

/// The kernels of a covariance on the observed configs, and how well they explain the values.
class Explanation {
public:
    Explanation(const Features& features, std::span<const std::size_t> seen, const std::vector<double>& values)
        : count_{static_cast<Eigen::Index>(seen.size())}, values_{values.size()} {
        for (Eigen::Index i = 0; i < count_; ++i) values_[i] = values[static_cast<std::size_t>(i)];
        for (const Features::Column& column : features.columns) {
            Observed& observed = columns_.emplace_back();
            std::vector<std::uint16_t> level;
            for (const std::size_t config : seen) level.push_back(column.level[config]);
            std::vector<std::uint16_t> distinct = level;
            std::ranges::sort(distinct);
            distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
            observed.levels = distinct.size();
            for (const std::uint16_t each : level)
                observed.level.push_back(
                    static_cast<std::size_t>(std::ranges::lower_bound(distinct, each) - distinct.begin()));
            for (const std::uint16_t a : distinct)
                for (const std::uint16_t b : distinct)
                    observed.distance.push_back(column.distance[a * column.levels + b]);
        }
    }

    /// Minus the logarithm of the posterior density, and its gradient: the columns', the share's, the noise's.
    double evaluate(std::span<const double> theta, std::span<double> gradient) {
        const std::size_t columns = columns_.size();
        const double additive = share_of(theta[columns]), noise = std::exp(theta[columns + 1]);
        const double each = additive / static_cast<double>(std::max<std::size_t>(columns, 1));
        make_kernels(theta);
        Eigen::MatrixXd kernel = (1 - additive) * product_ + each * sum_;
        kernel.diagonal().array() += noise + 1e-9;
        const Eigen::LLT<Eigen::MatrixXd> factor{kernel};
        if (factor.info() != Eigen::Success) return std::numeric_limits<double>::infinity();
        const Eigen::VectorXd ones = factor.solve(Eigen::VectorXd::Ones(count_));
        const Eigen::VectorXd solved = factor.solve(values_);
        const double level = solved.sum() / ones.sum();
        const Eigen::VectorXd alpha = solved - level * ones;
        const double weight = static_cast<double>(count_) + scale_weight;
        const double scale = (alpha.dot((values_.array() - level).matrix()) + scale_weight) / weight;

        // By an entry of the kernel, twice for those beside the diagonal: the inverse less what the values explain.
        Eigen::MatrixXd slope = factor.solve(Eigen::MatrixXd::Identity(count_, count_));
        slope.noalias() -= alpha * alpha.transpose() / scale;
        gradient[columns] = 0.5 * additive * (1 - additive) *
                            (slope.cwiseProduct(sum_ / static_cast<double>(std::max<std::size_t>(columns, 1))).sum() -
                             slope.cwiseProduct(product_).sum());
        gradient[columns + 1] = 0.5 * slope.trace() * noise;
        for (std::size_t c = 0; c < columns; ++c) gradient[c] = by_length(c, slope, 1 - additive, each);
        double density = factor.matrixLLT().diagonal().array().log().sum() + 0.5 * weight * std::log(scale);
        for (std::size_t p = 0; p < theta.size(); ++p) {
            const double off = theta[p] - (p < columns ? 0 : p == columns ? typical.additive : typical.noise);
            density += 0.5 * off * off;
            gradient[p] += off;
        }
        return density;
    }

private:
    /// A column by the levels that occur in the observations: an axis may have many more.
    struct Observed {
        std::vector<std::size_t> level;  ///< of each observation
        std::vector<float> distance;     ///< level x level
        std::size_t levels = 0;
    };

    void make_kernels(std::span<const double> theta) {
        product_ = Eigen::MatrixXd::Ones(count_, count_);
        sum_ = Eigen::MatrixXd::Zero(count_, count_);
        by_product_.resize(columns_.size());
        by_sum_.resize(columns_.size());
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            const Observed& column = columns_[c];
            std::vector<double> kernel;
            by_product_[c].clear();
            by_sum_[c].clear();
            for (const float distance : column.distance) {
                const double d = static_cast<double>(distance) / std::exp(theta[c]);
                kernel.push_back(matern(d));
                by_sum_[c].push_back(3 * d * d * std::exp(-root3 * d));
                by_product_[c].push_back(3 * d * d / (1 + root3 * d));
            }
            for (Eigen::Index j = 0; j < count_; ++j) {
                const std::size_t base = column.level[static_cast<std::size_t>(j)] * column.levels;
                for (Eigen::Index i = 0; i < count_; ++i) {
                    const double k = kernel[base + column.level[static_cast<std::size_t>(i)]];
                    product_(i, j) *= k;
                    sum_(i, j) += k;
                }
            }
        }
    }

    double by_length(std::size_t c, const Eigen::MatrixXd& slope, double of_product, double of_sum) const {
        double total = 0;
        for (Eigen::Index j = 0; j < count_; ++j) {
            const std::size_t base = columns_[c].level[static_cast<std::size_t>(j)] * columns_[c].levels;
            for (Eigen::Index i = j + 1; i < count_; ++i) {
                const std::size_t at = base + columns_[c].level[static_cast<std::size_t>(i)];
                total += slope(i, j) * (of_product * product_(i, j) * by_product_[c][at] + of_sum * by_sum_[c][at]);
            }
        }
        return total;
    }

    const Eigen::Index count_;
    Eigen::VectorXd values_;
    std::vector<Observed> columns_;
    Eigen::MatrixXd product_, sum_;
    std::vector<std::vector<double>> by_product_, by_sum_;  ///< slopes by the logarithm of the length
};

/// Less their mean, over their deviation.
std::vector<double> standardised(std::span<const double> values) {
    const auto count = static_cast<double>(values.size());
    double mean = 0, squares = 0;
    for (const double value : values) mean += value / count;
    for (const double value : values) squares += (value - mean) * (value - mean) / count;
    const double scale = squares > 1e-18 ? 1 / std::sqrt(squares) : 1;
    std::vector<double> out;
    for (const double value : values) out.push_back((value - mean) * scale);
    return out;
}

}  // namespace

Surrogate::Surrogate(const Features& features) : features_{features} {
    covariance_.length.assign(features.columns.size(), 0);
    make_groups();
    make_tables();
    mean_.assign(features.size(), 0);
    observe_only({});
}

void Surrogate::set(const Covariance& covariance) {
    covariance_ = covariance;
    make_tables();
    observe_only(std::vector{seen_});
}

void Surrogate::make_tables() {
    tables_.resize(features_.columns.size());
    for (std::size_t c = 0; c < tables_.size(); ++c) {
        tables_[c].clear();
        for (const float distance : features_.columns[c].distance)
            tables_[c].push_back(
                static_cast<float>(matern(static_cast<double>(distance) / std::exp(covariance_.length[c]))));
    }
}

/// Of two configs, over the scale.
double Surrogate::kernel_of(std::size_t config, std::size_t other) const {
    const double additive = share_of(covariance_.additive);
    double product = 1 - additive, sum = 0;
    for (std::size_t c = 0; c < tables_.size(); ++c) {
        const Features::Column& column = features_.columns[c];
        const double kernel = tables_[c][column.level[config] * column.levels + column.level[other]];
        product *= kernel;
        sum += kernel;
    }
    return product + additive / static_cast<double>(std::max<std::size_t>(tables_.size(), 1)) * sum;
}

/// The covariance of a config with all, over the scale.
void Surrogate::put_kernel(std::size_t config, std::span<float> out) const {
    const double additive = share_of(covariance_.additive);
    const auto of_sum = static_cast<float>(additive / static_cast<double>(std::max<std::size_t>(tables_.size(), 1)));
    std::vector<std::vector<Joint>> joints;  // of each group: its columns' kernels, by the group's level
    for (const Group& group : groups_) {
        std::vector<Joint>& joint = joints.emplace_back(1, Joint{});
        for (const std::size_t c : group.columns) {
            const Features::Column& column = features_.columns[c];
            const float* table = tables_[c].data() + column.level[config] * column.levels;
            std::vector<Joint> wider;
            for (const Joint& one : joint)
                for (std::size_t level = 0; level < column.levels; ++level)
                    wider.push_back({one.product * table[level], one.sum + table[level]});
            joint = std::move(wider);
        }
    }
    std::array<float, block> sum;
    for (std::size_t begin = 0; begin < out.size(); begin += block) {
        const std::size_t count = std::min(block, out.size() - begin);
        float* product = out.data() + begin;
        std::fill_n(product, count, static_cast<float>(1 - additive));
        std::fill_n(sum.begin(), count, 0.0f);
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            const std::uint16_t* level = groups_[g].level.data() + begin;
            const Joint* joint = joints[g].data();
            for (std::size_t i = 0; i < count; ++i) {
                product[i] *= joint[level[i]].product;
                sum[i] += joint[level[i]].sum;
            }
        }
        for (std::size_t i = 0; i < count; ++i) product[i] += of_sum * sum[i];
    }
}

/// Columns of few levels are looked up together.
void Surrogate::make_groups() {
    for (std::size_t c = 0; c < features_.columns.size(); ++c) {
        const Features::Column& column = features_.columns[c];
        if (groups_.empty() || groups_.back().levels * column.levels > joint_levels_at_most)
            groups_.push_back({.level = std::vector<std::uint16_t>(features_.size(), 0), .levels = 1, .columns = {}});
        Group& group = groups_.back();
        group.columns.push_back(c);
        group.levels *= column.levels;
        for (std::size_t i = 0; i < column.level.size(); ++i)
            group.level[i] = static_cast<std::uint16_t>(group.level[i] * column.levels + column.level[i]);
    }
}

std::vector<float> Surrogate::kernel_row(std::size_t config) const {
    std::vector<float> row(features_.size());
    put_kernel(config, row);
    return row;
}

/// Extends the factor by an observation.
void Surrogate::extend_factor(std::size_t config) {
    std::vector<double> row;
    const double noise = std::exp(covariance_.noise);
    double one = 1, left = 1 + noise;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        double entry = kernel_of(config, seen_[i]);
        for (std::size_t j = 0; j < i; ++j) entry -= row[j] * factor_[i][j];
        row.push_back(entry / factor_[i][i]);
        left -= row[i] * row[i];
        one -= row[i] * ones_[i];
    }
    row.push_back(std::sqrt(std::max(left, noise / 2)));
    ones_.push_back(one / row.back());
    factor_.push_back(std::move(row));
    seen_.push_back(config);
}

/// An observation's row for some configs, and what it leaves unknown of them.
void Surrogate::add_row(std::size_t observation, std::size_t begin, std::size_t count) {
    const auto row_of = [&](std::size_t o) {
        return Eigen::Map<Eigen::VectorXf>{&rows_[o * features_.size() + begin], static_cast<Eigen::Index>(count)};
    };
    auto row = row_of(observation);
    const std::vector<double>& factor = factor_[observation];
    std::size_t j = 0;
    for (; j + 4 <= observation; j += 4)
        row -= static_cast<float>(factor[j]) * row_of(j) + static_cast<float>(factor[j + 1]) * row_of(j + 1) +
               static_cast<float>(factor[j + 2]) * row_of(j + 2) + static_cast<float>(factor[j + 3]) * row_of(j + 3);
    for (; j < observation; ++j) row -= static_cast<float>(factor[j]) * row_of(j);
    row *= static_cast<float>(1 / factor[observation]);
    const auto one = static_cast<float>(ones_[observation]);
    for (std::size_t i = 0; i < count; ++i) {
        const float value = row[static_cast<Eigen::Index>(i)];
        variance_[begin + i] = std::max(variance_[begin + i] - value * value, least_variance);
        by_ones_[begin + i] += one * value;
    }
}

void Surrogate::observe(std::size_t config) {
    extend_factor(config);
    rows_.resize(seen_.size() * features_.size());
    put_kernel(config, std::span{rows_}.last(features_.size()));
    for (std::size_t begin = 0; begin < features_.size(); begin += block)
        add_row(seen_.size() - 1, begin, std::min(block, features_.size() - begin));
}

void Surrogate::observe_only(std::vector<std::size_t> configs) {
    seen_.clear();
    factor_.clear();
    ones_.clear();
    values_.clear();
    solved_.clear();
    variance_.assign(features_.size(), 1.0f);
    by_values_.assign(features_.size(), 0.0f);
    by_ones_.assign(features_.size(), 0.0f);
    for (const std::size_t config : configs) extend_factor(config);
    rows_.resize(seen_.size() * features_.size());
    const auto count = static_cast<Eigen::Index>(seen_.size());
    if (count == 0) return;
    Eigen::MatrixXf factor = Eigen::MatrixXf::Zero(count, count);
    Eigen::VectorXf ones(count);
    for (Eigen::Index i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        for (Eigen::Index j = 0; j <= i; ++j)
            factor(i, j) = static_cast<float>(factor_[at][static_cast<std::size_t>(j)]);
        ones[i] = static_cast<float>(ones_[at]);
    }
    for (std::size_t o = 0; o < seen_.size(); ++o)
        put_kernel(seen_[o], std::span{rows_}.subspan(o * features_.size(), features_.size()));
    // All observations of few configs at a time.
    for (std::size_t begin = 0; begin < features_.size(); begin += few) {
        const std::size_t size = std::min(few, features_.size() - begin);
        Eigen::Map<Eigen::MatrixXf, 0, Eigen::OuterStride<>> rows{
            &rows_[begin], static_cast<Eigen::Index>(size), count,
            Eigen::OuterStride<>{static_cast<Eigen::Index>(features_.size())}};
        factor.transpose().triangularView<Eigen::Upper>().solveInPlace<Eigen::OnTheRight>(rows);
        Eigen::Map<Eigen::VectorXf>{&by_ones_[begin], rows.rows()} = rows * ones;
        Eigen::Map<Eigen::VectorXf> variance{&variance_[begin], rows.rows()};
        variance = (1 - rows.rowwise().squaredNorm().array()).max(least_variance);
    }
}

void Surrogate::solve(std::span<const double> values) {
    const std::size_t count = seen_.size();
    if (count == 0) return;
    // Values before the first that is new or another stay solved; of the rest, what changes is added.
    const auto same = static_cast<std::size_t>(std::ranges::mismatch(values_, values).in1 - values_.begin());
    values_.assign(values.begin(), values.end());
    solved_.resize(count, 0);
    for (std::size_t i = same; i < count; ++i) {
        double value = values[i];
        for (std::size_t j = 0; j < i; ++j) value -= factor_[i][j] * solved_[j];
        const double change = value / factor_[i][i] - solved_[i];
        solved_[i] += change;
        const float* row = &rows_[i * features_.size()];
        const auto by = static_cast<float>(change);
        for (std::size_t n = 0; n < by_values_.size(); ++n) by_values_[n] += by * row[n];
    }
    double weight = 0, both = 0, mean = 0;
    for (std::size_t i = 0; i < count; ++i) {
        both += ones_[i] * solved_[i];
        weight += ones_[i] * ones_[i];
        mean += values[i] / static_cast<double>(count);
    }
    const double level = both / weight;
    double squares = 0, spread = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double left = solved_[i] - level * ones_[i];
        squares += left * left;
        spread += (values[i] - mean) * (values[i] - mean) / static_cast<double>(count);
    }
    if (spread < 1e-18) spread = 1;
    scale_ = (squares + scale_weight * spread) / (static_cast<double>(count) + scale_weight);
    const auto base = static_cast<float>(level);
    for (std::size_t n = 0; n < mean_.size(); ++n) mean_[n] = base + by_values_[n] - base * by_ones_[n];
}

void Surrogate::fit(std::span<const double> values, int steps) {
    // Equal values are explained best by lengths without end and no noise, of which nothing can be computed.
    if (std::ranges::adjacent_find(values, std::ranges::not_equal_to{}) == values.end()) return;
    const std::size_t columns = features_.columns.size(), count = columns + 2;
    std::vector<double> theta = covariance_.length;
    theta.push_back(covariance_.additive);
    theta.push_back(covariance_.noise);
    Explanation explanation{features_, seen_, standardised(values)};
    // Steps that grow while a slope keeps its sign and shrink when it turns (Riedmiller and Braun 1993): no line
    // search, and no slope is too steep.
    std::vector<double> best = theta, step(count, 0.3), slope(count), before(count, 0);
    double least = std::numeric_limits<double>::infinity();
    for (int at = 0; at <= steps; ++at) {
        const double density = explanation.evaluate(theta, slope);
        if (!std::isfinite(density)) break;
        if (density < least) {
            least = density;
            best = theta;
        }
        for (std::size_t p = 0; p < count; ++p) {
            const double turn = slope[p] * before[p];
            step[p] = turn > 0 ? std::min(step[p] * 1.3, 1.0) : turn < 0 ? step[p] / 2 : step[p];
            before[p] = slope[p];
            theta[p] -= slope[p] > 0 ? step[p] : slope[p] < 0 ? -step[p] : 0;
        }
    }
    Covariance fitted{.length = {best.begin(), best.begin() + static_cast<std::ptrdiff_t>(columns)},
                      .additive = best[columns],
                      .noise = best[columns + 1]};
    set(fitted);
}

}  // namespace autotune
