#include <algorithm>
#include <string>

#include "device/emulator/block.h"
#include "device/emulator/control.h"
#include "device/emulator/fault.h"

namespace autotune::emulator {
namespace {

constexpr int arrive_bit = 2, red_shift = 2, negated_bit = 16, aligned_bit = 1;

/// All that the barrier waits for have arrived.
bool complete(const Block& block, const Barrier& barrier) {
    if (barrier.arrived.empty()) return false;
    return barrier.expected == 0 ? barrier.lanes >= block.live_threads : barrier.rounded >= barrier.expected;
}

/// What bar.red found out, for the lanes that asked.
void answer(Block& block, const Barrier& barrier) {
    for (const Barrier::Arrival& arrival : barrier.arrived) {
        const Op& op = *arrival.op;
        const int red = op.small >> red_shift & 3;
        if (red == 0) continue;
        Warp& w = block.warps[arrival.warp];
        if (red == 1) {
            for (int i = 0; i < lanes; ++i)
                if (arrival.mask >> i & 1) w.row<std::uint32_t>(op.d)[i] = barrier.popc;
        } else {
            const bool yes = red == 2 ? barrier.popc == barrier.asked : barrier.popc > 0;
            std::uint32_t& p = w.predicate(op.d);
            p = yes ? p | arrival.mask : p & ~arrival.mask;
        }
    }
}

void open(Block& block, std::uint32_t number) {
    Barrier& barrier = block.barriers[number];
    answer(block, barrier);
    const Barrier done = std::move(barrier);
    barrier = Barrier{};
    if (block.launch->checks.races) {
        std::vector<std::uint32_t> gathered;
        for (const Barrier::Arrival& arrival : done.arrived) block.races.arrive(arrival.warp, gathered);
        for (const Barrier::Arrival& arrival : done.arrived)
            if ((arrival.op->small & arrive_bit) == 0) block.races.leave(arrival.warp, gathered);
    }
    for (const Barrier::Arrival& arrival : done.arrived)
        if ((arrival.op->small & arrive_bit) == 0) release(block.warps[arrival.warp], number);
}

void arrive(Warp& w, const Op& op, std::uint32_t m, std::uint32_t number, std::uint32_t threads) {
    Barrier& barrier = w.block->barriers[number];
    const int lane = __builtin_ctz(m);
    if (!barrier.arrived.empty() && barrier.expected != threads && w.block->launch->checks.sync)
        fail(w, op, lane, DeviceFault::Kind::barrier_misuse,
             "barrier " + std::to_string(number) + " is said to take " + std::to_string(threads) + " threads",
             ", and earlier " + std::to_string(barrier.expected), 0, barrier.arrived.front().op);
    barrier.expected = threads;
    barrier.arrived.push_back({w.index, m, &op});
    const auto count = static_cast<std::uint32_t>(__builtin_popcount(m));
    barrier.lanes += count;
    barrier.rounded += m == w.live ? lanes : count;
    if (op.small >> red_shift & 3) {
        const std::uint32_t p = w.predicate(op.c) ^ (op.small & negated_bit ? all_lanes : 0);
        barrier.popc += static_cast<std::uint32_t>(__builtin_popcount(p & m));
        barrier.asked += count;
    }
    if (w.block->launch->counters) ++w.block->launch->counters->barriers;
    for (Fragment& other : w.others) other.tried = false;
    w.forced = false;
    ++w.sync_count;
}

}  // namespace

void block_barrier(Warp& w, const Op& op, std::uint32_t m) {
    if (m == 0) return go_on(w, w.pc + 1);
    const int lane = __builtin_ctz(m);
    const std::uint32_t number = w.row<std::uint32_t>(op.a)[lane];
    const std::uint32_t threads = op.b ? w.row<std::uint32_t>(op.b)[lane] : 0;
    if (number > 15)
        fail(w, op, lane, DeviceFault::Kind::barrier_misuse, "there is no barrier " + std::to_string(number));
    if (op.b && (threads == 0 || threads % lanes != 0 || threads > 1024))
        fail(w, op, lane, DeviceFault::Kind::barrier_misuse,
             "a barrier takes a multiple of 32 threads, not " + std::to_string(threads));
    if ((op.small & aligned_bit) && m != w.live && !w.forced) {
        if (w.mask & ~m) split_off(w, w.mask & ~m, w.pc + 1);
        return park(w, Fragment::Wait::aligned, op, w.pc);
    }
    const std::uint32_t pc = w.pc;
    if (w.mask & ~m) split_off(w, w.mask & ~m, pc + 1);
    Block& block = *w.block;
    arrive(w, op, m, number, threads);
    if (op.small & arrive_bit) {
        go_on(w, pc + 1);
    } else {
        w.others.push_back({.pc = pc + 1, .mask = m, .wait = Fragment::Wait::barrier, .at = &op, .barrier = number});
        next_fragment(w);
    }
    if (complete(block, block.barriers[number])) open(block, number);
}

void settle_barriers(Block& block) {
    for (std::uint32_t number = 0; number < block.barriers.size(); ++number)
        if (complete(block, block.barriers[number])) open(block, number);
}

}  // namespace autotune::emulator
