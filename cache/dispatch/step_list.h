#ifndef AUTOTUNE_CACHE_DISPATCH_STEP_LIST_H
#define AUTOTUNE_CACHE_DISPATCH_STEP_LIST_H

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/dispatch/ladder.h"

namespace autotune {

/// The steps of a ladder while they are collected, the best first: judged, and each config once.
class StepList {
public:
    StepList(const Instance& instance, const OpKnowledge& known, std::size_t wanted)
        : instance_{instance}, known_{known}, wanted_{wanted} {}

    const Instance& instance() const noexcept { return instance_; }
    const OpKnowledge& known() const noexcept { return known_; }
    /// As many steps can be used as are wanted.
    bool enough() const noexcept { return usable_ >= wanted_; }
    std::size_t wanted() const noexcept { return wanted_; }
    bool has(std::string_view name) const noexcept;
    /// elsewhere: what has failed on the GPU that it was measured on.
    void add(LadderStep step, const std::set<std::string>* elsewhere = nullptr);
    /// As it is.
    void add_judged(LadderStep step);
    std::vector<LadderStep> take() { return std::move(steps_); }
    bool empty() const noexcept { return steps_.empty(); }

private:
    const Instance& instance_;
    const OpKnowledge& known_;
    std::size_t wanted_, usable_ = 0;
    std::vector<LadderStep> steps_;
};

/// A row as a step of that rung, without its `why`.
LadderStep step_of(const Snapshot& snapshot, const SnapshotRow& row, Rung rung);
/// ", but stale since ..., measured elsewhere": what there is to say against a row.
std::string reservations(const Snapshot& snapshot, const SnapshotRow& row);

// Rungs from nearest to family, in this order: what was measured for another problem or on another GPU.
void add_nearest(StepList& steps);
void add_siblings(StepList& steps);
void add_sibling_nearest(StepList& steps);
void add_robust(StepList& steps);
void add_family(StepList& steps);

}  // namespace autotune
#endif
