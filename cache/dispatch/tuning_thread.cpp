#include "cache/dispatch/tuning_thread.h"

#include <algorithm>
#include <utility>

namespace autotune {

TuningThread::TuningThread(std::function<void(const TuneRequest&)> tune, std::function<void(const std::string&)> done)
    : tune_{std::move(tune)}, done_{std::move(done)}, thread_{[this] { work(); }} {}

TuningThread::~TuningThread() {
    {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
        jobs_.clear();
    }
    asked_.notify_one();
    thread_.join();
}

bool TuningThread::ask(const std::string& name, TuneRequest request, bool at_once) {
    {
        const std::lock_guard lock{mutex_};
        if (over_.contains(name)) return false;
        if (known_.contains(name)) {
            const auto waiting = std::ranges::find(jobs_, name, &Job::name);
            if (at_once && waiting != jobs_.end()) std::rotate(jobs_.begin(), waiting, waiting + 1);
            return true;
        }
        if (jobs_.size() >= most_waiting || known_.size() >= most_known) return false;
        known_.insert(name);
        request.stop = [this] { return stopping_.load(); };
        if (at_once)
            jobs_.push_front({name, std::move(request)});
        else
            jobs_.push_back({name, std::move(request)});
    }
    asked_.notify_one();
    return true;
}

bool TuningThread::wait(const std::string& name, std::chrono::milliseconds patience) {
    std::unique_lock lock{mutex_};
    return finished_.wait_for(lock, patience, [&] { return over_.contains(name); });
}

void TuningThread::work() {
    std::unique_lock lock{mutex_};
    for (;;) {
        asked_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
        if (stopping_) return;
        const Job job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        std::string trouble;
        try {
            tune_(job.request);
        } catch (const std::exception& error) {
            trouble = error.what();
        } catch (...) {  // whatever a hook throws, the application goes on
            trouble = "the tuner threw something that is no exception";
        }
        if (!stopping_) done_(trouble);
        lock.lock();
        over_.insert(job.name);
        finished_.notify_all();
    }
}

}  // namespace autotune
