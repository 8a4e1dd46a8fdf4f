#ifndef AUTOTUNE_CACHE_DISPATCH_LADDER_H
#define AUTOTUNE_CACHE_DISPATCH_LADDER_H

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autotune/dispatcher.h"
#include "cache/dispatch/neighbours.h"
#include "cache/dispatch/robust.h"
#include "cache/dispatch/snapshot.h"
#include "cache/dispatch/stored_predictions.h"
#include "device/identity.h"
#include "tuner/model/instance.h"

namespace autotune {

/// What an application wants of the ladder.
struct LadderRules {
    bool predictions = true;  ///< look at them too
    bool only_local = false;  ///< refuse rows that were measured elsewhere
};

/// What the databases say about one op on another GPU that decisions may be borrowed from.
struct Relative {
    DeviceIdentity device{};
    Similarity similarity = Similarity::none;
    Snapshot snapshot{};
    std::set<std::string> negatives{};
    mutable std::optional<Neighbours> neighbours{};  ///< made when first asked for
};

/// What the databases say about one op on one kind of device. Used by one thread at a time, since what is rarely needed
/// is made when it is first asked for.
struct OpKnowledge {
    LadderRules rules{};
    Snapshot snapshot{};
    std::vector<Relative> relatives{};  ///< siblings first, the most alike first
    StoredPredictions predictions{};
    std::set<std::string> negatives{};  ///< candidate_name of configs that must not be dispatched
    Today today{};
    std::vector<std::pair<int, int>> compilers{};  ///< NVRTC versions that any row was made with, newest first
    mutable std::optional<Neighbours> neighbours{};
    mutable std::optional<RobustConfigs> robust{}, family{};
};

OpKnowledge read_knowledge(std::span<const LayeredStore> stores, const Op& op, const DeviceIdentity& device,
                           const LadderRules& rules);

/// A config that may answer a problem, and how good an answer it would be.
struct LadderStep {
    Rung rung = Rung::default_config;
    Config config{};
    Layer layer = Layer::op;
    bool verified = false, stale = false, imported = false;
    float distance = 0;  ///< Decision::distance
    std::string why{};
    std::string name{};                            ///< candidate_name
    std::string refused{};                         ///< why it can't be used here; empty: it can
    std::vector<std::pair<int, int>> compilers{};  ///< NVRTC that its binary may come from, the best first
    double time_us = 0;                            ///< where it was measured; 0: on many problems
    std::string problem{}, device{};               ///< where it was measured, if that is elsewhere: for people
};

/// One config on one problem: what negatives are remembered by.
std::string candidate_name(const Config& config, std::span<const std::byte> problem_key);

/// Its config as it would run today, or why it cannot: sets `config`, `name` and `refused`.
void judge(LadderStep& step, const Instance& instance, const OpKnowledge& known);

/// The rungs of a problem from the best down, in the order of `Rung`, refused candidates included; each is checked
/// against the actual problem and device. At one rung fresh rows come before stale ones. A prediction counts unless the
/// model does not tell it from the default. Last come the op's default and those of its other variants, in case it
/// fails to load or launch.
/// wanted: once so many can be used, what is worse is left out, but for the defaults. cost: some us a candidate
std::vector<LadderStep> ladder(const Instance& instance, const OpKnowledge& known, std::size_t wanted = ~std::size_t{});

/// The ladder for people. pinned: steps that come before it.
Explanation explanation_of(const Instance& instance, std::span<const LayeredStore> stores, const DeviceIdentity& device,
                           const LadderRules& rules = {}, std::vector<LadderStep> pinned = {});

}  // namespace autotune
#endif
