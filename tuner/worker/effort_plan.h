#ifndef AUTOTUNE_TUNER_WORKER_EFFORT_PLAN_H
#define AUTOTUNE_TUNER_WORKER_EFFORT_PLAN_H

#include <cstddef>

#include "tuner/bench.h"

namespace autotune {

/// What an effort means for one trial, one round and the re-check.
struct EffortPlan {
    int samples;
    double at_least_us;    ///< of one sample
    double most_ms;        ///< of all samples of a long candidate
    double drop_factor;    ///< over the best so far
    bool twice;            ///< a second run must give the same bits
    double round_us;       ///< of one sample in final rounds
    double rounds_us;      ///< device time after which they end, when each finalist has the fewest samples that tell
    double warm_up_s;      ///< before them
    int seeds;             ///< other inputs that the winner meets
    double most_work;      ///< of a ragged problem, relative to the problem
    std::size_t problems;  ///< ragged ones at most
};

EffortPlan plan_for(Effort effort);

}  // namespace autotune
#endif
