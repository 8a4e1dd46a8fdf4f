#ifndef AUTOTUNE_DEVICE_TENSOR_MAP_H
#define AUTOTUNE_DEVICE_TENSOR_MAP_H

#include <cuda.h>

#include "device/driver.h"
#include "device/launch.h"

namespace autotune {

/// Makes the tensor map of a launch over memory at `address`. Allocates nothing: dispatch does it at each call.
/// returns  CUDA_ERROR_NOT_SUPPORTED where the driver makes none, CUDA_ERROR_INVALID_VALUE for more than 5 dimensions,
///          else what the driver says
CUresult encode_tensor_map(const DriverCalls& calls, const TensorMapArgument& map, std::uint64_t address,
                           CUtensorMap& out) noexcept;

}  // namespace autotune
#endif
