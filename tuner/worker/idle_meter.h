#ifndef AUTOTUNE_TUNER_WORKER_IDLE_METER_H
#define AUTOTUNE_TUNER_WORKER_IDLE_METER_H

#include <algorithm>
#include <chrono>

namespace autotune {

/// The share of the time with candidates outstanding, be they compiling or compiled, in which the device had none at
/// work. One thread at a time.
class IdleMeter {
public:
    void begin_waiting() {
        if (outstanding_++ == 0) since_ = Clock::now();
    }
    void end_waiting() {
        if (--outstanding_ == 0) waited_s_ += seconds_since(since_);
    }
    void add_busy(double seconds) { busy_s_ += seconds; }
    double idle_share() const {
        const double waited = waited_s_ + (outstanding_ > 0 ? seconds_since(since_) : 0);
        return waited > 0 ? std::clamp(1 - busy_s_ / waited, 0.0, 1.0) : 0;
    }

private:
    using Clock = std::chrono::steady_clock;
    static double seconds_since(Clock::time_point start) {
        return std::chrono::duration<double>(Clock::now() - start).count();
    }

    int outstanding_ = 0;
    Clock::time_point since_{};
    double waited_s_ = 0, busy_s_ = 0;
};

}  // namespace autotune
#endif
