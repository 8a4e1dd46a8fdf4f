#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "autotune/error.h"
#include "tuner/model/printable.h"
#include "tuner/model/suggest.h"
#include "tuner/strategies/annealing.h"
#include "tuner/strategies/differential.h"
#include "tuner/strategies/exhaustive.h"
#include "tuner/strategies/genetic.h"
#include "tuner/strategies/guided.h"
#include "tuner/strategies/halving.h"
#include "tuner/strategies/local.h"
#include "tuner/strategies/portfolio.h"
#include "tuner/strategies/random.h"
#include "tuner/strategies/swarm.h"
#include "tuner/strategy.h"

namespace autotune {
namespace {

constexpr std::array<StrategyEntry, 11> table{{
    {"guided", "a model of the whole space that learns what its parameters do", make_guided},
    {"bayesian", "the same with a model whose lengths are fixed", make_bayesian},
    {"portfolio", "guided, genetic and local by turns, the better ones more often", make_portfolio},
    {"local", "restarted greedy descent over configs that differ in one parameter", make_local},
    {"genetic", "children that mix two of the best configs", make_genetic},
    {"differential", "differential evolution on value indices", make_differential},
    {"swarm", "particles between their own best config and that of all", make_swarm},
    {"annealing", "simulated annealing over configs that differ in one parameter", make_annealing},
    {"halving", "successive halving of random starts", make_halving},
    {"random", "uniform over valid configs, without repeats", make_random},
    {"exhaustive", "every valid config, in order", make_exhaustive},
}};

}  // namespace

std::span<const StrategyEntry> strategies() { return table; }

const StrategyEntry& strategy_named(std::string_view name) {
    const auto found = std::ranges::find(table, name, &StrategyEntry::name);
    if (found != table.end()) return *found;
    std::vector<std::string> names;
    for (const StrategyEntry& row : table) names.emplace_back(row.name);
    throw Error{Error::Kind::usage,
                fmt::format("there is no strategy '{}'{}", printable(name), remedy(name, names, "strategies"))};
}

}  // namespace autotune
