#include "tuner/strategies/failures.h"

#include <algorithm>

namespace autotune {
namespace {

constexpr double grown = 1.35;  // over what was fitted: it is fitted again
constexpr int failure_steps = 10;
constexpr std::size_t ended_at_most = 500;  // a fit costs their third power
constexpr double failing_most = 0.999;      // a config may work though all like it failed

}  // namespace

void Failures::note(std::size_t config, bool failed) {
    ended_.push_back(config);
    failed_.push_back(failed ? 1 : 0);
    any_ = any_ || failed;
    if (surrogate_) surrogate_->observe(config);
}

void Failures::learn() {
    if (!any_) return;
    if (!surrogate_) surrogate_.emplace(features_).observe_only(std::vector{ended_});
    if (fitted_ && static_cast<double>(ended_.size()) >= grown * static_cast<double>(fitted_at_)) {
        forget_oldest();
        fitted_at_ = ended_.size();
        // From the typical covariance each time: failures have no noise, so that steps without end lead to lengths
        // without end, and a model that trusts one neighbour alone.
        surrogate_->set({.length = std::vector<double>(features_.columns.size(), 0)});
        surrogate_->fit(failed_, failure_steps);
    }
    surrogate_->solve(failed_);
}

double Failures::works(std::size_t config) const noexcept {
    if (!any_) return 1;
    return 1 - std::clamp(static_cast<double>(surrogate_->mean()[config]), 0.0, failing_most);
}

void Failures::forget_oldest() {
    if (ended_.size() <= ended_at_most) return;
    const auto excess = static_cast<std::ptrdiff_t>(ended_.size() - ended_at_most);
    ended_.erase(ended_.begin(), ended_.begin() + excess);
    failed_.erase(failed_.begin(), failed_.begin() + excess);
    surrogate_->observe_only(std::vector{ended_});
}

}  // namespace autotune
