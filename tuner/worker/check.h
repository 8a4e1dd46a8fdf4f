#ifndef AUTOTUNE_TUNER_WORKER_CHECK_H
#define AUTOTUNE_TUNER_WORKER_CHECK_H

#include <optional>

#include "tuner/worker/candidate.h"
#include "tuner/worker/device_reference.h"
#include "tuner/worker/problem_memory.h"
#include "tuner/worker/task.h"

namespace autotune {

/// What a check found out.
struct CheckResult {
    std::optional<Outcome> failure;
    double max_error = 0;  ///< largest error over its bound
    double run_s = 0;      ///< time of the last run, the device's where it has a clock, else the host's: an upper bound
    bool twice = false;    ///< a second run gave the same bits as the one that the memory saved
    bool slow = false;     ///< by that clock it will be dropped: it had no second run yet
    double too_slow_us = 0;  ///< its device time is surely at least this, more than what is dropped; 0: it may not be
};

/// Runs a candidate once on poisoned outputs and scratch, and judges all that it left: guard zones, each output
/// element by element, inputs that it should only have read. With task.twice a second run, on other poison, must give
/// the same bits (a candidate that is said to be not deterministic is compared with the reference again instead; one
/// that is dropped for its time is spared it).
/// Throws DeviceFailure as it comes.
CheckResult check(Device& device, ProblemMemory& memory, Candidate& candidate, const TrialTask& task,
                  const Progress& progress);

/// The second run of a candidate that had none for its slowness, and was not dropped after all.
std::optional<Outcome> check_again(Device& device, ProblemMemory& memory, Candidate& candidate, const TrialTask& task,
                                   CheckResult& result, const Progress& progress);

/// Judges set 0 again after timing: the last of many launches must have left the right result and no stray write, too.
std::optional<Outcome> check_after_timing(Device& device, ProblemMemory& memory, const Candidate& candidate,
                                          const TrialTask& task, const CheckResult& checked);

}  // namespace autotune
#endif
