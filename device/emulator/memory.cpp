#include "device/emulator/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "autotune/error.h"
#include "device/guards.h"

namespace autotune::emulator {
namespace {

constexpr std::uint64_t first_address = 0x200000000000;
constexpr std::uint64_t alignment = 256;
/// Pages of freed memory are handed back from this size on.
constexpr std::uint64_t page = 4096;

std::byte* reserve(std::uint64_t bytes) {
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

void hand_back(std::byte* from, std::byte* to) {
    const auto round = [](std::byte* p, std::uint64_t up) {
        return reinterpret_cast<std::byte*>((reinterpret_cast<std::uint64_t>(p) + up) / page * page);
    };
    std::byte *const first = round(from, page - 1), *const last = round(to, 0);
    if (first < last) madvise(first, static_cast<std::size_t>(last - first), MADV_DONTNEED);
}

}  // namespace

GlobalMemory::GlobalMemory(std::uint64_t limit) : limit_{limit} {
    // Twice as much and more, so that addresses of freed memory rest for a while.
    std::uint64_t wanted = std::uint64_t{1} << 40;
    while (wanted > limit + limit / 2) {
        view_.base = reserve(wanted);
        view_.states = view_.base ? reinterpret_cast<std::uint8_t*>(reserve(wanted)) : nullptr;
        if (view_.states) break;
        if (view_.base) munmap(view_.base, wanted);
        view_.base = nullptr;
        wanted /= 2;
    }
    if (!view_.base)
        throw Error{Error::Kind::device,
                    fmt::format("no address space for {} bytes of emulated memory is to be had", limit)};
    reserved_ = wanted;
    view_.start = first_address;
    view_.size = 0;
}

GlobalMemory::~GlobalMemory() {
    munmap(view_.base, reserved_);
    munmap(view_.states, reserved_);
}

/// A place of that size: behind the last one while there is room, else where freed allocations lay.
std::optional<std::uint64_t> GlobalMemory::place(std::uint64_t bytes) {
    if (bytes <= reserved_ - next_) {
        const std::uint64_t at = view_.start + next_;
        next_ += bytes;
        view_.size = std::max(view_.size, next_);
        return at;
    }
    std::uint64_t gap_start = view_.start;
    for (auto i = allocations_.begin(); i != allocations_.end(); ++i) {
        if (i->second.freed) continue;
        if (i->second.first - gap_start >= bytes) break;
        gap_start = i->second.last;
    }
    if (view_.start + reserved_ - gap_start < bytes) return std::nullopt;
    const std::uint64_t gap_end = gap_start + bytes;
    for (const auto& [address, one] : allocations_)
        if (!one.freed && one.first < gap_end && one.last > gap_start) return std::nullopt;
    std::erase_if(allocations_, [&](const auto& entry) {
        return entry.second.freed && entry.second.first < gap_end && entry.second.last > gap_start;
    });
    return gap_start;
}

std::optional<std::uint64_t> GlobalMemory::allocate(std::uint64_t bytes, std::uint64_t misalign, std::string name) {
    return take(bytes, misalign, std::move(name), true);
}

std::optional<std::uint64_t> GlobalMemory::allocate_untouched(std::uint64_t bytes, std::uint64_t misalign,
                                                              std::string name) {
    return take(bytes, misalign, std::move(name), false);
}

void GlobalMemory::zero(std::uint64_t address, std::uint64_t bytes) noexcept {
    // Whole pages, and what is left at both ends.
    hand_back(host(address), host(address) + bytes);
    const std::uint64_t end = std::min(bytes, page);
    std::memset(host(address), 0, end);
    std::memset(host(address + bytes - end), 0, end);
}

std::optional<std::uint64_t> GlobalMemory::take(std::uint64_t bytes, std::uint64_t misalign, std::string name,
                                                bool touched) {
    if (bytes > limit_ - used_ || misalign >= alignment * 16) return std::nullopt;
    const std::uint64_t front = (guard_bytes + alignment - 1) / alignment * alignment + misalign;
    const std::uint64_t total = (front + bytes + guard_bytes + alignment - 1) / alignment * alignment;
    const std::optional<std::uint64_t> first = place(total);
    if (!first) return std::nullopt;
    const std::uint64_t address = *first + front;
    allocations_[address] = {
        .address = address, .bytes = bytes, .first = *first, .last = *first + total, .name = std::move(name)};
    used_ += bytes;
    if (!touched) {
        allocations_[address].untouched = true;
        zero(address, bytes);  // something may have lain here before
        mark(*first, front, ByteState::outside);
        mark(address + bytes, *first + total - address - bytes, ByteState::outside);
    } else {
        mark(*first, total, ByteState::outside);
        mark(address, bytes, ByteState::uninitialised);
        std::memset(host(address), 0, bytes);
    }
    mend(address);
    return address;
}

void GlobalMemory::release(std::uint64_t address) {
    Allocation& one = allocations_.at(address);
    if (one.freed) return;
    one.freed = true;
    used_ -= one.bytes;
    if (!one.untouched) mark(address, one.bytes, ByteState::freed);
    hand_back(host(address), host(address) + one.bytes);
}

void GlobalMemory::mark(std::uint64_t address, std::uint64_t count, ByteState state) noexcept {
    std::memset(view_.states + (address - view_.start), static_cast<int>(state), count);
}

void GlobalMemory::mend(std::uint64_t address) noexcept {
    const Allocation& one = allocations_.at(address);
    for (std::uint64_t at = one.first; at < one.address; ++at) *host(at) = guard_byte(at);
    for (std::uint64_t at = one.address + one.bytes; at < one.last; ++at) *host(at) = guard_byte(at);
}

const GlobalMemory::Allocation* GlobalMemory::nearest(std::uint64_t address) const noexcept {
    if (allocations_.empty()) return nullptr;
    auto above = allocations_.upper_bound(address);
    if (above == allocations_.begin()) return &above->second;
    const Allocation& below = std::prev(above)->second;
    if (above == allocations_.end() || address < below.address + below.bytes) return &below;
    return address - (below.address + below.bytes) <= above->second.address - address ? &below : &above->second;
}

}  // namespace autotune::emulator
