#ifndef AUTOTUNE_TUNER_WORKER_EMULATOR_DESK_H
#define AUTOTUNE_TUNER_WORKER_EMULATOR_DESK_H

#include <memory>
#include <optional>
#include <string>

#include "tuner/worker/compiled_sources.h"
#include "tuner/worker/reference_desk.h"
#include "tuner/worker/run_lane.h"
#include "tuner/worker/trial_desk.h"
#include "tuner/worker/worker_bench.h"

namespace autotune {

/// An emulator beside a GPU, in a process of its own that starts with the first question: it counts what a config does,
/// and runs once more what ended badly, from the PTX that came out of the same compile as the GPU's binary. Whatever
/// stands in its way is part of an answer. One thread asks.
class EmulatorDesk {
public:
    /// All but gpu outlives this.
    EmulatorDesk(const WorkerOptions& options, CompiledSources& store, ReferenceDesk& references, StageLog& log)
        : options_{options}, store_{store}, references_{references}, log_{log} {}

    /// Another problem is at hand.
    void begin() { modelled_.reset(); }
    /// The outcome of a config's modelling, with its counters; one that is not ok says why there are none.
    Outcome count(const DeviceIdentity& gpu, const Instance& instance, const Config& config);
    /// What the emulator found, after "emulated" and what it ran on; that it found nothing; or why it could not look.
    /// Tries the same inputs first, within the options' limit, then a small problem near this one.
    std::string explain(const DeviceIdentity& gpu, const Instance& instance, const Config& config);

private:
    void start(const DeviceIdentity& gpu);
    std::shared_ptr<const Binaries> binaries_of(const Instance& instance, const Config& config);
    Outcome run(const Instance& problem, const Config& config);
    std::string told(const Instance& instance, const Config& config);

    const WorkerOptions& options_;
    CompiledSources& store_;
    ReferenceDesk& references_;
    StageLog& log_;
    std::shared_ptr<const HeldProblem> modelled_;  ///< the problem at hand
    std::unique_ptr<RunLane> lane_;
    std::optional<TrialDesk> desk_;
};

}  // namespace autotune
#endif
