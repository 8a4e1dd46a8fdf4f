#ifndef AUTOTUNE_TUNER_WORKER_DEVICE_REFERENCE_H
#define AUTOTUNE_TUNER_WORKER_DEVICE_REFERENCE_H

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "tuner/worker/candidate.h"
#include "tuner/worker/problem_memory.h"
#include "tuner/worker/task.h"

namespace autotune {

/// What is about to run, and how many seconds it is expected to take (0: not known): the parent's clock starts anew.
using Progress = std::function<void(std::string_view phase, double expect_s)>;

/// Makes the reference of a problem, in its `expected` arrays, by the kind that the task says.
/// values  of a CPU reference: value and magnitude of each output, in order
/// throws  Error{usage} when the reference has a NaN that no input explains, DeviceFailure
void establish_reference(Device& device, ScratchPool& pool, ProblemMemory& memory, const ReferenceTask& task,
                         std::span<const MappedMemory> values, const Progress& progress);

/// Computes a device reference on the problem's inputs and compares it, output by output, with the one that is there:
/// first the value of each, with the bound of two sums in double, then the magnitude.
std::vector<Comparison> compare_references(Device& device, ScratchPool& pool, ProblemMemory& memory,
                                           const ReferenceTask& task, const Progress& progress);

}  // namespace autotune
#endif
