#ifndef AUTOTUNE_TUNER_WORKER_FD_H
#define AUTOTUNE_TUNER_WORKER_FD_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace autotune {

/// A file descriptor, closed exactly once.
class Fd {
public:
    Fd() = default;
    explicit Fd(int value) noexcept : value_{value} {}
    Fd(Fd&& other) noexcept : value_{std::exchange(other.value_, -1)} {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }
    ~Fd() { reset(); }
    int get() const noexcept { return value_; }
    explicit operator bool() const noexcept { return value_ >= 0; }
    void reset() noexcept;
    /// A second descriptor of the same file. Throws Error{internal} when there are none left.
    Fd duplicate() const;

private:
    int value_ = -1;
};

/// Anonymous memory that nobody can change or shrink any more, holding `bytes`: how artefacts, inputs and references
/// travel. Throws Error{internal} when there is no memory.
Fd sealed_memory(std::span<const std::byte> bytes);

/// Anonymous memory that is written in place and sealed afterwards, so that large arrays are never copied.
class WritableMemory {
public:
    explicit WritableMemory(std::uint64_t bytes);
    WritableMemory(WritableMemory&&) = delete;
    ~WritableMemory();
    std::span<std::byte> bytes() noexcept { return {data_, size_}; }
    /// Ends the writing: the memory, sealed.
    Fd seal() &&;

private:
    Fd fd_;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

/// A read-only view of sealed memory that came from another process. Memory without seals is refused, since its owner
/// could shrink it while it is read, which would kill the reader.
class MappedMemory {
public:
    MappedMemory() = default;
    /// Throws Error{internal} unless the memory is sealed and at most `at_most` bytes.
    MappedMemory(const Fd& fd, std::uint64_t at_most);
    MappedMemory(MappedMemory&& other) noexcept
        : data_{std::exchange(other.data_, nullptr)}, size_{std::exchange(other.size_, 0)} {}
    MappedMemory& operator=(MappedMemory&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~MappedMemory();
    std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

private:
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace autotune
#endif
