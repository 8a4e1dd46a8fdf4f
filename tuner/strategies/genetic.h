#ifndef AUTOTUNE_STRATEGIES_GENETIC_H
#define AUTOTUNE_STRATEGIES_GENETIC_H

#include "tuner/strategy.h"

namespace autotune {

/// A population of the best configs: each child mixes two of them and changes a value now and then.
/// The space must outlive the strategy.
std::unique_ptr<Strategy> make_genetic(const Space& space, std::uint64_t seed);

}  // namespace autotune
#endif
