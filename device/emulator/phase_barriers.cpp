#include "device/emulator/phase_barriers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "device/emulator/accesses.h"
#include "device/emulator/cluster.h"
#include "device/emulator/control.h"
#include "device/emulator/copies.h"
#include "device/emulator/fault.h"

namespace autotune::emulator {
namespace {

constexpr std::uint32_t object_bytes = 8, most_arrivals = (1u << 20) - 1;
constexpr std::int64_t most_pending_bytes = (1 << 20) - 1;
constexpr int tag = 0xb7;

struct PhaseSpot {
    Block* block;
    std::uint32_t offset;
};

/// Where the lanes' mbarriers are; any may be in another block of the cluster.
void spots_of(Warp& w, const Op& op, std::uint32_t m, PhaseSpot* spots) {
    std::uint64_t at[lanes];
    const Space space = resolve(w, op, m, op.a, op.imm, op.space, op.wide_address, at, object_bytes, Access::atomic);
    if (space != Space::shared && space != Space::cluster)
        fail(w, op, __builtin_ctz(m), DeviceFault::Kind::barrier_misuse, "an mbarrier is not in shared memory");
    Cluster& cluster = *w.block->cluster;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        spots[i] = space == Space::shared ? PhaseSpot{w.block, static_cast<std::uint32_t>(at[i])}
                                          : PhaseSpot{cluster.blocks[at[i] / cluster.step].get(),
                                                      static_cast<std::uint32_t>(at[i] % cluster.step)};
    }
}

void note_update(Warp& w, const Op& op, int lane, const PhaseSpot& spot, bool whole) {
    if (!w.races || spot.block != w.block) return;
    std::uint32_t at[lanes]{};
    at[lane] = spot.offset;
    if (whole) return w.races->write(w, op, 1u << lane, at, object_bytes);
    const auto found = w.block->phase_barriers.find(spot.offset);
    if (found != w.block->phase_barriers.end() &&
        !w.races->knows(w.index, found->second.made_by, found->second.made_at))
        fail(w, op, lane, DeviceFault::Kind::race,
             "an mbarrier is used, without a barrier between that and where it was initialised,",
             fmt::format(", by warp {}", found->second.made_by), 0, found->second.made);
    w.races->update(w, op, 1u << lane, at, object_bytes);
}

void mark_spot(const PhaseSpot& spot, ByteState state) {
    if (spot.block->shared_states) std::memset(spot.block->shared_states + spot.offset, static_cast<int>(state), 8);
    std::memset(spot.block->shared + spot.offset, tag, object_bytes);
}

/// A phase ends when all have arrived and all bytes are there.
void settle_phase(Block& block, std::uint32_t offset, PhaseBarrier& one) {
    if (one.pending != 0 || one.bytes != 0) return;
    ++one.phase;
    one.pending = one.expected;
    if (block.launch->checks.races) {
        // What other blocks did in between is not known here: so that all counts as ordered.
        if (one.foreign)
            for (const Warp& w : block.warps) block.races.publish(w.index, one.gathered);
        one.known = one.gathered;
    }
    one.foreign = false;
    block.cluster->idle = 0;
    for (Warp& w : block.warps) wake(w, Fragment::Wait::phase, offset);
}

void land(Block& block, const BulkFlight& flight) {
    if (block.shared_states)
        for (const auto& [from, bytes] : flight.ranges)
            std::memset(block.shared_states + from, static_cast<int>(ByteState::initialised), bytes);
    const auto found = block.phase_barriers.find(flight.barrier);
    if (found == block.phase_barriers.end()) return;
    PhaseBarrier& one = found->second;
    one.bytes -= flight.bytes;
    one.foreign |= flight.foreign;
    if (!flight.foreign && block.launch->checks.races) {
        one.gathered.resize(std::max<std::size_t>(one.gathered.size(), block.warps.size()), 0);
        one.gathered[flight.warp] = std::max(one.gathered[flight.warp], flight.time);
    }
    settle_phase(block, flight.barrier, one);
}

/// Copies that report to one mbarrier arrive, as somebody looks at it.
void land_at(Block& block, std::uint32_t offset) {
    for (std::size_t i = 0; i < block.flights.size();) {
        if (block.flights[i].barrier != offset) {
            ++i;
            continue;
        }
        const BulkFlight flight = std::move(block.flights[i]);
        block.flights.erase(block.flights.begin() + static_cast<std::ptrdiff_t>(i));
        land(block, flight);
    }
}

void initialise_spot(Warp& w, const Op& op, int lane, const PhaseSpot& spot) {
    const std::uint32_t count = w.row<std::uint32_t>(op.b)[lane];
    if (spot.block->phase_barriers.contains(spot.offset))
        fail(w, op, lane, DeviceFault::Kind::barrier_misuse,
             "an mbarrier is initialised again, without mbarrier.inval in between,");
    if (count == 0 || count > most_arrivals)
        fail(w, op, lane, DeviceFault::Kind::barrier_misuse,
             fmt::format("an mbarrier is told to take {} arrivals", count));
    if (w.checked) {
        std::uint64_t at[lanes]{};
        at[lane] = spot.offset;
        check_states(w, op, 1u << lane, Space::shared, at, object_bytes, Access::store);
    }
    note_update(w, op, lane, spot, true);
    PhaseBarrier one;
    one.made = &op;
    one.made_by = w.index;
    if (w.races) one.made_at = w.races->stamp();
    one.expected = one.pending = count;
    spot.block->phase_barriers[spot.offset] = std::move(one);
    mark_spot(spot, ByteState::barrier);
}

void expect(Warp& w, const Op& op, int lane, PhaseBarrier& one, std::int64_t bytes) {
    one.bytes += bytes;
    if (one.bytes > most_pending_bytes || one.bytes < -most_pending_bytes)
        fail(w, op, lane, DeviceFault::Kind::barrier_misuse,
             fmt::format("an mbarrier is to count {} bytes, more than it can", one.bytes));
}

void arrive_at(Warp& w, const Op& op, int lane, const PhaseSpot& spot, std::uint32_t count) {
    if (const auto before = spot.block->phase_barriers.find(spot.offset);
        before != spot.block->phase_barriers.end() && before->second.pending == 0)
        land_at(*spot.block, spot.offset);
    PhaseBarrier& one = phase_barrier_at(w, op, lane, *spot.block, spot.offset);
    if (op.small & phase_adds) ++one.pending;
    if (op.d) w.row<std::uint64_t>(op.d)[lane] = std::uint64_t{one.pending} << 32 | one.phase;
    if (count > one.pending)
        fail(w, op, lane, DeviceFault::Kind::barrier_misuse,
             fmt::format("{} threads arrive at an mbarrier that expects {} more in this phase", count, one.pending),
             fmt::format(", of {}", one.expected));
    if (op.small & phase_expects) expect(w, op, lane, one, w.row<std::uint32_t>(op.b)[lane]);
    if (op.small & phase_drops) one.expected -= std::min(count, one.expected);
    if (spot.block != w.block)
        one.foreign = true;
    else if (w.races)
        w.races->publish(w.index, one.gathered);
    one.pending -= count;
    settle_phase(*spot.block, spot.offset, one);
}

}  // namespace

PhaseBarrier& phase_barrier_at(Warp& w, const Op& op, int lane, Block& block, std::uint32_t offset) {
    const auto found = block.phase_barriers.find(offset);
    if (found == block.phase_barriers.end())
        fail(w, op, lane, DeviceFault::Kind::barrier_misuse,
             fmt::format("there is no mbarrier that was initialised at byte {} of shared memory,", offset));
    return found->second;
}

bool land_flights(Cluster& cluster) {
    bool any = false;
    for (const auto& block : cluster.blocks)
        while (!block->flights.empty()) {
            any = true;
            land_at(*block, block->flights.front().barrier);
        }
    return any;
}

void land_awaited(Cluster& cluster) {
    for (const auto& block : cluster.blocks) {
        if (block->flights.empty()) continue;
        std::vector<std::uint32_t> awaited;
        for (const Warp& w : block->warps)
            for (const Fragment& fragment : w.others)
                if (fragment.wait == Fragment::Wait::phase) awaited.push_back(fragment.barrier);
        for (const std::uint32_t barrier : awaited) land_at(*block, barrier);
    }
}

bool time_out_waits(Cluster& cluster) {
    bool any = false;
    for (const auto& block : cluster.blocks)
        for (Warp& w : block->warps) {
            for (Fragment& fragment : w.others) {
                if (fragment.wait != Fragment::Wait::phase) continue;
                w.predicate(fragment.at->d) &= ~fragment.mask;
                ++fragment.pc;
                any = true;
            }
            wake(w, Fragment::Wait::phase, no_pc);
        }
    return any;
}

void phase_update(Warp& w, const Op& op, std::uint32_t m) {
    if (m == 0) return go_on(w, w.pc + 1);
    const auto action = static_cast<PhaseAction>(op.small & 15);
    if (action == PhaseAction::async_arrive) {
        Op all = op;
        all.imm = -1;
        wait_copies(w, all, m);
    }
    PhaseSpot spots[lanes];
    spots_of(w, op, m, spots);
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const PhaseSpot& spot = spots[i];
        if (action == PhaseAction::init) {
            initialise_spot(w, op, i, spot);
            continue;
        }
        PhaseBarrier& one = phase_barrier_at(w, op, i, *spot.block, spot.offset);
        note_update(w, op, i, spot, action == PhaseAction::invalidate);
        const std::uint32_t number = op.b ? w.row<std::uint32_t>(op.b)[i] : 1;
        if (action == PhaseAction::invalidate) {
            spot.block->phase_barriers.erase(spot.offset);
            mark_spot(spot, ByteState::uninitialised);
        } else if (action == PhaseAction::expect) {
            expect(w, op, i, one, number);
        } else if (action == PhaseAction::complete) {
            expect(w, op, i, one, -std::int64_t{number});
            settle_phase(*spot.block, spot.offset, one);
        } else {
            const bool counted = action == PhaseAction::arrive && !(op.small & phase_expects);
            arrive_at(w, op, i, spot, counted ? number : 1);
        }
    }
    go_on(w, w.pc + 1);
}

void phase_wait(Warp& w, const Op& op, std::uint32_t m) {
    if (m == 0) return go_on(w, w.pc + 1);
    PhaseSpot spots[lanes];
    spots_of(w, op, m, spots);
    std::uint32_t yes = 0;
    const PhaseBarrier* seen = nullptr;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        if (spots[i].block != w.block)
            fail(w, op, i, DeviceFault::Kind::barrier_misuse, "a thread waits for the mbarrier of another block");
        if (!w.block->flights.empty()) land_at(*w.block, spots[i].offset);
        const PhaseBarrier& one = phase_barrier_at(w, op, i, *w.block, spots[i].offset);
        const bool over = op.small & 1 ? (one.phase & 1) != (w.row<std::uint32_t>(op.b)[i] & 1)
                                       : one.phase != static_cast<std::uint32_t>(w.row<std::uint64_t>(op.b)[i]);
        if (&one != seen) note_update(w, op, i, spots[i], false);
        if (over && &one != seen && w.races) w.races->leave(w.index, one.known);
        seen = &one;
        yes |= static_cast<std::uint32_t>(over) << i;
    }
    if (yes == 0) {
        if (w.mask & ~m) split_off(w, w.mask & ~m, w.pc + 1);
        w.others.push_back({.pc = w.pc,
                            .mask = m,
                            .wait = Fragment::Wait::phase,
                            .at = &op,
                            .barrier = spots[__builtin_ctz(m)].offset});
        for (std::uint32_t left = m; left; left &= left - 1)
            if (spots[__builtin_ctz(left)].offset != w.others.back().barrier) w.others.back().barrier = no_pc;
        return next_fragment(w);
    }
    std::uint32_t& p = w.predicate(op.d);
    p = (p & ~m) | yes;
    if (yes != m) yield_lanes(w);
    ++w.sync_count;
    go_on(w, w.pc + 1);
}

void phase_pending_count(Warp& w, const Op& op, std::uint32_t m) {
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        w.row<std::uint32_t>(op.d)[i] = static_cast<std::uint32_t>(w.row<std::uint64_t>(op.a)[i] >> 32);
    }
}

}  // namespace autotune::emulator
