#ifndef AUTOTUNE_STRATEGIES_ANNEALING_H
#define AUTOTUNE_STRATEGIES_ANNEALING_H

#include "tuner/strategy.h"

namespace autotune {

/// Simulated annealing over configs that differ in one parameter; restarts from the best when it is frozen.
/// The space must outlive the strategy.
std::unique_ptr<Strategy> make_annealing(const Space& space, std::uint64_t seed);

}  // namespace autotune
#endif
