#ifndef AUTOTUNE_DEVICE_CUDA_DEVICE_H
#define AUTOTUNE_DEVICE_CUDA_DEVICE_H

#include <memory>

#include "device/device.h"

namespace autotune {

/// A real GPU, through its driver. One a process: it uses the device's primary context, and a sticky fault takes the
/// process with it. A kernel that hangs is the parent process's to end.
/// ordinal  the driver's number of the GPU
/// support  device/support.cu, compiled for it: see device/support.h
/// throws   Error{device} when there is no such GPU or its driver fails, DeviceFailure when `support` does not load
std::unique_ptr<Device> make_cuda_device(int ordinal, const Artefact& support);

}  // namespace autotune
#endif
