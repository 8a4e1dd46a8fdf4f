#include "cache/sharing/row_pipe.h"

#include <system_error>
#include <thread>
#include <utility>

namespace autotune {

void RowPipe::run(const std::function<void()>& read) {
    std::exception_ptr of_reader;
    const auto reader = [&] {
        try {
            read();
            drain();
        } catch (const Ended&) {
        } catch (...) {
            of_reader = std::current_exception();
        }
        const std::lock_guard lock{mutex_};
        read_ = true;
        changed_.notify_all();
    };
    threaded_ = true;
    std::thread thread;
    try {
        thread = std::thread{reader};
    } catch (const std::system_error&) {
        threaded_ = false;  // of a machine that has none to give: one after the other
        reader();
        if (of_putter_) std::rethrow_exception(of_putter_);
        if (of_reader) std::rethrow_exception(of_reader);
        return;
    }
    try {
        put_until_read();
    } catch (...) {
        of_putter_ = std::current_exception();
        const std::lock_guard lock{mutex_};
        ended_ = true;
        changed_.notify_all();
    }
    thread.join();
    if (of_putter_) std::rethrow_exception(of_putter_);
    if (of_reader) std::rethrow_exception(of_reader);
}

void RowPipe::put_until_read() {
    for (;;) {
        std::vector<JudgedRow> rows;
        {
            std::unique_lock lock{mutex_};
            changed_.wait(lock, [&] { return !waiting_.empty() || read_; });
            if (waiting_.empty()) return;
            rows = std::move(waiting_.front());
            waiting_.pop_front();
            putting_ = true;
            changed_.notify_all();
        }
        put_(rows);
        rows.clear();
        const std::lock_guard lock{mutex_};
        spare_.push_back(std::move(rows));
        putting_ = false;
        changed_.notify_all();
    }
}

void RowPipe::push(JudgedRow&& row) {
    collected_.push_back(std::move(row));
    if (collected_.size() == rows_at_once) hand_over();
}

void RowPipe::hand_over() {
    if (!threaded_) {
        try {
            put_(collected_);
        } catch (...) {
            of_putter_ = std::current_exception();  // a failure of the target is none of the file
            throw Ended{};
        }
        return collected_.clear();
    }
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return waiting_.size() < most_waiting || ended_; });
    if (ended_) throw Ended{};
    waiting_.push_back(std::exchange(collected_, {}));
    if (!spare_.empty()) {
        collected_ = std::move(spare_.front());
        spare_.pop_front();
    }
    changed_.notify_all();
}

void RowPipe::drain() {
    if (!collected_.empty()) hand_over();
    if (!threaded_) return;
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return (waiting_.empty() && !putting_) || ended_; });
    if (ended_) throw Ended{};
}

}  // namespace autotune
