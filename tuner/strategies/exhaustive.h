#ifndef AUTOTUNE_STRATEGIES_EXHAUSTIVE_H
#define AUTOTUNE_STRATEGIES_EXHAUSTIVE_H

#include "tuner/strategy.h"

namespace autotune {

/// Every valid config, in order. The space must outlive the strategy.
std::unique_ptr<Strategy> make_exhaustive(const Space& space, std::uint64_t seed);

}  // namespace autotune
#endif
