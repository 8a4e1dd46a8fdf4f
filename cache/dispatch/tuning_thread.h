#ifndef AUTOTUNE_CACHE_DISPATCH_TUNING_THREAD_H
#define AUTOTUNE_CACHE_DISPATCH_TUNING_THREAD_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "autotune/dispatcher.h"

namespace autotune {

/// Tunes one problem after the other on a thread of its own. Each is tuned once a process, however many threads ask and
/// whatever comes of it. Not to be destroyed in a child of a fork.
class TuningThread {
public:
    static constexpr std::size_t most_waiting = 256;   ///< beyond it nothing more is taken
    static constexpr std::size_t most_known = 65'536;  ///< the same

    /// done: called on the thread after each, with what went wrong or nothing.
    TuningThread(std::function<void(const TuneRequest&)> tune, std::function<void(const std::string& trouble)> done);
    /// Asks the running search to stop, waits for its end, and drops what has not begun.
    ~TuningThread();
    TuningThread(const TuningThread&) = delete;
    TuningThread& operator=(const TuningThread&) = delete;

    /// name: tells problems apart. at_once: before those that nobody waits for. False when it is over already, or too
    /// many wait: no use waiting.
    bool ask(const std::string& name, TuneRequest request, bool at_once);
    /// False when the patience ran out first.
    bool wait(const std::string& name, std::chrono::milliseconds patience);

private:
    struct Job {
        std::string name;
        TuneRequest request;
    };
    void work();

    std::function<void(const TuneRequest&)> tune_;
    std::function<void(const std::string&)> done_;
    std::mutex mutex_;
    std::condition_variable asked_, finished_;
    std::deque<Job> jobs_;
    std::set<std::string> over_;
    std::set<std::string> known_;  ///< asked for at any time
    std::atomic<bool> stopping_{false};
    std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace autotune
#endif
