#ifndef AUTOTUNE_TUNER_WORKER_STAGE_LOG_H
#define AUTOTUNE_TUNER_WORKER_STAGE_LOG_H

#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tuner/bench.h"

namespace autotune {

/// When the stages of a run began and ended, since the log was made. Any thread may write.
class StageLog {
public:
    using Clock = std::chrono::steady_clock;

    /// A stage that ends with its scope.
    class Span {
    public:
        Span(StageLog& log, std::string name) : log_{log}, name_{std::move(name)} {}
        ~Span() { log_.add(std::move(name_), begin_, Clock::now()); }
        Span(const Span&) = delete;
        Span& operator=(const Span&) = delete;

    private:
        StageLog& log_;
        std::string name_;
        Clock::time_point begin_ = Clock::now();
    };

    void add(std::string name, Clock::time_point begin, Clock::time_point end) {
        const std::lock_guard lock{mutex_};
        stages_.push_back({.name = std::move(name), .begin_s = seconds(begin), .end_s = seconds(end)});
    }
    /// One of many alike that follow each other: the stage of that name, if it is the latest, goes on to `end`.
    void extend(const std::string& name, Clock::time_point begin, Clock::time_point end) {
        const std::lock_guard lock{mutex_};
        if (stages_.empty() || stages_.back().name != name)
            stages_.push_back({.name = name, .begin_s = seconds(begin), .end_s = seconds(end)});
        stages_.back().end_s = seconds(end);
    }
    std::vector<Stage> stages() const {
        const std::lock_guard lock{mutex_};
        return stages_;
    }

private:
    double seconds(Clock::time_point at) const { return std::chrono::duration<double>(at - start_).count(); }

    const Clock::time_point start_ = Clock::now();
    mutable std::mutex mutex_;
    std::vector<Stage> stages_;
};

}  // namespace autotune
#endif
