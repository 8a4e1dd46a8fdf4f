#ifndef AUTOTUNE_CACHE_DISPATCH_PLAN_H
#define AUTOTUNE_CACHE_DISPATCH_PLAN_H

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "autotune/dispatcher.h"
#include "cache/dispatch/decisions.h"
#include "cache/dispatch/kernels.h"
#include "cache/dispatch/workspaces.h"
#include "device/driver.h"
#include "tuner/model/instance.h"

namespace autotune {

/// An argument whose place is known and, unless it is a value, whose contents come with each call.
struct PlannedArgument {
    enum class Kind : std::uint8_t { value, tensor, scratch, scalar, tensor_map };
    Kind kind = Kind::value;
    DType dtype = DType::f32;  ///< scalar
    std::uint16_t index = 0;   ///< of the tensor, scalar or tensor map
    std::uint64_t bits = 0;    ///< value; scratch: offset in the workspace
};

struct PlannedLaunch {
    CUfunction kernel = nullptr;
    Dim3 grid, block, cluster;
    std::uint32_t shared_bytes = 0, repeat = 1;
    bool cooperative = false;
    std::uint32_t first_argument = 0, argument_count = 0;
};

/// A module-scope variable that gets a tensor's contents before the launches.
struct PlannedCopy {
    CUdeviceptr to = 0;
    std::uint16_t tensor = 0;
    std::uint64_t bytes = 0;
};

struct PlannedZeroing {
    std::uint64_t offset = 0, bytes = 0;  ///< in the workspace
};

/// A tensor map's shape; its address comes with each call, or from the workspace.
struct PlannedTensorMap {
    PlannedArgument buffer;
    TensorMapArgument map;
};

/// Everything that a call of one signature needs, as numbers: which kernels, which launch, which argument is what.
struct Plan {
    std::vector<std::uint64_t> signature;
    std::uint64_t hash = 0;
    Decision decision;  ///< with its texts interned

    std::vector<PlannedLaunch> launches;
    std::vector<PlannedArgument> arguments;
    std::vector<PlannedCopy> copies;
    std::vector<PlannedZeroing> zeroings;
    std::vector<PlannedTensorMap> tensor_maps;
    std::uint64_t workspace_bytes = 0;
    bool repeatable = true;  ///< may run again after a part of it ran
    std::string candidate;   ///< which config on which problem and device: what is remembered of failures
    DecidedConfig decided;   ///< what processes tell each other
    struct OnlineProblem* online = nullptr;      ///< counts the calls, some of which try something
    mutable std::atomic<std::uint32_t> used{0};  ///< when last, on a clock that ticks with misses
    /// No table has it any more: a hint to it is out of date.
    mutable std::atomic<bool> gone{false};
};

inline constexpr std::size_t most_arguments = 64, most_tensor_maps = 8;

/// Numbers of a config for an instance, the kernels in place. scalars_given: how many scalars each call brings; their
/// values are read at each call where an argument is just that scalar.
/// Throws Error when a launch cannot be planned (too many arguments), DeviceFailure for what the driver refuses.
void fill_plan(Plan& plan, const Instance& instance, const Config& config, Kernels& kernels, const KernelSet& set,
               std::size_t scalars_given);

/// Launches the plan. workspace: null where the plan needs none; else it is the plan's alone until all is enqueued.
/// Returns the first failure; `begun` says whether a kernel had been launched by then.
CUresult launch_plan(const DriverCalls& calls, const Plan& plan, std::span<const TensorArgument> tensors,
                     std::span<const ScalarArgument> scalars, CUstream stream, const Workspace* workspace,
                     bool& begun) noexcept;

/// Whether a scalar's value decides more than an argument of that value: fields that follow from it, grids, conditions.
/// Such scalars are part of a call's signature; one entry a scalar of the op.
std::vector<bool> deciding_scalars(const Op& op);

}  // namespace autotune
#endif
