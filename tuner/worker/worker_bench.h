#ifndef AUTOTUNE_TUNER_WORKER_WORKER_BENCH_H
#define AUTOTUNE_TUNER_WORKER_WORKER_BENCH_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "tuner/bench.h"

namespace autotune {

struct WorkerOptions {
    std::filesystem::path worker;     ///< the program autotune-worker; empty: see find_worker
    std::string device = "0";         ///< an ordinal, or emulated:PART
    std::size_t compile_workers = 0;  ///< 0: one a hardware thread
    double compile_limit_s = 30;
    double trial_limit_s = 10;     ///< of one step of a trial where nothing better is known
    double emulation_limit_s = 5;  ///< of one run on an emulator beside a GPU
    Effort effort = Effort::normal;
    std::uint64_t seed = 1;       ///< of inputs and of the order in rounds
    bool keep_artefacts = false;  ///< of all configs, not only of the latest
    double round_us = 0;          ///< on a GPU, of one sample in rounds(); 0: as the effort has it
    std::function<void(const std::string&)> note = {};  ///< told what takes unusually long, on the thread that waits
    std::function<bool()> stop_requested = {};  ///< asked on the thread that waits for a reference, which is ended then
    std::filesystem::path cache_dir;  ///< where a user's compiled references are kept; empty: the usual cache root
};

/// The bench that tunes for real: compiles in a pool of processes, runs in one process a GPU, and overlaps the two.
class WorkerBench : public Bench {
public:
    /// Waits until the device is open. Throws Error{device}.
    virtual const DeviceIdentity& device() = 0;
};

/// Starts all workers and returns at once: the device is opened while the caller loads its op.
/// throws  Error when autotune-worker is not found
std::unique_ptr<WorkerBench> make_worker_bench(const WorkerOptions& options);

/// The GPUs here, as a worker sees them; this process makes no CUDA context.
std::vector<DeviceIdentity> list_devices(const WorkerOptions& options);

}  // namespace autotune
#endif
