#ifndef AUTOTUNE_CACHE_STORE_WRITER_LOCK_H
#define AUTOTUNE_CACHE_STORE_WRITER_LOCK_H

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace autotune {

/// The queue of a database's writers: two advisory locks on files beside it. Who wants to write holds the first (the
/// turnstile) until it gets the second, so a writer that has just finished stands behind those who wait; SQLite's own
/// busy handler lets it go first again, for seconds. The kernel drops both when a process dies. The files are never
/// removed: a lock on a removed file excludes nobody.
class WriterLock {
public:
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
