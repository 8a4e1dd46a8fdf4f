#ifndef AUTOTUNE_TUNER_WORKER_TRIAL_DESK_H
#define AUTOTUNE_TUNER_WORKER_TRIAL_DESK_H

#include <memory>
#include <utility>

#include "tuner/model/outcome.h"
#include "tuner/worker/run_lane.h"

namespace autotune {

/// Where a re-check puts its problems.
inline constexpr int recheck_slot = 1;

/// Asks a lane's worker for trials of the problem at hand, slot 0, which it gives back to a worker that does not hold
/// it. Used on the lane's thread, but for set_main.
class TrialDesk {
public:
    /// lane: outlives this.
    TrialDesk(RunLane& lane, const Patience& patience) : lane_{lane}, patience_{patience} {}

    /// No trial is under way.
    void set_main(std::shared_ptr<const HeldProblem> problem) { main_ = std::move(problem); }
    /// The re-check of a large problem may have needed the room.
    void hold_main();
    /// Whatever slot 0 holds by now.
    void hold_main_anew();
    const Patience& patience() const noexcept { return patience_; }

    /// One that is lost is that candidate's outcome, and replaced for the next. Throws Error where the worker does not
    /// start or its device is gone.
    Outcome ask(const TrialTask& task) { return ask(task, patience_); }
    Outcome ask(const TrialTask& task, const Patience& patience);

private:
    RunLane& lane_;
    const Patience patience_;
    std::shared_ptr<const HeldProblem> main_;
};

}  // namespace autotune
#endif
