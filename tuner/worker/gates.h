#ifndef AUTOTUNE_TUNER_WORKER_GATES_H
#define AUTOTUNE_TUNER_WORKER_GATES_H

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "tuner/model/op.h"
#include "tuner/model/outcome.h"

namespace autotune {

/// The binaries of one config: an artefact for each of its sources.
struct Binaries {
    std::vector<std::string> sources;
    std::vector<Artefact> artefacts;

    /// The kernel of a launch; nullptr when the binaries have none of that name.
    const KernelInfo* kernel_of(const Launch& launch) const noexcept;
};

/// What a config's kernels take of the device, over all of its launches.
struct Resources {
    int registers = 0;      ///< a thread, the most of any launch
    int spill_bytes = 0;    ///< the sum over its kernels
    int shared_bytes = 0;   ///< static and dynamic, the most of any launch
    int blocks_per_sm = 0;  ///< the fewest of any launch
};

/// What the binaries need, without running them.
Resources resources_of(const Binaries& binaries, const LaunchSequence& sequence, const DeviceLimits& limits);

/// Why compiled binaries end here, before they cost the device anything: they do not fit, spill more than their variant
/// allows, or lost the asynchronous path that a pipelined variant is about; nullopt: they go on.
std::optional<Outcome> gate(const Variant& variant, const Binaries& binaries, const LaunchSequence& sequence,
                            const DeviceLimits& limits);

/// The least time that the work can take, in microseconds, times 0.9; 0: the op does not say.
/// flops, bytes        of the op's work; bytes beyond the second-level cache count
/// copy_bandwidth_gbs  what a large copy reached
/// smallest_bytes      of an element of the inputs: the tensor units' rate goes by it
double floor_us(double flops, double bytes, const DeviceIdentity& device, double copy_bandwidth_gbs,
                std::size_t smallest_bytes);

}  // namespace autotune
#endif
