#include "cache/store/key_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <random>
#include <thread>

#include "cache/store/location.h"

namespace autotune {

namespace {

/// FNV-1a, within what an offset may be. Two keys that meet wait for each other and no more.
off_t place_of(std::string_view key) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return static_cast<off_t>(hash >> 2);
}

}  // namespace

KeyLock::KeyLock(const std::filesystem::path& folder, std::string_view key, std::chrono::milliseconds patience) {
    using Clock = std::chrono::steady_clock;
    if (folder.empty() || !make_private_folder(folder)) return;
    file_ = ::open((folder / "compiling.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file_ < 0) return;
    struct flock place {};  // l_pid stays 0: the lock is the open file's, so that it also tells threads apart
    place.l_type = F_WRLCK;
    place.l_whence = SEEK_SET;
    place.l_start = place_of(key);
    place.l_len = 1;
    const Clock::time_point deadline = Clock::now() + patience;
    std::minstd_rand random{std::random_device{}()};
    std::chrono::microseconds wait{500};
    while (::fcntl(file_, F_OFD_SETLK, &place) != 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EACCES) return;
        if (Clock::now() >= deadline) {
            got_ = Got::timed_out;
            return;
        }
        std::uniform_int_distribution<long> spread{wait.count() / 2, wait.count()};
        std::this_thread::sleep_for(std::chrono::microseconds{spread(random)});
        wait = std::min(wait * 2, std::chrono::microseconds{20'000});
    }
    got_ = Got::held;
}

KeyLock::~KeyLock() {
    if (file_ >= 0) ::close(file_);
}

}  // namespace autotune
