#ifndef AUTOTUNE_TUNER_WORKER_PREDICTOR_H
#define AUTOTUNE_TUNER_WORKER_PREDICTOR_H

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tuner/model/instance.h"
#include "tuner/worker/compiled_sources.h"
#include "tuner/worker/run_lane.h"
#include "tuner/worker/trial_desk.h"

namespace autotune {

/// A process with an emulated device, and the desk that has it model times of the problem at hand.
struct ModellingLane {
    RunLane* lane = nullptr;
    TrialDesk* desk = nullptr;
};

/// Has configs compiled and their times modelled, unchecked, on the problem that the lanes' desks hold. One that does
/// not compile, does not fit, or runs into what the emulator lacks has no prediction, and that is all that happens.
/// go_on: called at least ten times a second, on this thread; false ends it with what there is.
/// Throws the obstacle where nothing compiles at all.
std::vector<std::optional<double>> predict_times(const Instance& instance, std::span<const Config> configs,
                                                 CompiledSources& store, std::span<const ModellingLane> lanes,
                                                 const std::function<bool()>& go_on);

}  // namespace autotune
#endif
