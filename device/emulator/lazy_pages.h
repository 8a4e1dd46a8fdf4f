#ifndef AUTOTUNE_DEVICE_EMULATOR_LAZY_PAGES_H
#define AUTOTUNE_DEVICE_EMULATOR_LAZY_PAGES_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace autotune::emulator {

/// Memory whose contents are made where they are first touched, 64 KiB at a time: a tensor of 40 GB of which a few blocks
/// see a part costs that part. Works by page protection and a handler of SIGSEGV, which passes on what is not its own.
/// One thread makes, touches and ends them.
class LazyPages {
public:
    /// Writes bytes [offset, offset + out.size()) of the whole.
    using Make = std::function<void(std::span<std::byte> out, std::uint64_t offset)>;

    /// memory: mapped, zero, and touched by nobody yet. Its ends need not lie at pages: those parts are made at once.
    LazyPages(std::span<std::byte> memory, Make make);
    /// The memory is plain memory again, with what was made of it.
    ~LazyPages();
    LazyPages(const LazyPages&) = delete;
    LazyPages& operator=(const LazyPages&) = delete;

    /// Makes what lies around an address; false: it is none of this memory.
    bool touch(const void* address);
    std::uint64_t made_bytes() const noexcept { return made_; }

private:
    void make(std::byte* first, std::byte* last);

    std::span<std::byte> memory_;
    std::byte *first_ = nullptr, *last_ = nullptr;  ///< the whole pages
    Make make_;
    std::uint64_t made_ = 0;
};

}  // namespace autotune::emulator
#endif
