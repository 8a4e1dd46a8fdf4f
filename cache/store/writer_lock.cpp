#include "cache/store/writer_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <utility>

namespace autotune {

namespace {

using Clock = WriterLock::Clock;
using std::chrono::microseconds;

/// It is written to, so it is nothing that somebody put there under its name: no link to another file of the user's.
int open_lock_file(const std::filesystem::path& path, int flags) {
    const int file = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    struct stat status {};
    if (file < 0 || (::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1)) return file;
    ::close(file);
    return -1;
}

/// Polls, since flock knows no timeout.
bool lock_until(int file, Clock::time_point deadline) {
    constexpr microseconds longest_wait{200};
    microseconds wait{20};
    while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
        if (Clock::now() >= deadline) return false;
        std::this_thread::sleep_for(wait);
        wait = std::min(wait * 2, longest_wait);
    }
    return true;
}

/// A lock on a range of bytes that belongs to the open file and not to the process, of which each lock's file is
/// another.
struct flock bytes_of_queue(std::int64_t first, std::int64_t count, short type) {
    struct flock range {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = first;
    range.l_len = count;
    return range;
}

/// A place in the queue, given up at the end of the scope or with the process.
class Ticket {
public:
    /// The file's first lock is held while the number is drawn; the file says which was the last.
    Ticket(int queue, Clock::time_point deadline) : queue_{queue} {
        if (!lock_until(queue_, deadline)) return;
        std::int64_t last = 0;
        const bool known = ::pread(queue_, &last, sizeof last, 0) == static_cast<ssize_t>(sizeof last);
        constexpr std::int64_t most = std::int64_t{1} << 62;
        number_ = known && last >= 0 && last < most ? last + 1 : 1;
        struct flock mine = bytes_of_queue(number_, 1, F_WRLCK);
        const bool queued = ::fcntl(queue_, F_OFD_SETLK, &mine) == 0 &&
                            ::pwrite(queue_, &number_, sizeof number_, 0) == static_cast<ssize_t>(sizeof number_);
        if (!queued) number_ = 1;  // no such locks here: it goes as if it were the first
        ::flock(queue_, LOCK_UN);
    }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    ~Ticket() {
        struct flock all = bytes_of_queue(0, 0, F_UNLCK);
        ::fcntl(queue_, F_OFD_SETLK, &all);
    }

    bool drawn() const noexcept { return number_ > 0; }
    std::int64_t number() const noexcept { return number_; }
    /// Of those before this one, who comes first; the number itself: nobody.
    std::int64_t first_waiting() const noexcept {
        if (number_ <= 1) return number_;
        struct flock before = bytes_of_queue(1, number_ - 1, F_WRLCK);
        return ::fcntl(queue_, F_OFD_GETLK, &before) == 0 && before.l_type != F_UNLCK ? before.l_start : number_;
    }

private:
    int queue_;
    std::int64_t number_ = 0;
};

/// Waits for its turn, looking rarely while that is far off. True: it has come. False: nothing moves, or time is up.
bool wait_in_queue(const Ticket& ticket, Clock::time_point deadline) {
    constexpr std::chrono::milliseconds stuck_after{250};
    constexpr microseconds shortest{50}, longest{20'000};
    const Clock::time_point began = Clock::now();
    Clock::time_point moved = began, now = began;
    const std::int64_t first_seen = ticket.first_waiting();
    microseconds wait = shortest;
    for (std::int64_t first = first_seen; first < ticket.number();) {
        if (now >= deadline || now - moved > stuck_after) return false;
        std::this_thread::sleep_for(wait);
        now = Clock::now();
        const std::int64_t next = ticket.first_waiting();
        if (next == first) {
            wait = std::min({wait * 2, microseconds{500} * (ticket.number() - next), longest});
        } else {
            // Half of the time that those before it will take, by what the others took.
            const auto each = std::chrono::duration_cast<microseconds>(now - began) / (next - first_seen);
            wait = std::clamp(each * (ticket.number() - next) / 2, shortest, longest);
            moved = now;
        }
        first = next;
    }
    return true;
}

/// For the message of who waits in vain.
bool sign(int lock) {
    const std::string pid = fmt::format("{:<10}\n", ::getpid());
    [[maybe_unused]] const auto written = ::pwrite(lock, pid.data(), pid.size(), 0);
    return true;
}

}  // namespace

WriterLock::WriterLock(const std::filesystem::path& database)
    : queue_path_{database.string() + "-queue"}, lock_path_{database.string() + "-lock"} {}

WriterLock::WriterLock(WriterLock&& other) noexcept
    : queue_path_{std::move(other.queue_path_)},
      lock_path_{std::move(other.lock_path_)},
      queue_{std::exchange(other.queue_, -1)},
      lock_{std::exchange(other.lock_, -1)},
      turn_ends_{other.turn_ends_} {}

WriterLock& WriterLock::operator=(WriterLock&& other) noexcept {
    std::swap(queue_path_, other.queue_path_);
    std::swap(lock_path_, other.lock_path_);
    std::swap(queue_, other.queue_);
    std::swap(lock_, other.lock_);
    std::swap(turn_ends_, other.turn_ends_);
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

    const Clock::time_point now = Clock::now(), deadline = now + patience;
    if (now < turn_ends_ && ::flock(lock_, LOCK_EX | LOCK_NB) == 0) return sign(lock_);
    {
        const Ticket ticket{queue_, deadline};
        if (!ticket.drawn()) return false;
        // Who is stuck tries its luck between looks.
        while (!wait_in_queue(ticket, deadline)) {
            if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return sign(lock_);
            if (Clock::now() >= deadline) return false;
        }
        if (!lock_until(lock_, deadline)) return false;
    }
    turn_ends_ = Clock::now() + turn;
    return sign(lock_);
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
