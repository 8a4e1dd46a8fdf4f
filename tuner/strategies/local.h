#ifndef AUTOTUNE_STRATEGIES_LOCAL_H
#define AUTOTUNE_STRATEGIES_LOCAL_H

#include "tuner/strategy.h"

namespace autotune {

/// Restarted greedy descent over configs that differ in one parameter. The space must outlive the strategy.
std::unique_ptr<Strategy> make_local(const Space& space, std::uint64_t seed);

}  // namespace autotune
#endif
