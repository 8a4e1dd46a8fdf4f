#ifndef AUTOTUNE_STRATEGIES_GUIDED_H
#define AUTOTUNE_STRATEGIES_GUIDED_H

#include "tuner/strategies/prior.h"
#include "tuner/strategy.h"

namespace autotune {

/// A Gaussian process over all valid configs says where improvement is expected most; docs/search.md tells how and how
/// well. The space must outlive the strategy.
std::unique_ptr<Strategy> make_guided(const Space& space, std::uint64_t seed);

/// Guided with a model that is never fitted: lengths, share and noise stay as they are typically.
std::unique_ptr<Strategy> make_bayesian(const Space& space, std::uint64_t seed);

/// Trials at the start of an informed search that are of what is known to be good elsewhere.
inline constexpr std::size_t first_of_known = 10;

/// What is known of a space before it is searched.
struct Knowledge {
    std::vector<Expectation> expected;  ///< in any unit of time; configs without one are taken to be as slow as any
    std::vector<std::size_t> first;     ///< configs to try before all others, in this order
    std::vector<std::size_t> among;     ///< what the next trials are chosen from, until `first_of_known` were asked for
};

/// Guided, where something is known already: the expectation is one more thing that configs have in common, and how
/// much it says the model learns from what is told. Once a hundred configs ended it is left out.
std::unique_ptr<Strategy> make_guided_by(const Space& space, std::uint64_t seed, const Knowledge& knowledge);

}  // namespace autotune
#endif
