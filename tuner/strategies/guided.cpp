#include "tuner/strategies/guided.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tuner/strategies/failures.h"
#include "tuner/strategies/surrogate.h"
#include "tuner/strategies/unvisited.h"

namespace autotune {
namespace {

/// Spaces up to this size are modelled as a whole; of larger ones, a pool: what was tried, what is next to the best,
/// and configs drawn at random.
constexpr std::size_t pool_at_most = 20'000;
constexpr std::size_t elites = 8;
/// Configs far from each other that are tried before the model is asked; and the least that must have worked.
constexpr std::size_t spread_first = 8, worked_first = 3;
/// The model is fitted when there are so many times as many observations as at the last fit.
constexpr double fit_again = 1.35;
constexpr int steps_of_few = 15, steps_of_many = 8;
constexpr std::size_t many = 60;
/// Configs after which what was expected beforehand is left out of the model: it led the search to where the best of
/// other places are, and from then on would keep it there.
constexpr std::size_t expectations_until = 100;
/// More than these, and the oldest of the slower half is left out: a fit costs their third power.
constexpr std::size_t observations_at_most = 500;

/// What a standard normal variable is expected to exceed -u by.
double expected_excess(double u) {
    const double density = std::exp(-0.5 * u * u) * 0.3989422804014327;
    if (u < -5) return density / (u * u + 3);  // the difference below would cancel
    return u * 0.5 * std::erfc(-u * 0.7071067811865476) + density;
}

/// The inverse, from below.
double excess_argument(double excess) {
    double low = -40, high = 40;
    for (int i = 0; i < 14; ++i) (expected_excess((low + high) / 2) < excess ? low : high) = (low + high) / 2;
    return low;
}

class Guided final : public Strategy {
public:
    Guided(const Space& space, std::uint64_t seed, bool fitted, const Knowledge& knowledge = {})
        : space_{space},
          seed_{seed},
          fitted_{fitted},
          random_{seed},
          unvisited_{space.size()},
          first_{knowledge.first.rbegin(), knowledge.first.rend()},
          among_{knowledge.among.begin(), knowledge.among.end()} {
        double slowest = 0;
        for (const Expectation& one : knowledge.expected) slowest = std::max(slowest, one.time_us);
        if (slowest > 0) expected_us_.assign(space.size(), slowest);
        for (const Expectation& one : knowledge.expected) expected_us_[one.number] = one.time_us;
    }

    std::vector<std::size_t> ask(std::size_t at_most) override {
        std::vector<std::size_t> asked;
        while (asked.size() < at_most && left() > 0) {
            const std::size_t number = next();
            take(number);
            asked.push_back(number);
        }
        return asked;
    }

    void tell(std::size_t number, const Outcome& outcome) override {
        if (unvisited_.has(number)) take(number);
        const bool known = (outcome.ok() || outcome.ending == Ending::dropped) && outcome.time_us > 0 &&
                           std::isfinite(outcome.time_us);
        Told& told = tried_[place_of_tried_.at(number)];
        if (told.ended) return;
        told.ended = true;
        if (failures_ && !stale_)
            if (const auto place = place_in_pool(number)) failures_->note(*place, !known);
        if (!known) return;
        told.time_us = outcome.time_us;
        if (worked_ == 0) reference_us_ = outcome.time_us;
        ++worked_;
        const bool best = outcome.ok() && !(outcome.time_us >= best_us_);
        if (best) best_us_ = outcome.time_us;
        stale_ = stale_ || (best && pooled());
    }

    std::optional<double> expected_gain() const override { return gain_; }

private:
    /// A config that was asked for or told.
    struct Told {
        std::size_t number = 0;
        bool ended = false;
        std::optional<double> time_us;  ///< nullopt: outstanding, or failed
        double guess = 0;               ///< what stands in for its value until it ends
    };

    bool pooled() const { return space_.size() > pool_at_most; }
    std::size_t left() const { return space_.size() - tried_.size(); }

    void take(std::size_t number) {
        unvisited_.take(number);
        place_of_tried_.emplace(number, tried_.size());
        tried_.push_back({.number = number});
        if (!surrogate_ || stale_) return;
        const std::optional<std::size_t> place = place_in_pool(number);
        if (!place) {
            stale_ = true;
            return;
        }
        note_distance(*place);
        tried_.back().guess = surrogate_->observations() ? surrogate_->mean()[*place] : 0;
        surrogate_->observe(*place);
        observed_.push_back(tried_.size() - 1);
    }

    std::optional<std::size_t> place_in_pool(std::size_t number) const {
        if (!pooled()) return number;
        const auto found = std::ranges::lower_bound(pool_, number);
        if (found == pool_.end() || *found != number) return std::nullopt;
        return static_cast<std::size_t>(found - pool_.begin());
    }

    std::size_t next() {
        gain_.reset();
        while (!first_.empty()) {
            const std::size_t number = first_.back();
            first_.pop_back();
            if (unvisited_.has(number)) return number;
        }
        if (tried_.size() >= first_of_known) among_.clear();
        if (tried_.size() >= expectations_until && !expected_us_.empty()) {
            expected_us_.clear();
            surrogate_.reset();
            fitted_at_ = 0;
        }
        if (!surrogate_ || stale_) make_model();
        const std::size_t started = expected_us_.empty() ? spread_first : worked_first;
        if (tried_.size() < started || worked_ < worked_first) return farthest();
        if (fit_due()) fit();
        return most_promising();
    }

    // The model ------------------------------------------------------------------------------------------------------

    void make_model() {
        make_pool();
        std::vector<double> expected_us;
        for (std::size_t i = 0; i < pool_.size() && !expected_us_.empty(); ++i)
            expected_us.push_back(expected_us_[pool_[i]]);
        const std::optional<Covariance> before = surrogate_ ? std::optional{surrogate_->covariance()} : std::nullopt;
        features_ = features_of(space_, pool_, expected_us);
        priority_.clear();
        for (const std::uint64_t identity : features_.identity) priority_.push_back(priority_of(identity, seed_));
        surrogate_.emplace(features_);
        if (before && before->length.size() == features_.columns.size()) surrogate_->set(*before);
        observe_all();
        failures_.emplace(features_, fitted_);
        for (const Told& told : tried_)
            if (const auto place = place_in_pool(told.number); told.ended && place)
                failures_->note(*place, !told.time_us);
    }

    void make_pool() {
        pool_.clear();
        if (!pooled()) {
            pool_.resize(space_.size());
            std::iota(pool_.begin(), pool_.end(), std::size_t{0});
            return;
        }
        pool_.insert(pool_.end(), among_.begin(), among_.end());
        std::vector<std::pair<double, std::size_t>> best;
        for (const Told& told : tried_) {
            pool_.push_back(told.number);
            if (told.time_us) best.emplace_back(*told.time_us, told.number);
        }
        std::ranges::sort(best);
        for (std::size_t i = 0; i < std::min(elites, best.size()); ++i) {
            const auto near = space_.neighbours(best[i].second, Space::Neighbourhood::hamming);
            pool_.insert(pool_.end(), near.begin(), near.end());
        }
        for (std::size_t i = 0; i < pool_at_most; ++i) pool_.push_back(random_.below(space_.size()));
        std::ranges::sort(pool_);
        pool_.erase(std::unique(pool_.begin(), pool_.end()), pool_.end());
    }

    /// Puts all that was tried into a model that knows nothing, but for failures, which have no value.
    void observe_all() {
        stale_ = false;
        observed_.clear();
        nearest_.assign(pool_.size(), std::numeric_limits<float>::max());
        for (std::size_t i = 0; i < tried_.size(); ++i) {
            const std::optional<std::size_t> place = place_in_pool(tried_[i].number);
            if (!place) continue;
            note_distance(*place);
            if (!tried_[i].ended || tried_[i].time_us) observed_.push_back(i);
        }
        leave_out_slow();
        std::vector<std::size_t> places;
        for (const std::size_t i : observed_) places.push_back(*place_in_pool(tried_[i].number));
        surrogate_->observe_only(std::move(places));
    }

    void leave_out_slow() {
        if (observed_.size() <= observations_at_most) return;
        std::vector<double> times;
        for (const std::size_t i : observed_) times.push_back(tried_[i].time_us.value_or(0));
        std::vector<double> sorted = times;
        std::ranges::nth_element(sorted, sorted.begin() + observations_at_most / 2);
        const double limit = sorted[observations_at_most / 2];
        std::size_t excess = observed_.size() - observations_at_most, at = 0;
        std::erase_if(observed_, [&](std::size_t) { return times[at++] > limit && excess > 0 && excess-- > 0; });
    }

    bool fit_due() const {
        return fitted_ && static_cast<double>(observed_.size()) >= fit_again * static_cast<double>(fitted_at_) &&
               observed_.size() >= fitted_at_ + worked_first;
    }

    void fit() {
        fitted_at_ = observed_.size();
        if (pooled())
            make_model();
        else
            observe_all();
        surrogate_->fit(values(), observed_.size() < many ? steps_of_few : steps_of_many);
    }

    /// Logarithms of the observed times; guesses for what is outstanding.
    std::vector<double> values() {
        std::vector<double> out;
        for (const std::size_t i : observed_)
            out.push_back(tried_[i].time_us ? std::log(*tried_[i].time_us / reference_us_) : tried_[i].guess);
        return out;
    }

    // What comes next ------------------------------------------------------------------------------------------------

    /// The config that is farthest from all that was tried.
    std::size_t farthest() {
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < pool_.size(); ++i) {
            if (!unvisited_.has(pool_[i])) continue;
            if (!best || nearest_[i] > nearest_[*best] ||
                (nearest_[i] == nearest_[*best] && priority_[i] < priority_[*best]))
                best = i;
        }
        return best ? pool_[*best] : *unvisited_.draw(random_);
    }

    void note_distance(std::size_t place) {
        if (worked_ >= worked_first && tried_.size() > spread_first) return;
        std::vector<float> distance(pool_.size(), 0);
        for (const Features::Column& column : features_.columns) {
            if (column.derived) continue;  // the parameter counts already
            const float* row = column.distance.data() + column.level[place] * column.levels;
            for (std::size_t i = 0; i < distance.size(); ++i) distance[i] += row[column.level[i]] / column.widest;
        }
        for (std::size_t i = 0; i < distance.size(); ++i) nearest_[i] = std::min(nearest_[i], distance[i]);
    }

    /// The config whose improvement on the best is expected to be largest.
    std::size_t most_promising() {
        surrogate_->solve(values());
        failures_->learn();
        const double best_value = best_known();
        const std::span<const float> mean = surrogate_->mean(), variance = surrogate_->variance();
        const double scale = std::sqrt(surrogate_->scale());
        const double widest = std::sqrt(static_cast<double>(*std::ranges::max_element(variance))) * scale;
        std::optional<std::size_t> best;
        double most = -1, cut = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < pool_.size(); ++i) {
            if (!unvisited_.has(pool_[i]) || (!among_.empty() && !among_.contains(pool_[i]))) continue;
            const double deviation = std::sqrt(static_cast<double>(variance[i])) * scale;
            const double u = (best_value - static_cast<double>(mean[i])) / deviation;
            if (u < cut) continue;
            // The chance that it works, squared: one that fails costs a trial and tells nothing of times.
            const double gain = deviation * expected_excess(u) * std::pow(failures_->works(i), 2);
            if (gain < most || (gain == most && !(priority_[i] < priority_[*best]))) continue;
            if (gain > most)
                cut = excess_argument(gain / widest);  // below, not even the widest deviation gains as much
            most = gain;
            best = i;
        }
        if (!best && !among_.empty()) {  // all of it was tried
            among_.clear();
            return most_promising();
        }
        if (!best) return *unvisited_.draw(random_);
        gain_ = most;
        return pool_[*best];
    }

    double best_known() const {
        double best = std::numeric_limits<double>::infinity();
        for (const std::size_t i : observed_)
            if (tried_[i].time_us) best = std::min(best, std::log(*tried_[i].time_us / reference_us_));
        return best;
    }

    const Space& space_;
    const std::uint64_t seed_;
    const bool fitted_;
    RandomSource random_;
    Unvisited unvisited_;
    std::vector<Told> tried_;  ///< in the order of asks and tells
    std::unordered_map<std::size_t, std::size_t> place_of_tried_;
    std::size_t worked_ = 0;
    double best_us_ = std::numeric_limits<double>::infinity();
    std::vector<double> expected_us_;        ///< of each config; empty without expectations
    std::vector<std::size_t> first_;         ///< the most promising stands last
    std::unordered_set<std::size_t> among_;  ///< what the next is chosen from; empty: all

    std::vector<std::size_t> pool_;  ///< numbers, ascending
    Features features_;
    std::vector<std::uint64_t> priority_;
    std::optional<Surrogate> surrogate_;
    std::optional<Failures> failures_;
    bool stale_ = false;                 ///< the pool lacks what it should hold
    std::vector<std::size_t> observed_;  ///< places in tried_, in the order of the surrogate's observations
    std::size_t fitted_at_ = spread_first - worked_first;
    double reference_us_ = 1;     ///< any time at all, so that only ratios matter: the first
    std::optional<double> gain_;  ///< expected of the last config, of the logarithm of time
    std::vector<float> nearest_;  ///< of each config of the pool: how far from what was tried
};

}  // namespace

std::unique_ptr<Strategy> make_guided(const Space& space, std::uint64_t seed) {
    return std::make_unique<Guided>(space, seed, true);
}

std::unique_ptr<Strategy> make_bayesian(const Space& space, std::uint64_t seed) {
    return std::make_unique<Guided>(space, seed, false);
}

std::unique_ptr<Strategy> make_guided_by(const Space& space, std::uint64_t seed, const Knowledge& knowledge) {
    return std::make_unique<Guided>(space, seed, true, knowledge);
}

}  // namespace autotune
