#ifndef AUTOTUNE_CACHE_DISPATCH_ONLINE_H
#define AUTOTUNE_CACHE_DISPATCH_ONLINE_H

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/dispatch/ladder.h"
#include "cache/dispatch/plan.h"
#include "cache/store/store.h"

namespace autotune {

/// A config that may be better than the one that runs.
struct OnlineCandidate {
    LadderStep step{};
    std::string text{};  ///< the config's
    std::vector<double> samples_us{};
    std::pair<int, int> nvrtc{};  ///< that made its binary
};

/// One problem that is tuned while the application runs: the op is called as ever, and now and then a call is a turn,
/// which also tries something. Whoever took the turn owns everything but the counters, then the thread of the tuner
/// does, until it gives the turn back.
struct OnlineProblem {
    static constexpr std::uint64_t first_turn = 8;  ///< the first calls run as decided, and warm up
    static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

    std::atomic<std::uint64_t> calls{0}, next{first_turn};
    std::atomic<bool> taken{false};

    /// Counts a call; whether it is a turn. Whoever gets true gives it back.
    bool due() noexcept {
        const std::uint64_t call = calls.fetch_add(1, std::memory_order_relaxed) + 1;
        return call >= next.load(std::memory_order_relaxed) && !taken.exchange(true, std::memory_order_acquire);
    }
    void give_back(std::uint64_t next_turn) noexcept {
        next.store(next_turn, std::memory_order_relaxed);
        taken.store(false, std::memory_order_release);
    }
    void postpone() noexcept { give_back(calls.load(std::memory_order_relaxed) + first_turn); }

    enum class Phase { opening, baseline, preparing, checking, timing, rivalling, done };
    Phase phase = Phase::opening;

    Instance instance;
    DeviceIdentity device{};
    int ordinal = 0;
    LadderStep decided{};
    std::vector<OnlineCandidate> candidates{};
    std::vector<std::uint64_t> signature{};
    std::size_t scalars = 0;

    CUcontext context = nullptr;
    CUstream stream = nullptr;  ///< of the latest turn
    CUevent begin = nullptr, end = nullptr;
    std::vector<std::size_t> outputs{};  ///< tensors that the op writes
    CUdeviceptr scratch = 0;             ///< the candidate's outputs, then copies of the decided config's
    std::uint64_t scratch_bytes = 0;     ///< of one of both

    std::size_t current = 0;  ///< candidate
    std::unique_ptr<Plan> plan{};
    std::vector<double> decided_us{};
    double spent_us = 0;             ///< GPU time that would not have been spent otherwise
    CUresult status = CUDA_SUCCESS;  ///< of the candidate's latest launch

    OnlineProblem(Instance it, DeviceIdentity where, int number)
        : instance{std::move(it)}, device{std::move(where)}, ordinal{number} {}
};

/// What became of a candidate that is worth telling: it failed, was wrong, or is the better one.
struct OnlineFinding {
    const OnlineProblem& problem;
    const OnlineCandidate& candidate;
    enum class Kind { launch_failed, wrong_result, better } kind = Kind::better;
    std::string what{};
};

/// Tries other configs in the calls of an application, a few at a time and within a share of its GPU time. A candidate
/// first runs on scratch memory beside the decided config, and its outputs are compared; then it takes the place of
/// some calls, timed by events. Nothing here ever waits on a caller's thread: a thread of its own loads, compares and
/// reads the clocks. Not to be destroyed in a child of a fork.
class OnlineTuner {
public:
    static constexpr std::size_t most_candidates = 8;
    static constexpr std::size_t most_problems = 1024;
    static constexpr std::size_t most_at_once = 4;  ///< problems that hold scratch memory
    static constexpr std::uint64_t most_output_bytes = std::uint64_t{256} << 20;
    static constexpr std::size_t samples = 7;
    static constexpr double better_by = 0.03;

    /// Called on the thread of the tuner.
    struct Hooks {
        std::function<const Workspace*(CUstream, int device, std::uint64_t bytes)> workspace{};
        std::function<void(const OnlineFinding&)> found{};
    };
    /// share: of the GPU time of a problem's calls, at most.
    OnlineTuner(const DriverCalls& calls, Kernels::Options kernels, double share, Hooks hooks);
    ~OnlineTuner();
    OnlineTuner(const OnlineTuner&) = delete;
    OnlineTuner& operator=(const OnlineTuner&) = delete;

    /// Whether the op's calls may be repeated and redirected: it changes no input, and says that running it again
    /// changes nothing.
    static bool allows(const Instance& instance, const Plan& plan);
    /// The problem's state, made when it is new; null when it is over, another signature of it is being tuned, or
    /// there are too many. One thread at a time.
    OnlineProblem* problem(const Plan& plan, const Instance& instance, const DeviceIdentity& device, int ordinal,
                           std::size_t scalars, const LadderStep& decided, std::vector<LadderStep> candidates);

    /// A call that is a turn. workspace: the decided plan's. decision: says so where a candidate ran in its place.
    CUresult turn(OnlineProblem& problem, const Plan& decided, std::span<const TensorArgument> tensors,
                  std::span<const ScalarArgument> scalars, CUstream stream, const Workspace* workspace,
                  const Workspaces& workspaces, bool& begun, Decision& decision) noexcept;

    /// Medians of the samples.
    static double decided_us(const OnlineProblem& problem);
    static double time_us(const OnlineCandidate& candidate);

private:
    CUresult check(OnlineProblem& problem, const Plan& decided, std::span<const TensorArgument> tensors,
                   std::span<const ScalarArgument> scalars, CUstream stream, const Workspace* workspace,
                   const Workspace* of_candidate, bool& begun) noexcept;
    void post(OnlineProblem& problem) noexcept;
    void work();
    void step(OnlineProblem& problem);
    void open(OnlineProblem& problem);
    void prepare(OnlineProblem& problem);
    void judge_outputs(OnlineProblem& problem);
    void take_sample(OnlineProblem& problem);
    void next_candidate(OnlineProblem& problem);
    void finish(OnlineProblem& problem);
    void release(OnlineProblem& problem);
    void found(OnlineProblem& problem, OnlineFinding::Kind kind, std::string what);
    void tell(const OnlineFinding& finding) noexcept;
    double elapsed_us(const OnlineProblem& problem);
    bool same_outputs(OnlineProblem& problem, std::string& why);
    std::vector<std::byte> read(CUdeviceptr from, std::uint64_t bytes);
    /// The turn after which the share is kept, were `more_us` spent now.
    std::uint64_t turn_for(const OnlineProblem& problem, double more_us) const;
    void give_back(OnlineProblem& problem, double more_us) { problem.give_back(turn_for(problem, more_us)); }

    const DriverCalls& calls_;
    double share_;
    Hooks hooks_;
    std::map<std::string, std::unique_ptr<OnlineProblem>> problems_;  ///< of whoever calls problem()

    // -- of the thread
    Kernels kernels_;
    CUstream reading_ = nullptr;
    std::size_t holders_ = 0;

    std::mutex mutex_;
    std::condition_variable posted_;
    std::vector<OnlineProblem*> waiting_;
    bool stopping_ = false;
    std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace autotune
#endif
