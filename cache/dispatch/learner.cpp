#include "cache/dispatch/learner.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

namespace autotune {

namespace {

/// Misses come in bursts, and each write replaces the whole list.
constexpr std::chrono::seconds between_miss_writes{1};
constexpr std::chrono::milliseconds writing_patience{5000};

}  // namespace

Learner::Learner(std::filesystem::path database, std::function<void(const std::string&)> log)
    : database_{std::move(database)}, log_{std::move(log)}, thread_{[this] { work(); }} {}

Learner::~Learner() {
    {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
    }
    news_.notify_one();
    thread_.join();
}

void Learner::add(Lesson lesson) {
    {
        const std::lock_guard lock{mutex_};
        if (lessons_.size() >= most_waiting) return;
        lessons_.push_back(std::move(lesson));
    }
    news_.notify_one();
}

void Learner::add(StoredMiss miss) {
    {
        const std::lock_guard lock{mutex_};
        if (misses_.size() >= most_waiting) return;
        misses_.push_back(std::move(miss));
    }
    news_.notify_one();
}

void Learner::work() {
    auto write_misses_at = std::chrono::steady_clock::now();
    std::unique_lock lock{mutex_};
    for (;;) {
        news_.wait(lock, [&] { return stopping_ || !lessons_.empty() || !misses_.empty(); });
        if (!misses_.empty() && lessons_.empty())
            news_.wait_until(lock, write_misses_at, [&] { return stopping_ || !lessons_.empty(); });
        const auto lessons = std::exchange(lessons_, {});
        std::vector<StoredMiss> misses;
        if (stopping_ || std::chrono::steady_clock::now() >= write_misses_at) misses.swap(misses_);
        const bool last = stopping_;
        lock.unlock();
        if (!lessons.empty()) write(lessons);
        if (!misses.empty()) {
            write(misses);
            write_misses_at = std::chrono::steady_clock::now() + between_miss_writes;
        }
        lock.lock();
        if (last && lessons_.empty() && misses_.empty()) return;
    }
}

/// A database that takes nothing stops nobody: it is said, and what was learned is lost.
void Learner::write(const std::deque<Lesson>& lessons) {
    try {
        Store store = Store::open({.path = database_, .warn = log_, .patience = writing_patience});
        for (const Lesson& lesson : lessons) {
            // Rows whose checksum fails go with the next write of whoever has met them.
            store.scan({.op = lesson.start.problem.op, .device_fp = lesson.start.device.fp}, {},
                       [](const RecordView&) {});
            const RunId run = store.begin_run(lesson.start);
            for (const auto& [config, outcome] : lesson.trials) store.record_trial(run, config, outcome);
            store.finish_run(run, lesson.end);
        }
    } catch (const std::exception& error) {
        log_(fmt::format("what was learned is not stored: {}", error.what()));
    }
}

void Learner::write(const std::vector<StoredMiss>& misses) {
    try {
        MissList list{database_};
        if (!list.add(misses, writing_patience))
            log_(fmt::format("problems that are not tuned could not be listed in '{}'", list.path().string()));
    } catch (const std::exception& error) {
        log_(fmt::format("problems that are not tuned are not listed: {}", error.what()));
    }
}

}  // namespace autotune
