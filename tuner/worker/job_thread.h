#ifndef AUTOTUNE_TUNER_WORKER_JOB_THREAD_H
#define AUTOTUNE_TUNER_WORKER_JOB_THREAD_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace autotune {

/// A thread that does jobs one after the other. A worker process belongs to one: it is started, asked and ended there,
/// since the kernel ends a child when the thread that started it ends.
class JobThread {
public:
    JobThread() : thread_{[this] { loop(); }} {}
    /// Drops what waits and joins.
    ~JobThread() {
        {
            const std::lock_guard lock{mutex_};
            ending_ = true;
            jobs_.clear();
        }
        wake_.notify_all();
        thread_.join();
    }
    JobThread(const JobThread&) = delete;
    JobThread& operator=(const JobThread&) = delete;

    /// The job must not throw.
    void post(std::function<void()> job) {
        {
            const std::lock_guard lock{mutex_};
            jobs_.push_back(std::move(job));
        }
        wake_.notify_one();
    }

    /// Does a job here and gives its result, or its exception, to whoever waits.
    template <class Job>
    auto begin(Job job) {
        using Result = std::invoke_result_t<Job>;
        auto task = std::make_shared<std::packaged_task<Result()>>(std::move(job));
        std::future<Result> future = task->get_future();
        post([task] { (*task)(); });
        return future;
    }
    template <class Job>
    auto run(Job job) {
        return begin(std::move(job)).get();
    }

private:
    void loop() {
        while (true) {
            std::function<void()> job;
            {
                std::unique_lock lock{mutex_};
                wake_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
                if (jobs_.empty()) return;
                job = std::move(jobs_.front());
                jobs_.pop_front();
            }
            job();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void()>> jobs_;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace autotune
#endif
