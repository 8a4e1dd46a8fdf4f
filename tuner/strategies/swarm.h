#ifndef AUTOTUNE_STRATEGIES_SWARM_H
#define AUTOTUNE_STRATEGIES_SWARM_H

#include "tuner/strategy.h"

namespace autotune {

/// Particles that fly between their own best config and that of all.
/// The space must outlive the strategy.
std::unique_ptr<Strategy> make_swarm(const Space& space, std::uint64_t seed);

}  // namespace autotune
#endif
