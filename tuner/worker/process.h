#ifndef AUTOTUNE_TUNER_WORKER_PROCESS_H
#define AUTOTUNE_TUNER_WORKER_PROCESS_H

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tuner/worker/fd.h"

namespace autotune {

/// How a process ended.
struct Exit {
    bool signalled = false;
    int code = 0;  ///< exit code or signal
    /// "exit code 3", "signal 11 (Segmentation fault)"
    std::string text() const;
};

struct ProcessOptions {
    std::filesystem::path program;
    std::vector<std::string> arguments;
};

/// A worker process: started by posix_spawn in a process group of its own, with a socket to this process as descriptor
/// 3 and nothing else of ours; stdout and stderr are captured, the last 64 KiB of them. Its owner keeps the clock.
/// Start it from a thread that lives as long as the process should: the kernel ends it when that thread ends.
class Process {
public:
    /// Throws Error{internal} when the program cannot be started.
    static Process start(const ProcessOptions& options);
    Process() = default;
    Process(Process&& other) noexcept;
    Process& operator=(Process&& other) noexcept;
    /// Kills the process group and waits until the process is gone.
    ~Process();

    bool running() const noexcept { return pid_ > 0 && !exit_; }
    pid_t pid() const noexcept { return pid_; }
    int socket() const noexcept { return socket_.get(); }
    int output() const noexcept { return output_.get(); }  ///< the reading end of its stdout and stderr, for poll

    /// Takes in what the process wrote; never waits. A process that nobody drains stands still in write().
    void drain();
    /// The last 64 KiB that it wrote.
    const std::string& text() const noexcept { return text_; }
    /// Forgets what was written so far.
    void clear_text() { text_.clear(); }

    /// How it ended, when it has.
    std::optional<Exit> ended();
    /// Ends its group without waiting; several are ended at once so.
    void kill() noexcept;
    /// Waits at most `grace` for it to end by itself, then kills its group; returns when it is gone.
    Exit stop(std::chrono::milliseconds grace = std::chrono::milliseconds{0});

private:
    pid_t pid_ = -1;
    std::optional<Exit> exit_;
    Fd socket_, output_;
    std::string text_;
};

/// The program `autotune-worker`: `given` if not empty, else AUTOTUNE_WORKER, else beside the running program, beside
/// this library, or in ../libexec/autotune from there. Throws Error{internal} naming the places.
std::filesystem::path find_worker(const std::filesystem::path& given);

/// What the worker's main does first: dies with the parent, dumps no core, and keeps to a data segment of
/// `memory_bytes` (0: no limit).
void become_worker(pid_t parent, std::uint64_t memory_bytes);

}  // namespace autotune
#endif
