#ifndef AUTOTUNE_STRATEGIES_HALVING_H
#define AUTOTUNE_STRATEGIES_HALVING_H

#include "tuner/strategy.h"

namespace autotune {

/// Successive halving: of random starts, the better half gets twice the trials around it, until one is left; then anew.
/// The space must outlive the strategy.
std::unique_ptr<Strategy> make_halving(const Space& space, std::uint64_t seed);

}  // namespace autotune
#endif
