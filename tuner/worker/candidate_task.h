#ifndef AUTOTUNE_TUNER_WORKER_CANDIDATE_TASK_H
#define AUTOTUNE_TUNER_WORKER_CANDIDATE_TASK_H

#include <memory>

#include "tuner/model/instance.h"
#include "tuner/worker/gates.h"
#include "tuner/worker/task.h"

namespace autotune {

/// What the run worker is told of a config on a problem: its binaries and the launches they are for.
/// slot: of the problem, as the worker holds it. emulated: the device takes the PTX. Throws Error as the config's
/// launch expressions do.
CandidateTask candidate_task(const Instance& problem, const Config& config, const Binaries& binaries, int slot,
                             bool emulated);

}  // namespace autotune
#endif
