#include <algorithm>
#include <array>

#include "tuner/strategies/exhaustive.h"
#include "tuner/strategies/local.h"
#include "tuner/strategies/random.h"
#include "tuner/strategy.h"

namespace autotune {
namespace {

constexpr std::array<StrategyEntry, 3> table{{
    {"local", "restarted greedy descent over configs that differ in one parameter", make_local},
    {"random", "uniform over valid configs, without repeats", make_random},
    {"exhaustive", "every valid config, in order", make_exhaustive},
}};

}  // namespace

std::span<const StrategyEntry> strategies() { return table; }

const StrategyEntry* strategy_named(std::string_view name) {
    const auto found = std::ranges::find(table, name, &StrategyEntry::name);
    return found == table.end() ? nullptr : &*found;
}

}  // namespace autotune
