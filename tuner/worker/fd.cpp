#include "tuner/worker/fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "autotune/error.h"

namespace autotune {
namespace {

constexpr int all_seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

[[noreturn]] void fail_memory(const char* action, std::uint64_t bytes) {
    throw Error{Error::Kind::internal,
                fmt::format("{} of {} bytes of shared memory failed: {}", action, bytes, std::strerror(errno))};
}

Fd make_memory() {
    Fd fd{memfd_create("autotune", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (!fd) fail_memory("making", 0);
    return fd;
}

}  // namespace

void Fd::reset() noexcept {
    if (value_ >= 0) close(std::exchange(value_, -1));
}

Fd Fd::duplicate() const {
    Fd copy{fcntl(value_, F_DUPFD_CLOEXEC, 3)};
    if (!copy)
        throw Error{Error::Kind::internal,
                    fmt::format("a file descriptor could not be copied: {}", std::strerror(errno))};
    return copy;
}

Fd sealed_memory(std::span<const std::byte> bytes) {
    Fd fd = make_memory();
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t wrote = write(fd.get(), bytes.data() + done, bytes.size() - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) fail_memory("writing", bytes.size());
        done += static_cast<std::size_t>(wrote);
    }
    if (fcntl(fd.get(), F_ADD_SEALS, all_seals) != 0) fail_memory("sealing", bytes.size());
    return fd;
}

WritableMemory::WritableMemory(std::uint64_t bytes) : fd_{make_memory()}, size_{static_cast<std::size_t>(bytes)} {
    if (ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) fail_memory("taking", bytes);
    if (size_ == 0) return;
    void* mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (mapped == MAP_FAILED) fail_memory("mapping", bytes);
    data_ = static_cast<std::byte*>(mapped);
}

WritableMemory::~WritableMemory() {
    if (data_) munmap(data_, size_);
}

Fd WritableMemory::seal() && {
    if (data_) munmap(std::exchange(data_, nullptr), size_);
    if (fcntl(fd_.get(), F_ADD_SEALS, all_seals) != 0) fail_memory("sealing", size_);
    return std::move(fd_);
}

MappedMemory::MappedMemory(const Fd& fd, std::uint64_t at_most) {
    const int seals = fcntl(fd.get(), F_GET_SEALS);
    constexpr int needed = F_SEAL_SHRINK | F_SEAL_WRITE;
    if (seals < 0 || (seals & needed) != needed)
        throw Error{Error::Kind::internal, "a worker sent memory that is not sealed"};
    struct stat facts {};
    if (fstat(fd.get(), &facts) != 0 || facts.st_size < 0 || static_cast<std::uint64_t>(facts.st_size) > at_most)
        throw Error{Error::Kind::internal, fmt::format("a worker sent more than {} bytes", at_most)};
    size_ = static_cast<std::size_t>(facts.st_size);
    if (size_ == 0) return;
    void* mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (mapped == MAP_FAILED) fail_memory("mapping", size_);
    data_ = static_cast<const std::byte*>(mapped);
}

MappedMemory::~MappedMemory() {
    if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace autotune
