#include "cache/store/writer_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

namespace autotune {

namespace {

using Clock = std::chrono::steady_clock;

/// It is written to, so it is nothing that somebody put there under its name: no link to another file of the user's.
int open_lock_file(const std::filesystem::path& path, int flags) {
    const int file = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    struct stat status {};
    if (file < 0 || (::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1)) return file;
    ::close(file);
    return -1;
}

/// Polls, since flock knows no timeout; the waits are random, so that equals get equal shares.
bool lock_until(int file, Clock::time_point deadline, std::chrono::microseconds longest_wait) {
    thread_local std::minstd_rand random{std::random_device{}()};
    std::chrono::microseconds wait{50};
    while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
        if (Clock::now() >= deadline) return false;
        std::uniform_int_distribution<long> spread{wait.count() / 2, wait.count()};
        std::this_thread::sleep_for(std::chrono::microseconds{spread(random)});
        wait = std::min(wait * 2, longest_wait);
    }
    return true;
}

}  // namespace

WriterLock::WriterLock(const std::filesystem::path& database)
    : queue_path_{database.string() + "-queue"}, lock_path_{database.string() + "-lock"} {}

WriterLock::WriterLock(WriterLock&& other) noexcept
    : queue_path_{std::move(other.queue_path_)},
      lock_path_{std::move(other.lock_path_)},
      queue_{std::exchange(other.queue_, -1)},
      lock_{std::exchange(other.lock_, -1)} {}

WriterLock& WriterLock::operator=(WriterLock&& other) noexcept {
    std::swap(queue_path_, other.queue_path_);
    std::swap(lock_path_, other.lock_path_);
    std::swap(queue_, other.queue_);
    std::swap(lock_, other.lock_);
    return *this;
}

WriterLock::~WriterLock() {
    if (queue_ >= 0) ::close(queue_);
    if (lock_ >= 0) ::close(lock_);
}

bool WriterLock::acquire(std::chrono::milliseconds patience) {
    if (queue_ < 0) queue_ = open_lock_file(queue_path_, O_RDWR | O_CREAT);
    if (lock_ < 0) lock_ = open_lock_file(lock_path_, O_RDWR | O_CREAT);
    if (queue_ < 0 || lock_ < 0) return true;  // no lock to be had here; SQLite's own still guards the file

    const Clock::time_point deadline = Clock::now() + patience;
    if (!lock_until(queue_, deadline, std::chrono::microseconds{4000})) return false;
    const bool got = lock_until(lock_, deadline, std::chrono::microseconds{200});
    ::flock(queue_, LOCK_UN);
    if (!got) return false;

    const std::string pid = fmt::format("{:<10}\n", ::getpid());
    [[maybe_unused]] const auto written = ::pwrite(lock_, pid.data(), pid.size(), 0);
    return true;
}

void WriterLock::release() noexcept {
    if (lock_ >= 0) ::flock(lock_, LOCK_UN);
}

std::string WriterLock::holder() const {
    char text[16] = {};
    const int file = open_lock_file(lock_path_, O_RDONLY);
    if (file < 0) return {};
    const auto got = ::pread(file, text, sizeof text - 1, 0);
    ::close(file);
    const long pid = got > 0 ? std::strtol(text, nullptr, 10) : 0;
    return pid > 0 ? fmt::format("process {} on this host", pid) : std::string{};
}

}  // namespace autotune
