#ifndef AUTOTUNE_TUNER_WORKER_QUEUED_TRIAL_H
#define AUTOTUNE_TUNER_WORKER_QUEUED_TRIAL_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "autotune/error.h"
#include "tuner/model/config.h"
#include "tuner/model/outcome.h"

namespace autotune {

/// A trial between its submission and its fetching. All but the config is guarded by its bench's mutex.
struct QueuedTrial {
    Config config;
    Outcome outcome;
    bool done = false, cancelled = false;
    std::shared_ptr<const Error> obstacle;  ///< what ended it is no fault of the config's, and ends the run
};

/// Takes the oldest trial and waits for its outcome, as Bench::next does.
/// trials, finished: guarded and notified under `mutex`. Throws the trial's obstacle.
Outcome next_outcome(std::deque<std::shared_ptr<QueuedTrial>>& trials, std::mutex& mutex,
                     std::condition_variable& finished, const std::function<void()>& idle);

/// The same as Bench::next_while does.
std::optional<Outcome> next_outcome_while(std::deque<std::shared_ptr<QueuedTrial>>& trials, std::mutex& mutex,
                                          std::condition_variable& finished, const std::function<bool()>& go_on);

}  // namespace autotune
#endif
