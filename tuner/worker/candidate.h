#ifndef AUTOTUNE_TUNER_WORKER_CANDIDATE_H
#define AUTOTUNE_TUNER_WORKER_CANDIDATE_H

#include <cstdint>
#include <map>
#include <vector>

#include "tuner/worker/problem_memory.h"
#include "tuner/worker/task.h"

namespace autotune {

/// Working memory that candidates hand on to each other: allocation is dearer than most kernels.
class ScratchPool {
public:
    explicit ScratchPool(Device& device) : device_{device} {}
    ~ScratchPool();
    ScratchPool(const ScratchPool&) = delete;
    ScratchPool& operator=(const ScratchPool&) = delete;
    /// Exactly so many bytes, so that the guard behind them is where a kernel steps first.
    Buffer take(std::uint64_t bytes);
    void give_back(Buffer buffer);

private:
    void release_all();
    Device& device_;
    std::multimap<std::uint64_t, Buffer> spare_;
    std::uint64_t spare_bytes_ = 0;
};

/// A compiled config on the device: its modules, and its sequence bound to each set of a problem's buffers. Unloaded
/// and handed back at its end, so that thousands of candidates leave no trace.
class Candidate {
public:
    /// sets: how many of the problem's sets it is bound to. Throws DeviceFailure.
    Candidate(Device& device, ScratchPool& pool, const ProblemMemory& memory, CandidateTask task, std::size_t sets);
    ~Candidate();
    Candidate(const Candidate&) = delete;
    Candidate& operator=(const Candidate&) = delete;

    const CandidateTask& task() const noexcept { return task_; }
    const std::vector<BoundSequence>& bound() const noexcept { return bound_; }
    void poison_scratch(std::size_t set, std::uint8_t poison);

private:
    void release() noexcept;
    Device& device_;
    ScratchPool& pool_;
    CandidateTask task_;
    std::vector<Module> modules_;
    std::vector<Buffer> scratch_;
    std::vector<BoundSequence> bound_;
    std::size_t tensor_count_ = 0;
    bool modelled_ = false;  ///< its scratch is reserved, not taken from the pool
};

}  // namespace autotune
#endif
