#ifndef AUTOTUNE_TUNER_WORKER_EMULATED_BENCH_H
#define AUTOTUNE_TUNER_WORKER_EMULATED_BENCH_H

#include <memory>

#include "tuner/worker/worker_bench.h"

namespace autotune {

/// The bench where there is no GPU: candidates compile in the pool, run on the emulator in one process, are checked on
/// small, ragged problems, and get a modelled time for the problem asked for, always the same one.
/// options.device: emulated:PART. throws  Error when autotune-worker is not found
std::unique_ptr<WorkerBench> make_emulated_bench(const WorkerOptions& options);

}  // namespace autotune
#endif
