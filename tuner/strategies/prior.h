#ifndef AUTOTUNE_STRATEGIES_PRIOR_H
#define AUTOTUNE_STRATEGIES_PRIOR_H

#include "tuner/strategy.h"

namespace autotune {

/// What somebody expects of a config before it was tried.
struct Expectation {
    std::size_t number = 0;
    double time_us = 0;
};

/// Asks for the `first` of the expectations that promise the least time, then for whatever the other strategy asks for,
/// which is told everything: expectations decide the order of the first trials and nothing else. Equal times go by
/// number. The other strategy was told what is known already, and `expected` names none of that.
std::unique_ptr<Strategy> make_prior(std::unique_ptr<Strategy> then, std::vector<Expectation> expected,
                                     std::size_t first);

/// A sample of the space, the same for equal seeds, in the order in which it was drawn; none of `without`.
std::vector<std::size_t> sample_of(const Space& space, std::span<const std::size_t> without, std::size_t at_most,
                                   std::uint64_t seed);

}  // namespace autotune
#endif
