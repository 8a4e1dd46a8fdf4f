#include "tuner/worker/candidate_task.h"

#include <algorithm>

#include "device/identity.h"

namespace autotune {
namespace {

LaunchSequence sequence_of(const Instance& problem, const Config& config, const Binaries& binaries) {
    if (!problem.needs_blocks_per_sm(config)) return problem.launches(config);
    // The grid depends on how many blocks fit, which does not depend on the grid.
    const int blocks = std::max(1, resources_of(binaries, problem.launches(config, 1), problem.limits()).blocks_per_sm);
    return problem.launches(config, blocks);
}

}  // namespace

CandidateTask candidate_task(const Instance& problem, const Config& config, const Binaries& binaries, int slot,
                             bool emulated) {
    const Variant* variant = problem.op().variant(config.variant);
    const std::string own_arch = arch_name(problem.limits().cc);
    CandidateTask task{.slot = slot,
                       .sources = binaries.sources,
                       .artefacts = binaries.artefacts,
                       .sequence = sequence_of(problem, config, binaries),
                       .deterministic = variant->deterministic,
                       .idempotent = variant->idempotent};
    for (Artefact& artefact : task.artefacts) {
        artefact.log.clear();
        // Code for this very device needs no PTX beside it, and decoding it is time in which the device waits.
        if (!emulated && !artefact.cubin.empty() && artefact.arch.starts_with(own_arch)) artefact.ptx.clear();
    }
    return task;
}

}  // namespace autotune
