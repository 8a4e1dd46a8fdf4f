#ifndef AUTOTUNE_CACHE_STORE_WRITER_LOCK_H
#define AUTOTUNE_CACHE_STORE_WRITER_LOCK_H

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace autotune {

/// The queue of a database's writers: advisory locks on two files beside it. Who wants to write draws a ticket and
/// locks the byte of that number in the first; when no byte before it is locked, its turn for the lock on the second
/// has come. So all wait equally long: where the quickest to look goes first, as with SQLite's own busy handler, the
/// longest of 200 writers' waits is 7 times the mean. A turn is for all that its writer commits within `turn`, without
/// a place in the queue: to change writers costs more than a commit does, with a write-ahead log. The order is a
/// courtesy: the second lock alone keeps writers apart, and who sees no progress, since a process before it was
/// stopped, goes out of turn. The kernel drops both when a process dies. The files are never removed: a lock on a
/// removed file excludes nobody.
class WriterLock {
public:
    using Clock = std::chrono::steady_clock;
    /// 200 writers wait for 0.8 s at most.
    static constexpr std::chrono::milliseconds turn{4};

    /// The database's path; the locks are PATH-queue and PATH-lock, made at first use.
    explicit WriterLock(const std::filesystem::path& database);
    WriterLock(WriterLock&& other) noexcept;
    WriterLock& operator=(WriterLock&& other) noexcept;
    ~WriterLock();

    /// False when other writers held it for all of `patience`.
    bool acquire(std::chrono::milliseconds patience);
    void release() noexcept;
    /// Who wrote last or is writing: "process 4711 on this host"; empty when not known.
    std::string holder() const;

private:
    std::filesystem::path queue_path_, lock_path_;
    int queue_ = -1, lock_ = -1;
    Clock::time_point turn_ends_{};
};

/// Holds the lock for one write. `held()` is false after a timeout.
class WriterTurn {
public:
    WriterTurn(WriterLock& lock, std::chrono::milliseconds patience) : lock_{lock}, held_{lock.acquire(patience)} {}
    WriterTurn(const WriterTurn&) = delete;
    WriterTurn& operator=(const WriterTurn&) = delete;
    ~WriterTurn() {
        if (held_) lock_.release();
    }
    bool held() const noexcept { return held_; }

private:
    WriterLock& lock_;
    bool held_;
};

}  // namespace autotune
#endif
