#ifndef AUTOTUNE_TUNER_WORKER_RECHECK_H
#define AUTOTUNE_TUNER_WORKER_RECHECK_H

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tuner/bench.h"
#include "tuner/model/instance.h"
#include "tuner/worker/compiled_sources.h"
#include "tuner/worker/effort_plan.h"
#include "tuner/worker/reference_desk.h"
#include "tuner/worker/trial_desk.h"

namespace autotune {

/// The check of a winner beyond the inputs that it was chosen on: other seeds and scalars, and ragged problems near the
/// one at hand. Made for one call.
class Recheck {
public:
    /// What it takes part in; all of it outlives this.
    struct Setting {
        RunLane& lane;
        CompiledSources& store;
        ReferenceDesk& references;
        TrialDesk& desk;
        StageLog& log;
        const EffortPlan& plan;
        const Instance& instance;
        std::uint64_t seed;            ///< of the problem's inputs
        ReferenceDesk::Waiter waiter;  ///< for references
        TrialTask like = {};           ///< what each trial is like, but for its candidate
    };

    explicit Recheck(const Setting& setting) : setting_{setting} {}
    /// Throws Error when the problem itself cannot be had with other inputs; Error{interrupted} as the waiter wants it.
    Verification run(const Config& config);

private:
    struct Turn {
        Instance problem;
        std::uint64_t seed;
    };
    Turn same_problem(const Config& config, int turn) const;
    std::vector<Turn> turns(const Config& config) const;
    std::optional<Outcome> check_on(const Instance& problem, const Config& config,
                                    std::shared_ptr<const HeldProblem> held);

    const Setting setting_;
    Verification verification_;
};

}  // namespace autotune
#endif
