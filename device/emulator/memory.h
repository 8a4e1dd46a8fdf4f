#ifndef AUTOTUNE_DEVICE_EMULATOR_MEMORY_H
#define AUTOTUNE_DEVICE_EMULATOR_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "device/emulator/warp.h"

namespace autotune::emulator {

/// Global memory: one large piece of address space, most of it never touched. Allocations are never packed: a red zone
/// of at least 4 KiB, filled with the guard pattern, lies on both sides, and addresses are not used again until the
/// space runs out. The same calls give the same addresses in every process.
class GlobalMemory {
public:
    /// limit: bytes that allocations may take together.
    explicit GlobalMemory(std::uint64_t limit);
    ~GlobalMemory();
    GlobalMemory(const GlobalMemory&) = delete;
    GlobalMemory& operator=(const GlobalMemory&) = delete;

    /// The address, aligned to 256 bytes plus `misalign`; nothing when memory runs out. Contents are zero and count as
    /// uninitialised.
    std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t misalign, std::string name);
    /// The same without touching what lies between its red zones: contents are zero, and no access to them is checked.
    std::optional<std::uint64_t> allocate_untouched(std::uint64_t bytes, std::uint64_t misalign, std::string name);
    void release(std::uint64_t address);
    std::uint64_t free_bytes() const noexcept { return limit_ - used_; }

    std::byte* host(std::uint64_t address) noexcept { return view_.base + (address - view_.start); }
    std::span<std::byte> bytes(std::uint64_t address, std::uint64_t count) noexcept { return {host(address), count}; }
    std::span<std::uint8_t> states(std::uint64_t address, std::uint64_t count) noexcept {
        return {view_.states + (address - view_.start), count};
    }
    void mark(std::uint64_t address, std::uint64_t count, ByteState state) noexcept;
    /// Zeros, without touching all of it.
    void zero(std::uint64_t address, std::uint64_t bytes) noexcept;
    const SpaceView& view() const noexcept { return view_; }
    /// Fills the red zones around an allocation anew.
    void mend(std::uint64_t address) noexcept;

    struct Allocation {
        std::uint64_t address = 0, bytes = 0;
        std::uint64_t first = 0, last = 0;  ///< with its red zones: [first, last)
        std::string name;
        bool freed = false, untouched = false;
    };
    /// The allocation that an address lies in or nearest to; null where there is none at all.
    const Allocation* nearest(std::uint64_t address) const noexcept;
    const Allocation& allocation(std::uint64_t address) const { return allocations_.at(address); }
    void rename(std::uint64_t address, std::string name) { allocations_.at(address).name = std::move(name); }

private:
    std::optional<std::uint64_t> place(std::uint64_t bytes);
    std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t misalign, std::string name, bool touched);

    SpaceView view_;
    std::uint64_t reserved_ = 0, limit_ = 0, used_ = 0, next_ = 0;
    std::map<std::uint64_t, Allocation> allocations_;  ///< by address; freed ones until their place is used again
};

}  // namespace autotune::emulator
#endif
