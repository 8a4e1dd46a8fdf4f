#ifndef AUTOTUNE_CACHE_STORE_KEY_LOCK_H
#define AUTOTUNE_CACHE_STORE_KEY_LOCK_H

#include <chrono>
#include <filesystem>
#include <string_view>

namespace autotune {

/// One holder a key among all threads and processes that use the same folder: for work that nobody should do twice.
/// Advisory: a byte of the file `compiling.lock` in the folder stands for a key, and the kernel drops the lock when a
/// process dies. The file is never removed: a lock on a removed file excludes nobody.
class KeyLock {
public:
    enum class Got {
        held,
        timed_out,  ///< somebody else had it for all of `patience`
        no_locks,   ///< the folder cannot be written to, or knows no locks
    };
    KeyLock(const std::filesystem::path& folder, std::string_view key, std::chrono::milliseconds patience);
    ~KeyLock();
    KeyLock(const KeyLock&) = delete;
    KeyLock& operator=(const KeyLock&) = delete;
    Got got() const noexcept { return got_; }

private:
    int file_ = -1;
    Got got_ = Got::no_locks;
};

}  // namespace autotune
#endif
