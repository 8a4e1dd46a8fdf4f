#ifndef AUTOTUNE_CACHE_DISPATCH_LEARNER_H
#define AUTOTUNE_CACHE_DISPATCH_LEARNER_H

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cache/store/miss_list.h"
#include "cache/store/store.h"

namespace autotune {

/// What a dispatcher found out about one problem: a config that failed, or what online tuning measured.
struct Lesson {
    RunStart start{};
    std::vector<std::pair<Config, Outcome>> trials{};
    RunEnd end{};
};

/// Writes what a dispatcher learns, on a thread of its own: callers never wait for a disk or for another writer. What
/// is queued when it is destroyed is still written. Not to be destroyed in a child of a fork.
class Learner {
public:
    static constexpr std::size_t most_waiting = 1024;  ///< beyond it what comes is dropped

    /// log: one sentence; called on the thread.
    Learner(std::filesystem::path database, std::function<void(const std::string&)> log);
    ~Learner();
    Learner(const Learner&) = delete;
    Learner& operator=(const Learner&) = delete;

    void add(Lesson lesson);
    void add(StoredMiss miss);

private:
    void work();
    void write(const std::deque<Lesson>& lessons);
    void write(const std::vector<StoredMiss>& misses);

    std::filesystem::path database_;
    std::function<void(const std::string&)> log_;
    std::mutex mutex_;
    std::condition_variable news_;
    std::deque<Lesson> lessons_;
    std::vector<StoredMiss> misses_;
    bool stopping_ = false;
    std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace autotune
#endif
