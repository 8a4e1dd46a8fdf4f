#ifndef AUTOTUNE_STRATEGIES_DIFFERENTIAL_H
#define AUTOTUNE_STRATEGIES_DIFFERENTIAL_H

#include "tuner/strategy.h"

namespace autotune {

/// Differential evolution on value indices: each member moves along the difference of two others.
/// The space must outlive the strategy.
std::unique_ptr<Strategy> make_differential(const Space& space, std::uint64_t seed);

}  // namespace autotune
#endif
