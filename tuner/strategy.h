#ifndef AUTOTUNE_TUNER_STRATEGY_H
#define AUTOTUNE_TUNER_STRATEGY_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tuner/model/outcome.h"
#include "tuner/model/space.h"

namespace autotune {

/// Chooses which configs to try next, by their number in a space. It sees numbers only, never a device, so every
/// strategy is tested with a made-up cost function. Equal seeds and equal tells give equal sequences.
class Strategy {
public:
    virtual ~Strategy() = default;
    /// Up to `at_most` configs to try next, none twice. Empty with trials outstanding means wait for a tell; empty with
    /// none means done.
    virtual std::vector<std::size_t> ask(std::size_t at_most) = 0;
    /// How the trial of an earlier answer ended, in the order of asks; the default config and what a resumed run knows
    /// are told without having been asked for. Failures are told too; `dropped` is a lower bound.
    virtual void tell(std::size_t number, const Outcome& outcome) = 0;
    /// The share of the best time that the config it asked for last is expected to save; nullopt: it does not know.
    virtual std::optional<double> expected_gain() const { return std::nullopt; }
};

struct StrategyEntry {
    std::string_view name, about;
    std::unique_ptr<Strategy> (*make)(const Space& space, std::uint64_t seed);
};

/// Every strategy there is: flag parsing, `--help` and the tests all read this table.
std::span<const StrategyEntry> strategies();
/// Throws Error{usage} with those there are when there is none of that name.
const StrategyEntry& strategy_named(std::string_view name);

}  // namespace autotune
#endif
