#ifndef AUTOTUNE_DEVICE_CUDA_TIMER_H
#define AUTOTUNE_DEVICE_CUDA_TIMER_H

#include <span>
#include <vector>

#include "device/cuda_launch.h"
#include "device/nvml.h"

namespace autotune {

/// An in-place buffer of a set and its pristine copy.
struct CudaRestore {
    std::size_t set;
    CUdeviceptr target, pristine;
    std::size_t bytes;
};

/// Runs a sequence once and waits for it. Returns the time between events before and after, in us, which holds a first
/// launch's cost. Throws DeviceFailure.
double time_once(CUstream stream, const CudaSequence& sequence);

/// Device time of one sequence, over sets of buffers that are used in turn.
///
/// A sample is one replay of a graph of n sequences, divided by n; the graph replays lie back to back, so that the
/// host's launch time stays out. n reaches plan.at_least_us and is a multiple of the sets, but one for sequences of
/// 5 ms, or of 2 ms where the problem is so large that two sets are enough;
/// with restores each set is used at most once a replay, and the copies back run between replays, untimed.
/// Where the capture fails, or the plan says so, the same sequences are launched one by one between the events.
/// throws  DeviceFailure
Samples time_sequences(CUstream stream, std::span<const CudaSequence> sets, std::span<const CudaRestore> restores,
                       const TimePlan& plan, const GpuMonitor* monitor);

}  // namespace autotune
#endif
