#ifndef AUTOTUNE_TUNER_WORKER_COMPILE_SPACE_H
#define AUTOTUNE_TUNER_WORKER_COMPILE_SPACE_H

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "tuner/model/instance.h"
#include "tuner/model/outcome.h"
#include "tuner/worker/worker_bench.h"

namespace autotune {

/// A config that was compiled for its device's capability and not run.
struct CompiledConfig {
    Config config;
    /// `timed` stands for a success here, without a time; else why it ends before it could run. With its resources.
    Outcome outcome;
    std::vector<Artefact> artefacts;  ///< of its sources, in the order of Instance::sources; empty on a failure
};

/// Compiles configs in a pool of processes and holds them against the limits of the instance's device, which need not
/// be here. In the order of `configs`; those that were not reached are left out.
/// progress  called about ten times a second with the number that are done; false stops it
std::vector<CompiledConfig> compile_configs(const Instance& instance, std::span<const Config> configs,
                                            const WorkerOptions& options,
                                            const std::function<bool(std::size_t done)>& progress = {});

}  // namespace autotune
#endif
