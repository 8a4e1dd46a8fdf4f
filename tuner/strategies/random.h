#ifndef AUTOTUNE_STRATEGIES_RANDOM_H
#define AUTOTUNE_STRATEGIES_RANDOM_H

#include "tuner/strategy.h"

namespace autotune {

/// Uniform over valid configs, without repeats. The space must outlive the strategy.
std::unique_ptr<Strategy> make_random(const Space& space, std::uint64_t seed);

}  // namespace autotune
#endif
