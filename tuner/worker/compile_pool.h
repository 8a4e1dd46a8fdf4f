#ifndef AUTOTUNE_TUNER_WORKER_COMPILE_POOL_H
#define AUTOTUNE_TUNER_WORKER_COMPILE_POOL_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "autotune/error.h"
#include "device/temporary_folder.h"
#include "tuner/model/outcome.h"
#include "tuner/worker/process.h"
#include "tuner/worker/task.h"

namespace autotune {

struct CompilePoolOptions {
    std::filesystem::path worker;    ///< the program autotune-worker
    std::size_t workers = 0;         ///< 0: one a hardware thread that we may use
    double limit_s = 30;             ///< of one compile; less once the usual time is known
    std::uint64_t memory_bytes = 0;  ///< data segment of one compiler; 0: a share of the machine's, at most 4 GiB
};

/// How a compile ended: an artefact, or the failure that a trial ends with.
struct Compiled {
    bool ok = false;
    Artefact artefact;
    Outcome failure;  ///< compile_failed, compile_timeout or does_not_fit with reason and log, when not ok
    /// Why no source would compile here: NVRTC or its headers are missing. It ends the run, and is no candidate's
    /// failure.
    std::shared_ptr<const Error> obstacle;
    double milliseconds = 0;
};

/// Throws the obstacle, if there is one.
void throw_obstacle(const std::shared_ptr<const Error>& obstacle);

/// Worker processes that compile: NVRTC does not scale over threads. A compiler that takes too long, takes too much
/// memory or crashes is an answer, is replaced, and costs no other compile anything.
class CompilePool {
public:
    /// Called once for each task, on the pool's own thread; it must be quick and must not throw.
    using Done = std::function<void(Compiled)>;

    /// Starts the workers and returns at once; throws Error{device} when the program cannot be run.
    explicit CompilePool(CompilePoolOptions options);
    /// Ends the workers; tasks that did not finish are never answered.
    ~CompilePool();
    CompilePool(const CompilePool&) = delete;
    CompilePool& operator=(const CompilePool&) = delete;

    std::size_t workers() const noexcept { return workers_.size(); }
    /// urgent: before all that wait.
    void submit(CompileTask task, Done done, bool urgent = false);
    /// Ends all compiles that were submitted before, also those under way; each is answered as a failure.
    void abandon();
    /// Waits for one compile.
    Compiled compile(CompileTask task);
    int replaced() const;         ///< workers that were
    double busy_s() const;        ///< of all workers together
    std::string trouble() const;  ///< why some worker does not start at all; empty: all do

private:
    struct Worker;
    struct Job {
        CompileTask task;
        Done done;
        std::uint64_t ordinal = 0;  ///< of its submission
    };
    void loop();
    void start(Worker& worker);
    void hand_out();
    void give_up();
    void take_answers(Worker& worker);
    void lose(Worker& worker, Ending ending, const std::string& reason);
    void end_late();
    void end_abandoned();
    int milliseconds_to_wait() const;
    double limit_s() const;
    void finish(Worker& worker, Compiled result);

    CompilePoolOptions options_;
    const TemporaryFolder scratch_{"compile"};
    Fd wake_;
    std::vector<std::unique_ptr<Worker>> workers_;
    mutable std::mutex mutex_;
    std::deque<Job> waiting_;  ///< guarded by mutex_, as are the next lines
    bool ending_ = false;
    std::uint64_t submitted_ = 0, abandoned_ = 0;  ///< jobs, and those of them that nobody waits for
    int replaced_ = 0;
    double busy_s_ = 0;
    std::string trouble_;
    std::size_t finished_ = 0;  ///< the pool's thread's own, as the next line
    double longest_s_ = 0;
    std::thread thread_;
};

/// Hardware threads that this process may run on.
std::size_t usable_threads();

/// The first error of a compile log, as one line for people: `rope.cu:37: identifier "half16" is undefined`.
std::string first_error(std::string_view log);
/// What ptxas says of a kernel whose own declarations are beyond what a block may have.
std::optional<std::string> too_much_shared(std::string_view log);

}  // namespace autotune
#endif
