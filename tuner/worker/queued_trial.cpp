#include "tuner/worker/queued_trial.h"

#include <chrono>

#include "tuner/worker/compile_pool.h"

namespace autotune {

Outcome next_outcome(std::deque<std::shared_ptr<QueuedTrial>>& trials, std::mutex& mutex,
                     std::condition_variable& finished, const std::function<void()>& idle) {
    return *next_outcome_while(trials, mutex, finished, [&] {
        if (idle) idle();
        return true;
    });
}

std::optional<Outcome> next_outcome_while(std::deque<std::shared_ptr<QueuedTrial>>& trials, std::mutex& mutex,
                                          std::condition_variable& finished, const std::function<bool()>& go_on) {
    std::unique_lock lock{mutex};
    if (trials.empty()) throw Error{Error::Kind::internal, "no trial was submitted"};
    const std::shared_ptr<QueuedTrial> trial = trials.front();
    while (!finished.wait_for(lock, std::chrono::milliseconds{100}, [&] { return trial->done; })) {
        lock.unlock();
        const bool more = go_on();
        lock.lock();
        if (!more) return std::nullopt;
    }
    trials.pop_front();
    throw_obstacle(trial->obstacle);
    return trial->outcome;
}

}  // namespace autotune
