#include "device/emulator/accesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "device/emulator/block_trace.h"
#include "device/emulator/cluster.h"
#include "device/emulator/fault.h"

namespace autotune::emulator {
namespace {

constexpr std::array<const char*, 3> doing{"a load", "a store", "an atomic access"};
constexpr std::array<const char*, 6> spaces{"generic", "global",    "shared",
                                            "local",   "parameter", "the cluster's shared"};

const char* doing_of(Access access) { return doing[static_cast<std::size_t>(access)]; }

std::string where(Warp& w, Space space, std::uint64_t at, std::uint64_t size) {
    const LaunchState& launch = *w.block->launch;
    if (space == Space::global) return beside(launch, w.views[static_cast<int>(space)].start + at);
    return fmt::format(", at byte {} of {} bytes of {} memory", static_cast<std::int64_t>(at), size,
                       spaces[static_cast<std::size_t>(space)]);
}

std::uint64_t full_address(const Warp& w, Space space, std::uint64_t at) {
    return w.views[static_cast<int>(space)].start + at;
}

bool all_initialised(const std::uint8_t* states, std::uint32_t bytes) {
    constexpr std::uint64_t wanted = 0x0202020202020202u;
    std::uint64_t differ = 0, eight = wanted;
    std::uint32_t k = 0;
    for (; k + 8 <= bytes; k += 8) {
        std::memcpy(&eight, states + k, 8);
        differ |= eight ^ wanted;
    }
    for (; k < bytes; ++k) differ |= states[k] ^ 2u;
    return differ == 0;
}

[[noreturn]] void bad_state(Warp& w, const Op& op, int lane, Space space, std::uint64_t at, std::uint32_t bytes,
                            Access access, ByteState state) {
    const std::uint64_t size = w.views[static_cast<int>(space)].size;
    const std::string place = where(w, space, at, size);
    const std::uint64_t address = full_address(w, space, at);
    const std::string subject = fmt::format("{} of {} bytes", doing_of(access), bytes);
    switch (state) {
        case ByteState::outside:
            fail(w, op, lane, DeviceFault::Kind::out_of_bounds, subject + " is out of bounds", place, address);
        case ByteState::freed:
            fail(w, op, lane, DeviceFault::Kind::invalid_access, subject + " touches memory that was released", place,
                 address);
        case ByteState::uninitialised:
            fail(w, op, lane, DeviceFault::Kind::invalid_access, subject + " reads what was never written", place,
                 address);
        case ByteState::pending:
            fail(w, op, lane, DeviceFault::Kind::race,
                 subject + " touches the target of an asynchronous copy that was not waited for", place, address);
        case ByteState::reading:
            fail(w, op, lane, DeviceFault::Kind::race,
                 subject + " overwrites what an asynchronous operation that was not waited for reads", place, address);
        default:
            fail(w, op, lane, DeviceFault::Kind::invalid_access, subject + " touches an mbarrier", place, address);
    }
}

}  // namespace

std::string beside(const LaunchState& launch, std::uint64_t address) {
    const GlobalMemory::Allocation* const near = launch.memory.nearest(address);
    if (!near) return ", where nothing is allocated";
    std::string name = near->name.empty() ? fmt::format("a buffer of {} bytes", near->bytes)
                                          : fmt::format("{} ({} bytes)", near->name, near->bytes);
    for (std::size_t i = 0; i < launch.pointers.size(); ++i)
        if (launch.pointers[i] >= near->address && launch.pointers[i] <= near->address + near->bytes &&
            launch.pointers[i] != 0)
            name = fmt::format("argument {} ({} bytes)", i, near->bytes);
    const std::uint64_t end = near->address + near->bytes;
    if (address >= end) return fmt::format(", {} bytes behind the end of {}", address - end, name);
    if (address < near->address) return fmt::format(", {} bytes before the start of {}", near->address - address, name);
    return fmt::format(", at byte {} of {}", address - near->address, name);
}

Space space_of(const Warp&, std::uint64_t address) noexcept {
    if (address - shared_window < window_bytes) return Space::shared;
    if (address - local_window < window_bytes) return Space::local;
    if (address - param_window < window_bytes) return Space::param;
    return Space::global;
}

std::uint64_t window_of(Space space) noexcept {
    switch (space) {
        case Space::shared:
            return shared_window;
        case Space::local:
            return local_window;
        case Space::param:
            return param_window;
        default:
            return 0;
    }
}

void bad_access(Warp& w, const Op& op, std::uint32_t m, Space space, const std::uint64_t* at, std::uint32_t bytes,
                Access access) {
    const SpaceView& view = w.views[static_cast<int>(space)];
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const std::string subject = fmt::format("{} of {} bytes", doing_of(access), bytes);
        const std::uint64_t address = full_address(w, space, at[i]);
        if (at[i] >= view.size || bytes > view.size - at[i]) {
            if (space == Space::global && address < 4096 * 1024)
                fail(w, op, i, DeviceFault::Kind::invalid_access,
                     fmt::format("{} goes through a null pointer", subject), fmt::format(", address {:#x}", address),
                     address);
            fail(w, op, i, DeviceFault::Kind::out_of_bounds, subject + " is out of bounds",
                 where(w, space, at[i], view.size), address);
        }
        if ((view.start + at[i]) & (bytes - 1))
            fail(w, op, i, DeviceFault::Kind::invalid_access, subject + " is misaligned",
                 fmt::format("{}, address {:#x}", where(w, space, at[i], view.size), address), address);
    }
    fail(w, op, __builtin_ctz(m), DeviceFault::Kind::invalid_access, "an access is not possible");
}

void check_states(Warp& w, const Op& op, std::uint32_t m, Space space, const std::uint64_t* at, std::uint32_t bytes,
                  Access access) {
    const SpaceView& view = w.views[static_cast<int>(space)];
    const Checks& checks = w.block->launch->checks;
    std::uint32_t unlike = 0;  // lanes that touch anything but what was written
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        unlike |= static_cast<std::uint32_t>(!all_initialised(view.states + at[i], bytes)) << i;
    }
    for (std::uint32_t left = unlike; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        std::uint8_t* const states = view.states + at[i];
        for (std::uint32_t k = 0; k < bytes; ++k) {
            const auto state = static_cast<ByteState>(states[k]);
            if (state == ByteState::initialised) continue;
            const bool wrong = state == ByteState::uninitialised ? access != Access::store && checks.uninitialised
                               : state == ByteState::pending     ? checks.races
                               : state == ByteState::reading     ? access != Access::load && checks.races
                                                                 : checks.memory;
            if (!wrong) continue;
            const bool may_be_race =
                state == ByteState::uninitialised && space == Space::shared && w.races && w.block->warps.size() > 1;
            if (!may_be_race) bad_state(w, op, i, space, at[i] + k, bytes, access, state);
            if (w.block->deferred) continue;
            try {
                bad_state(w, op, i, space, at[i] + k, bytes, access, state);
            } catch (const Fault& fault) {
                w.block->deferred = fault.report();
            }
        }
    }
    if (access == Access::load) return;
    for (std::uint32_t left = unlike; left; left &= left - 1) {
        std::uint8_t* const states = view.states + at[__builtin_ctz(left)];
        for (std::uint32_t k = 0; k < bytes; ++k)
            if (states[k] == static_cast<std::uint8_t>(ByteState::uninitialised))
                states[k] = static_cast<std::uint8_t>(ByteState::initialised);
    }
}

namespace {

/// Distinct sectors of 32 bytes. Addresses mostly rise from lane to lane; only others are sorted.
std::uint32_t sectors(std::uint32_t m, const std::uint64_t* at, std::uint32_t bytes, std::uint64_t start) {
    std::uint64_t seen[lanes * 2];
    std::uint32_t count = 0;
    bool rising = true;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const std::uint64_t from = start + at[__builtin_ctz(left)];
        for (std::uint64_t sector = from / 32; sector <= (from + bytes - 1) / 32; ++sector) {
            if (count > 0 && seen[count - 1] == sector) continue;
            rising = rising && (count == 0 || seen[count - 1] < sector);
            seen[count++] = sector;
        }
    }
    if (rising) return count;
    std::sort(seen, seen + count);
    return static_cast<std::uint32_t>(std::unique(seen, seen + count) - seen);
}

/// Passes over 32 banks of 4 bytes, by quarter and half warps for wide accesses: most distinct words in one bank.
std::uint32_t wavefronts(std::uint32_t m, const std::uint64_t* at, std::uint32_t bytes) {
    const int group = bytes >= 16 ? 8 : bytes == 8 ? 16 : 32;
    std::uint32_t total = 0;
    for (int first = 0; first < lanes; first += group) {
        std::uint64_t word_of[32], more[64];  // of each bank the first word, and all further ones
        std::uint32_t words[32]{}, most = 0;
        int further = 0;
        std::uint64_t before = ~std::uint64_t{0};
        for (int i = first; i < first + group; ++i) {
            if (!(m >> i & 1) || at[i] == before) continue;
            before = at[i];
            for (std::uint64_t word = at[i] / 4; word <= (at[i] + bytes - 1) / 4; ++word) {
                const std::size_t bank = word % 32;
                if (words[bank] == 0) {
                    word_of[bank] = word;
                } else if (word_of[bank] == word || std::find(more, more + further, word) != more + further) {
                    continue;
                } else {
                    more[further++] = word;
                }
                most = std::max(most, ++words[bank]);
            }
        }
        total += most;
    }
    return total;
}

}  // namespace

void count_access(Warp& w, std::uint32_t m, Space space, const std::uint64_t* at, std::uint32_t bytes, Access access) {
    Counters& counters = *w.block->launch->counters;
    const std::uint64_t moved = std::uint64_t{bytes} * static_cast<std::uint64_t>(__builtin_popcount(m));
    if (space == Space::local) {
        counters.local_bytes += moved;
        if (w.trace) w.trace->access(w, m, space, at, bytes, access, 1);
    } else if (space == Space::global) {
        const std::uint32_t touched = sectors(m, at, bytes, w.views[static_cast<int>(space)].start);
        if (w.trace) w.trace->access(w, m, space, at, bytes, access, touched);
        if (access == Access::store) {
            ++counters.global_store_requests;
            counters.global_store_sectors += touched;
            counters.global_store_bytes += moved;
        } else if (access == Access::load) {
            ++counters.global_load_requests;
            counters.global_load_sectors += touched;
            counters.global_load_bytes += moved;
        } else {
            ++counters.atomic_requests;
        }
    } else if (space == Space::shared || space == Space::cluster) {
        const std::uint32_t passes = wavefronts(m, at, bytes);
        if (w.trace) w.trace->access(w, m, space, at, bytes, access, passes);
        const auto groups = static_cast<std::uint32_t>(bytes >= 16 ? 4 : bytes == 8 ? 2 : 1);
        const int group = lanes / static_cast<int>(groups);
        std::uint32_t needed = 0;
        for (int first = 0; first < lanes; first += group)
            needed += ((m >> first) & (group == lanes ? all_lanes : (1u << group) - 1)) != 0;
        counters.shared_conflicts += passes > needed ? passes - needed : 0;
        if (access == Access::load) {
            ++counters.shared_load_requests;
            counters.shared_load_wavefronts += passes;
            counters.shared_load_bytes += moved;
        } else {
            ++counters.shared_store_requests;
            counters.shared_store_wavefronts += passes;
            counters.shared_store_bytes += moved;
        }
    }
}

Space resolve(Warp& w, const Op& op, std::uint32_t m, std::int32_t row, std::int64_t offset, Space space, bool wide,
              std::uint64_t* at, std::uint32_t bytes, Access access) {
    const int first = __builtin_ctz(m);
    std::uint64_t low_bits = 0;
    for (int i = 0; i < lanes; ++i) {
        at[i] = wide ? w.row<std::uint64_t>(row)[i] : std::uint64_t{w.row<std::uint32_t>(row)[i]};
        at[i] += static_cast<std::uint64_t>(offset);
        if (!wide) at[i] &= 0xffffffffu;
    }
    Space found = space;
    std::uint64_t start = 0;
    if (space == Space::generic) {
        found = space_of(w, at[first]);
        start = window_of(found);
        for (std::uint32_t left = m; left; left &= left - 1)
            if (space_of(w, at[__builtin_ctz(left)]) != found)
                fail(w, op, __builtin_ctz(left), DeviceFault::Kind::not_emulated,
                     "not emulated: one instruction on several address spaces");
    }
    const SpaceView& view = w.views[static_cast<int>(found)];
    bool wrong = false;
    for (int i = 0; i < lanes; ++i) {
        if (!(m >> i & 1)) {
            at[i] = 0;
            continue;
        }
        low_bits |= at[i];
        at[i] -= start + view.start;
        wrong |= at[i] >= view.size || bytes > view.size - at[i];
    }
    if (wrong || (low_bits & (bytes - 1)) != 0) {
        const bool near = found == Space::shared && (low_bits & (bytes - 1)) == 0;
        if (!near || !reach_cluster(w, op, m, at, bytes, found)) bad_access(w, op, m, found, at, bytes, access);
    }
    return found;
}

}  // namespace autotune::emulator
