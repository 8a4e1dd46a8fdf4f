#ifndef AUTOTUNE_TUNER_WORKER_RUN_CLIENT_H
#define AUTOTUNE_TUNER_WORKER_RUN_CLIENT_H

#include <atomic>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tuner/model/outcome.h"
#include "tuner/worker/frame.h"
#include "tuner/worker/process.h"
#include "tuner/worker/task.h"

namespace autotune {

/// The worker was ended or ended by itself while it was asked something. It is gone when this is thrown.
class WorkerLost : public std::runtime_error {
public:
    WorkerLost(Ending ending, const std::string& reason, std::string log)
        : std::runtime_error{reason}, ending_{ending}, log_{std::move(log)} {}
    Ending ending() const noexcept { return ending_; }  ///< timed_out or crashed
    const std::string& log() const noexcept { return log_; }

private:
    Ending ending_;
    std::string log_;
};

/// How long a worker may be silent.
struct Patience {
    double limit_s = 10;  ///< where nothing better is known
    double least_s = 2;   ///< never less than this
    double times_expected = 10;
    /// The limit is of the processor's time: a machine that does other work too makes nothing late. By the clock three
    /// times as long is waited at most.
    bool processor_time = false;
    /// Set by another thread when nobody waits for the answer any more: the worker is ended, within a second.
    const std::atomic<bool>* abandoned = nullptr;
};

/// The parent's side of one run or reference worker: asks, keeps the clock, and ends a worker that is late. One thread
/// uses it.
class RunClient {
public:
    /// mode: "--run" or "--reference". Throws Error{internal} when the program cannot be started.
    RunClient(const std::filesystem::path& worker, const std::string& mode, std::vector<std::string> more = {});

    /// Sends a request and waits for its answer.
    /// throws  WorkerLost when the worker ends or is late; Error as the worker says; Error{interrupted} when abandoned
    Frame ask(Message type, const nlohmann::json& body, std::span<const int> fds = {}, const Patience& patience = {});
    /// Whether the process can be asked anything.
    bool alive() { return process_.running() && !process_.ended(); }
    /// What the worker wrote to stdout and stderr since the last call: at most 64 KiB.
    std::string take_text();
    /// Ends it without waiting; the destructor waits.
    void kill() noexcept { process_.kill(); }
    pid_t pid() const noexcept { return process_.pid(); }

private:
    [[noreturn]] void lose(Ending ending, const std::string& reason);
    Process process_;
    FrameReader reader_;
    bool ready_ = false;
};

}  // namespace autotune
#endif
