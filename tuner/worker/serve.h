#ifndef AUTOTUNE_TUNER_WORKER_SERVE_H
#define AUTOTUNE_TUNER_WORKER_SERVE_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuner/worker/evaluate.h"
#include "tuner/worker/run_worker.h"
#include "tuner/worker/task.h"

namespace autotune {

/// Where a run worker gets its device from: the real program opens CUDA devices, tests a device of their own.
struct RunHooks {
    std::function<std::vector<DeviceIdentity>()> list;
    /// An ordinal, or emulated:PART.
    std::function<std::unique_ptr<Device>(const std::string& device)> open;
    /// What disturbs a device; may be empty, or give an empty function.
    std::function<RunWorker::Watch(const DeviceIdentity&)> watch;
    /// Done before the first message is read, so that it overlaps with the parent's own start; may be empty.
    std::function<void()> warm_up;
};

/// Compiles one source; an Error is answered as such.
using CompileHook = std::function<CompileAnswer(const CompileTask&)>;

// The loops of the three kinds of worker: each answers messages until its parent closes the socket, and returns the
// process's exit code.
int serve_run(int socket, const RunHooks& hooks);
int serve_compile(int socket, const CompileHook& compile);
int serve_reference(int socket, const ReferenceTable& table);

/// Compiles with NVRTC; the hook of the real program.
CompileHook nvrtc_compile();

/// CUDA devices; the hooks of the real program, which opens emulated ones, too.
RunHooks cuda_devices();

/// What a worker program is made of: the real one of NVRTC and CUDA devices, those of tests of their own parts.
struct WorkerHooks {
    std::function<CompileHook()> compiler;  ///< called in a compile worker only
    RunHooks run;
    ReferenceTable references;
};

/// The worker program: `autotune-worker --compile|--run|--reference [--memory-bytes N] [--scratch DIR] --parent PID`.
int worker_main(int argc, char** argv, const WorkerHooks& hooks);

}  // namespace autotune
#endif
