#ifndef AUTOTUNE_CACHE_DISPATCH_LADDER_H
#define AUTOTUNE_CACHE_DISPATCH_LADDER_H

#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autotune/dispatcher.h"
#include "cache/dispatch/snapshot.h"
#include "cache/dispatch/stored_predictions.h"
#include "tuner/model/instance.h"

namespace autotune {

/// What the databases say about one op on one kind of device.
struct OpKnowledge {
    Snapshot snapshot{};
    StoredPredictions predictions{};
    std::set<std::string> negatives{};  ///< candidate_name of configs that must not be dispatched
    Today today{};
    std::vector<std::pair<int, int>> compilers{};  ///< NVRTC versions that any row was made with, newest first
};

/// predictions: look at them too.
OpKnowledge read_knowledge(std::span<Store* const> stores, const Op& op, const DeviceIdentity& device,
                           bool predictions);

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
    double time_us = 0;
};

/// One config on one problem: what negatives are remembered by.
std::string candidate_name(const Config& config, std::span<const std::byte> problem_key);

/// Its config as it would run today, or why it cannot: sets `config`, `name` and `refused`.
void judge(LadderStep& step, const Instance& instance, const OpKnowledge& known);

/// The rungs of a problem from the best down, refused candidates included: stored rows of this very problem, fresh ones
/// first, each checked against the actual problem and device; then what a model predicts, unless it does not tell it
/// from the default; then the op's default; then the defaults of its other
/// variants, in case the default fails to load or launch.
std::vector<LadderStep> ladder(const Instance& instance, const OpKnowledge& known);

/// The ladder for people.
Explanation explanation_of(const Instance& instance, std::span<Store* const> stores, const DeviceIdentity& device,
                           bool predictions = true);

}  // namespace autotune
#endif
