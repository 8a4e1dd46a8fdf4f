#ifndef AUTOTUNE_TUNER_WORKER_RUN_LANE_H
#define AUTOTUNE_TUNER_WORKER_RUN_LANE_H

#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "tuner/worker/fd.h"
#include "tuner/worker/job_thread.h"
#include "tuner/worker/run_client.h"
#include "tuner/worker/stage_log.h"
#include "tuner/worker/task.h"

namespace autotune {

/// A problem with all that a worker needs to hold it; kept here, so that the worker's successor gets it, too.
struct HeldProblem {
    ProblemTask task;
    std::vector<Fd> contents;  ///< of tensors that are not filled
    ReferenceTask reference;
    std::vector<Fd> values;  ///< of a CPU reference
    std::string words;       ///< what the reference is, for people
};

/// One GPU's lane: a thread and the run worker that it owns. A worker that is lost is replaced at the next request,
/// with the problems that it held; from the first loss on, a spare that has started its driver stands by.
class RunLane {
public:
    /// Starts the worker and opens the device; returns at once.
    /// device: an ordinal, or emulated:PART. log: outlives this.
    RunLane(std::filesystem::path worker, std::string device, StageLog& log);
    ~RunLane();
    RunLane(const RunLane&) = delete;
    RunLane& operator=(const RunLane&) = delete;

    /// Waits until the device is known; it may still be opening. Throws Error{device}.
    const DeviceIdentity& device();
    JobThread& thread() noexcept { return *thread_; }
    int replaced() const noexcept { return replaced_; }

    // For jobs on the lane's thread:

    /// Asks the worker. Throws WorkerLost when the request ended it, Error.
    Frame ask(Message type, const nlohmann::json& body, const Patience& patience, std::span<const int> fds = {});
    /// Asks for what no candidate decides: a lost worker is an Error{device}.
    Frame ask_surely(Message type, const nlohmann::json& body, std::span<const int> fds = {});
    /// Prepares a problem and its reference. Returns whether it stays in the cache.
    bool hold(std::shared_ptr<const HeldProblem> problem);
    /// A problem whose reference comes later, or never.
    bool prepare(const ProblemTask& task, const std::vector<Fd>& contents);
    void set_reference(const ReferenceTask& task, const std::vector<Fd>& values);
    void drop(int slot);
    bool holds(int slot) const { return held_.contains(slot); }
    /// What the worker wrote since the last call.
    std::string take_text();
    /// The worker is known to be lost.
    void retire();
    /// Ends the worker without waiting for its end: the lane's is near.
    void abandon();

private:
    void ensure();
    void start();
    void identify();
    std::unique_ptr<RunClient> fresh();
    std::filesystem::path worker_;
    std::string choice_;
    StageLog& log_;
    std::atomic<int> replaced_ = 0;
    std::unique_ptr<RunClient> client_, spare_;
    bool open_ = false, abandoned_ = false;
    std::map<int, std::shared_ptr<const HeldProblem>> held_;
    DeviceIdentity identity_;
    std::shared_future<void> identified_;
    std::unique_ptr<JobThread> thread_;
};

/// Devices as a worker lists them; the worker waits, started, for the next lane of this process.
std::vector<DeviceIdentity> devices_from_worker(const std::filesystem::path& worker);

}  // namespace autotune
#endif
