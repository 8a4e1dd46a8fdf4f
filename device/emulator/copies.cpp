#include "device/emulator/copies.h"

#include <algorithm>
#include <cstring>

#include "device/emulator/accesses.h"
#include "device/emulator/block.h"
#include "device/emulator/fault.h"

namespace autotune::emulator {
namespace {

void check_source(Warp& w, const Op& op, std::uint32_t m, Space space, const std::uint64_t* from,
                  const std::uint32_t* read) {
    if (!w.checked || !w.views[static_cast<int>(space)].states) return;
    const int first = __builtin_ctz(m);
    bool alike = true;
    for (std::uint32_t left = m; left; left &= left - 1) alike &= read[__builtin_ctz(left)] == read[first];
    if (alike) return check_states(w, op, m, space, from, read[first], Access::load);
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        if (read[i] > 0) check_states(w, op, 1u << i, space, from, read[i], Access::load);
    }
}

/// A piece that is copied whole, of 4, 8 or 16 bytes.
void copy_piece(std::byte* to, const std::byte* from, std::uint32_t bytes) {
    if (bytes == 16)
        std::memcpy(to, from, 16);
    else if (bytes == 8)
        std::memcpy(to, from, 8);
    else
        std::memcpy(to, from, 4);
}

void mark_piece(std::uint8_t* states, std::uint32_t bytes, ByteState state) {
    const std::uint64_t eight = static_cast<std::uint64_t>(state) * 0x0101010101010101u, pair[2] = {eight, eight};
    copy_piece(reinterpret_cast<std::byte*>(states), reinterpret_cast<const std::byte*>(pair), bytes);
}

}  // namespace

void copy_async(Warp& w, const Op& op, std::uint32_t m) {
    const std::uint32_t bytes = op.small;
    std::uint64_t to[lanes], from[lanes];
    std::uint32_t read[lanes];
    for (int i = 0; i < lanes; ++i) read[i] = op.c ? std::min(w.row<std::uint32_t>(op.c)[i], bytes) : bytes;
    std::uint32_t reading = 0;
    for (int i = 0; i < lanes; ++i)
        if (m >> i & 1 && read[i] > 0) reading |= 1u << i;
    resolve(w, op, m, op.a, op.imm, Space::shared, op.wide_address, to, bytes, Access::store);
    const std::int64_t source_offset = w.extra[op.extra];
    if (reading) {
        // A source is aligned as a whole, and in bounds as far as it is read.
        const std::uint32_t least = [&] {
            std::uint32_t smallest = bytes;
            for (int i = 0; i < lanes; ++i)
                if (reading >> i & 1) smallest = std::min(smallest, read[i]);
            return smallest;
        }();
        const bool even = (least & (least - 1)) == 0 && least == bytes;
        resolve(w, op, reading, op.b, source_offset, Space::global, true, from, even ? bytes : 1, Access::load);
        for (std::uint32_t left = even ? 0 : reading; left; left &= left - 1) {
            const int i = __builtin_ctz(left);
            if (from[i] % bytes != 0 || read[i] > w.views[static_cast<int>(Space::global)].size - from[i])
                bad_access(w, op, 1u << i, Space::global, from, bytes, Access::load);
        }
        check_source(w, op, reading, Space::global, from, read);
        if (w.block_races && even) w.block_races->read(w, op, reading, from, bytes);
    }
    const SpaceView &target = w.views[static_cast<int>(Space::shared)],
                    &source = w.views[static_cast<int>(Space::global)];
    if (w.checked) {
        if (target.states) check_states(w, op, m, Space::shared, to, bytes, Access::store);
        std::uint32_t at[lanes];
        for (int i = 0; i < lanes; ++i) at[i] = static_cast<std::uint32_t>(to[i]);
        if (w.races) w.races->write(w, op, m, at, bytes);
    }
    if (w.counted) {
        Counters& counters = *w.block->launch->counters;
        counters.async_bytes += std::uint64_t{bytes} * static_cast<std::uint64_t>(__builtin_popcount(m));
        if (reading) count_access(w, reading, Space::global, from, bytes, Access::load);
    }
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        std::byte* const at = target.base + to[i];
        if (read[i] == bytes) {
            copy_piece(at, source.base + from[i], bytes);
            continue;
        }
        if (read[i] > 0) std::memcpy(at, source.base + from[i], read[i]);
        std::memset(at + read[i], 0, bytes - read[i]);
    }
    if (!w.races || !target.states) return;
    PendingCopy& pending = w.copies.emplace_back();
    pending.mask = m;
    pending.bytes = bytes;
    pending.op = &op;
    for (int i = 0; i < lanes; ++i) {
        pending.at[i] = static_cast<std::uint32_t>(to[i]);
        pending.group[i] = w.groups[i];
        if (m >> i & 1) mark_piece(target.states + to[i], bytes, ByteState::pending);
    }
}

void commit_copies(Warp& w, const Op&, std::uint32_t m) {
    for (int i = 0; i < lanes; ++i) w.groups[i] += m >> i & 1;
}

void wait_copies(Warp& w, const Op& op, std::uint32_t m) {
    if (w.copies.empty()) return;
    const SpaceView& shared = w.views[static_cast<int>(Space::shared)];
    for (PendingCopy& copy : w.copies) {
        std::uint32_t landed = 0;
        for (int i = 0; i < lanes; ++i) {
            // A copy that is in no group yet counts as of the next one, which only wait_all takes.
            const bool done =
                op.imm < 0 || std::uint64_t{copy.group[i]} + static_cast<std::uint64_t>(op.imm) < w.groups[i];
            landed |= static_cast<std::uint32_t>(done) << i;
        }
        landed &= copy.mask & m;
        for (std::uint32_t left = landed; left; left &= left - 1)
            mark_piece(shared.states + copy.at[__builtin_ctz(left)], copy.bytes, ByteState::initialised);
        if (landed && w.races) w.races->land(w, *copy.op, landed, copy.at, copy.bytes);
        copy.mask &= ~landed;
    }
    std::erase_if(w.copies, [](const PendingCopy& copy) { return copy.mask == 0; });
}

}  // namespace autotune::emulator
