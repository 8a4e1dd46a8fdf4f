#ifndef AUTOTUNE_TUNER_WORKER_RUN_WORKER_H
#define AUTOTUNE_TUNER_WORKER_RUN_WORKER_H

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tuner/worker/candidate.h"
#include "tuner/worker/check.h"
#include "tuner/worker/device_reference.h"
#include "tuner/worker/problem_memory.h"
#include "tuner/worker/task.h"

namespace autotune {

/// Checks and times candidates on one device: what the run worker's process does between two messages. It holds
/// problems by number and, during final rounds, the finalists. Calls throw DeviceFailure where the device fails outside
/// of a trial, and Error for what is not usable.
class RunWorker {
public:
    /// What disturbs the device.
    using Watch = std::function<DeviceState()>;
    explicit RunWorker(Device& device, Progress progress = {}, Watch watch = {});
    ~RunWorker();
    RunWorker(const RunWorker&) = delete;
    RunWorker& operator=(const RunWorker&) = delete;

    /// contents: the bytes of the tensors that are not filled.
    void prepare(ProblemTask task, std::vector<MappedMemory> contents = {});
    /// values: of a CPU reference, value and magnitude of each output.
    void set_reference(ReferenceTask task, std::vector<MappedMemory> values = {});
    std::vector<Comparison> anchor(const ReferenceTask& task);
    void drop(int slot);
    bool warm(int slot);

    /// Checks and times a candidate; whatever it does is an outcome. After a sticky fault lost() is true.
    Outcome trial(const TrialTask& task);

    /// Finalists stay loaded while rounds run over them. load() runs each once, so that no round pays for it.
    void load(const CandidateTask& finalist);
    RoundSamples round(const RoundTask& task);
    void unload();

    /// The context is gone with a fault; the process is to end.
    bool lost() const noexcept { return lost_; }

private:
    struct Slot;
    Slot& slot(int number);
    Outcome judge(Slot& slot, const TrialTask& task);
    Outcome model(Slot& slot, const TrialTask& task);
    Outcome run_once(Slot& slot, const TrialTask& task);
    Outcome measure(Slot& slot, Candidate& candidate, const TrialTask& task, const CheckResult& checked);
    bool disturbed();
    CheckResult check_surely(Slot& slot, Candidate& candidate, const TrialTask& task);

    Device& device_;
    Progress progress_;
    Watch watch_;
    DeviceState seen_;  ///< when it was looked at last
    std::chrono::steady_clock::time_point seen_at_{};
    ScratchPool pool_;
    std::map<int, std::unique_ptr<Slot>> slots_;
    std::map<int, std::unique_ptr<Candidate>> finalists_;
    bool lost_ = false;
};

}  // namespace autotune
#endif
