// Preloaded into a program, makes the disk full for it: after FULL_DISK_BYTES bytes, writes to files whose path begins
// with FULL_DISK end with "No space left on device", as if a file system had no block left. After FULL_DISK_REFUSALS of
// them somebody has made room. SQLITE_VERSION_SAID=3051003 lets it believe in that version of SQLite, with which
// databases get a write-ahead log.
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> left{-1}, refused{0};

/// Takes the bytes off what is left; false: they do not fit any more.
bool fits(int file, size_t bytes) {
    const char* folder = std::getenv("FULL_DISK");
    if (!folder) return true;
    char link[64], path[4096];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return true;
    path[length] = 0;
    if (std::strncmp(path, folder, std::strlen(folder)) != 0) return true;
    static const long all = [] {
        const char* bytes_text = std::getenv("FULL_DISK_BYTES");
        return bytes_text ? std::atol(bytes_text) : 0;
    }();
    static const long refusals = [] {
        const char* count = std::getenv("FULL_DISK_REFUSALS");
        return count ? std::atol(count) : -1;
    }();
    if (refusals >= 0 && refused >= refusals) return true;
    long unset = -1;
    left.compare_exchange_strong(unset, all);
    if (left.fetch_sub(static_cast<long>(bytes)) >= static_cast<long>(bytes)) return true;
    left = 0;
    ++refused;
    errno = ENOSPC;
    return false;
}

template <class Function>
Function real(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int sqlite3_libversion_number() {
    static const auto next = real<int (*)()>("sqlite3_libversion_number");
    const char* said = std::getenv("SQLITE_VERSION_SAID");
    return said ? std::atoi(said) : next();
}

__attribute__((visibility("default"))) ssize_t write(int file, const void* data, size_t bytes) {
    static const auto next = real<ssize_t (*)(int, const void*, size_t)>("write");
    return fits(file, bytes) ? next(file, data, bytes) : -1;
}

__attribute__((visibility("default"))) ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
    static const auto next = real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
    return fits(file, bytes) ? next(file, data, bytes, offset) : -1;
}

__attribute__((visibility("default"))) ssize_t pwrite64(int file, const void* data, size_t bytes, off64_t offset) {
    static const auto next = real<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
    return fits(file, bytes) ? next(file, data, bytes, offset) : -1;
}

__attribute__((visibility("default"))) ssize_t writev(int file, const iovec* parts, int count) {
    static const auto next = real<ssize_t (*)(int, const iovec*, int)>("writev");
    size_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
    return fits(file, bytes) ? next(file, parts, count) : -1;
}
}
