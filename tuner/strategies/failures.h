#ifndef AUTOTUNE_STRATEGIES_FAILURES_H
#define AUTOTUNE_STRATEGIES_FAILURES_H

#include <cstddef>
#include <optional>
#include <vector>

#include "tuner/strategies/surrogate.h"

namespace autotune {

/// Which configs fail, learned from how others ended: a surrogate of 1 for a failure and 0 for what works, whose
/// lengths are its own, since what makes configs fail need not be what makes them slow. It costs nothing while none
/// fails.
class Failures {
public:
    /// The features must outlive it.
    /// fitted  whether its covariance is fitted to what is noted, or stays as it is typically
    Failures(const Features& features, bool fitted) : features_{features}, fitted_{fitted} {}

    /// How a config ended.
    void note(std::size_t config, bool failed);
    /// Takes in what was noted: works() answers by what was known then.
    void learn();
    /// The chance that a config works; 1 while nothing failed.
    double works(std::size_t config) const noexcept;

private:
    void forget_oldest();

    const Features& features_;
    const bool fitted_;
    std::vector<std::size_t> ended_;
    std::vector<double> failed_;  ///< of each that ended: 1 or 0
    bool any_ = false;
    std::size_t fitted_at_ = 6;  ///< how many had ended at the last fit
    std::optional<Surrogate> surrogate_;
};

}  // namespace autotune
#endif
