#ifndef AUTOTUNE_STRATEGIES_PORTFOLIO_H
#define AUTOTUNE_STRATEGIES_PORTFOLIO_H

#include "tuner/strategy.h"

namespace autotune {

/// Several strategies by turns; those whose configs were better lately get more of them.
/// The space must outlive the strategy.
std::unique_ptr<Strategy> make_portfolio(const Space& space, std::uint64_t seed);

}  // namespace autotune
#endif
