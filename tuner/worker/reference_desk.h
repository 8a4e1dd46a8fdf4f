#ifndef AUTOTUNE_TUNER_WORKER_REFERENCE_DESK_H
#define AUTOTUNE_TUNER_WORKER_REFERENCE_DESK_H

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "tuner/model/instance.h"
#include "tuner/worker/compiled_sources.h"
#include "tuner/worker/job_thread.h"
#include "tuner/worker/run_client.h"
#include "tuner/worker/run_lane.h"

namespace autotune {

/// What one run of a reference may take.
inline constexpr double longest_reference_s = 600;

/// Makes problems ready to be held: chooses the reference and gets it. A C++ reference runs in a worker of its own
/// where that takes a fraction of a second; else the op's device reference stands in, after it agreed with the C++ one
/// on a small, ragged problem.
class ReferenceDesk {
public:
    /// lane, store, log: outlive this. cache: the folder in which a user's compiled references are
    /// kept, in `host`; empty: there is none.
    ReferenceDesk(std::filesystem::path worker, std::filesystem::path cache, RunLane& lane, CompiledSources& store,
                  StageLog& log);
    ~ReferenceDesk();
    ReferenceDesk(const ReferenceDesk&) = delete;
    ReferenceDesk& operator=(const ReferenceDesk&) = delete;

    /// Who waits for a reference or an input generator. Either may be empty; both are called on the thread that waits.
    struct Waiter {
        std::function<void(const std::string&)> note;  ///< told once, after ten seconds: it may never end
        std::function<bool()> stop_requested;          ///< true: the reference is ended
    };

    /// rotate: as many sets of buffers as timing needs. The future throws Error{usage} for a reference that fails,
    /// crashes, gives a NaN or disagrees with its stand-in. It uses the lane, so the lane must not wait for it.
    std::future<std::shared_ptr<const HeldProblem>> begin(const Instance& instance, std::uint64_t seed, int slot,
                                                          bool rotate);
    /// The problem for an emulated device to model its time on: without a reference, its inputs filled where they are
    /// touched. Throws Error{usage} when its input generator fails.
    std::shared_ptr<const HeldProblem> modelled(const Instance& instance, std::uint64_t seed,
                                                const Waiter& waiter = {});
    /// The problem with its inputs and no reference, for runs whose results nobody looks at. Throws as `modelled`.
    std::shared_ptr<const HeldProblem> inputs(const Instance& instance, std::uint64_t seed, int slot);
    /// The problem with the dims that its input generator sets; others come back as they are. Throws Error{usage} as
    /// the generator does, or when the problem is none with them.
    Instance sized(const Instance& instance, std::uint64_t seed, const Waiter& waiter = {});
    /// Starts compiling what `begin` will need.
    void expect(const Instance& instance, const std::string& arch);
    /// Throws what the future does; Error{interrupted} when it was asked to stop, and then makes no problem any more.
    std::shared_ptr<const HeldProblem> wait(std::future<std::shared_ptr<const HeldProblem>> problem,
                                            const std::string& op, const Waiter& waiter);

private:
    template <class Result>
    Result waited(std::future<Result> result, const std::string& op, const Waiter& waiter);
    static HeldProblem problem_of(const Instance& instance, std::uint64_t seed, int slot, bool rotate);
    nlohmann::json ask(const Instance& instance, const EvaluateTask& task, const std::vector<Fd>& contents,
                       std::vector<Fd>& answered);
    std::shared_ptr<const HeldProblem> make(const Instance& instance, std::uint64_t seed, int slot, bool rotate);
    std::shared_ptr<const HeldProblem> without_reference(const Instance& instance, std::uint64_t seed, int slot,
                                                         bool modelled);
    bool prefers_device(const Instance& instance) const;
    EvaluateTask evaluation_of(const Instance& instance, std::uint64_t seed, const std::vector<TensorTask>& tensors);
    void evaluate(const Instance& instance, std::uint64_t seed, HeldProblem& problem, bool inputs_only);
    CandidateTask compiled(const Instance& instance, std::vector<SourceSpec> sources, LaunchSequence sequence,
                           int slot);
    bool anchored(const Instance& instance);
    void anchor(const Instance& small);

    std::filesystem::path worker_, cache_;
    RunLane& lane_;
    CompiledSources& store_;
    StageLog& log_;
    std::unique_ptr<RunClient> client_;
    double flops_per_s_;  ///< of the CPU reference, as far as seen
    std::set<std::string> anchored_;
    std::atomic<bool> abandoned_ = false;
    std::unique_ptr<JobThread> thread_;
};

/// Small problems like this one: its flags and choices, the op's check problems, and dims cut down to odd sizes.
std::vector<Instance> small_problems(const Instance& instance);

}  // namespace autotune
#endif
