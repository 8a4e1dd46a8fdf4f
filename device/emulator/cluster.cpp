#include "device/emulator/cluster.h"

#include <algorithm>
#include <string>

#include "device/emulator/control.h"
#include "device/emulator/fault.h"

namespace autotune::emulator {
namespace {

constexpr int rank_shift = 24;
constexpr std::uint64_t offset_bits = (std::uint64_t{1} << rank_shift) - 1;

void open_cluster(Cluster& cluster) {
    ++cluster.phase;
    cluster.arrived = 0;
    cluster.idle = 0;
    for (const auto& block : cluster.blocks) {
        block->cluster_knowledge[cluster.phase & 1].clear();
        for (Warp& w : block->warps) release(w, cluster_barrier);
    }
}

void settle_cluster(Cluster& cluster) {
    if (cluster.arrived > 0 && cluster.arrived >= cluster.live_threads()) open_cluster(cluster);
}

/// Lanes that arrived and did not wait yet.
std::uint32_t waiting_since(const Warp& w, std::uint32_t phase) {
    std::uint32_t found = 0;
    for (std::uint32_t left = w.cluster_arrived; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        if (w.cluster_phase[i] == phase) found |= 1u << i;
    }
    return found;
}

/// A barrier of whole warps waits for all of one: true where it was parked for that.
bool waits_for_lanes(Warp& w, const Op& op, std::uint32_t m) {
    const bool apart = (op.small & 1) != 0 && m != w.live && !w.forced;
    if (w.mask & ~m) split_off(w, w.mask & ~m, w.pc + 1);
    if (apart) park(w, Fragment::Wait::aligned, op, w.pc);
    return apart;
}

}  // namespace

std::uint32_t Cluster::live_threads() const noexcept {
    std::uint32_t sum = 0;
    for (const auto& block : blocks) sum += block->live_threads;
    return sum;
}

bool reach_cluster(Warp& w, const Op& op, std::uint32_t m, std::uint64_t* at, std::uint32_t bytes, Space& space) {
    Cluster& cluster = *w.block->cluster;
    const std::uint32_t size = w.block->launch->shared_bytes;
    std::uint64_t found[lanes]{};
    bool own = true;
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const std::uint64_t rank = at[i] >> rank_shift, offset = at[i] & offset_bits;
        if (rank > cluster.blocks.size() || offset >= size || bytes > size - offset || offset % bytes != 0)
            return false;
        const std::uint32_t to = rank == 0 ? w.block->rank : static_cast<std::uint32_t>(rank - 1);
        own &= to == w.block->rank;
        found[i] = std::uint64_t{to} * cluster.step + offset;
        Block& other = *cluster.blocks[to];
        const std::string whose = "block " + std::to_string(to) + " of its cluster";
        if (!other.started)
            fail(w, op, i, DeviceFault::Kind::race,
                 "an access reaches shared memory of " + whose +
                     ", which need not have started without a cluster barrier,");
        if (other.live_threads == 0)
            fail(w, op, i, DeviceFault::Kind::invalid_access,
                 "an access reaches shared memory of " + whose + ", which has exited,");
        if (to != w.block->rank) other.reached = {.op = &op, .warp = &w, .lane = i, .phase = cluster.phase};
    }
    const int first = __builtin_ctz(m);
    const std::uint64_t base = own ? std::uint64_t{w.block->rank} * cluster.step : 0;
    for (int i = 0; i < lanes; ++i) at[i] = found[m >> i & 1 ? i : first] - base;
    space = own ? Space::shared : Space::cluster;
    return true;
}

void cluster_arrive(Warp& w, const Op& op, std::uint32_t m) {
    if (m == 0) return go_on(w, w.pc + 1);
    if (waits_for_lanes(w, op, m)) return;
    Cluster& cluster = *w.block->cluster;
    if (const std::uint32_t twice = w.cluster_arrived & m)
        fail(w, op, __builtin_ctz(twice), DeviceFault::Kind::barrier_misuse,
             "a thread arrives at the cluster's barrier again, and has not waited for its last phase");
    for (std::uint32_t left = m; left; left &= left - 1) w.cluster_phase[__builtin_ctz(left)] = cluster.phase;
    w.cluster_arrived |= m;
    if (w.races) w.races->publish(w.index, w.block->cluster_knowledge[cluster.phase & 1]);
    cluster.arrived += static_cast<std::uint32_t>(__builtin_popcount(m));
    for (Fragment& other : w.others) other.tried = false;
    w.forced = false;
    ++w.sync_count;
    go_on(w, w.pc + 1);
    settle_cluster(cluster);
}

void cluster_wait(Warp& w, const Op& op, std::uint32_t m) {
    if (m == 0) return go_on(w, w.pc + 1);
    if (waits_for_lanes(w, op, m)) return;
    const Cluster& cluster = *w.block->cluster;
    if (const std::uint32_t absent = m & ~w.cluster_arrived)
        fail(w, op, __builtin_ctz(absent), DeviceFault::Kind::barrier_misuse,
             "a thread waits for the cluster's barrier, and did not arrive there");
    if (const std::uint32_t early = m & waiting_since(w, cluster.phase)) {
        // Those of an earlier phase come back with the others, as all wait again.
        (void)early;
        w.others.push_back(
            {.pc = w.pc, .mask = m, .wait = Fragment::Wait::barrier, .at = &op, .barrier = cluster_barrier});
        return next_fragment(w);
    }
    w.cluster_arrived &= ~m;
    w.forced = false;
    ++w.sync_count;
    if (w.races) w.races->leave(w.index, w.block->cluster_knowledge[(cluster.phase - 1) & 1]);
    go_on(w, w.pc + 1);
}

void leave_cluster(Warp& w, std::uint32_t leaving) {
    Cluster& cluster = *w.block->cluster;
    const std::uint32_t counted = leaving & waiting_since(w, cluster.phase);
    cluster.arrived -= static_cast<std::uint32_t>(__builtin_popcount(counted));
    w.cluster_arrived &= ~leaving;
    // Only the cluster's barrier, or an mbarrier, tells a block that others are done with its memory.
    const Block::Reached& last = w.block->reached;
    if (w.block->live_threads == 0 && last.op && last.phase == cluster.phase && w.block->phase_barriers.empty() &&
        w.block->launch->checks.races)
        fail(*last.warp, *last.op, last.lane, DeviceFault::Kind::invalid_access,
             "an access reaches shared memory of block " + std::to_string(w.block->rank) +
                 " of its cluster, which may have exited, as no cluster barrier keeps it,");
    settle_cluster(cluster);
}

void map_address(Warp& w, const Op& op, std::uint32_t m) {
    const std::size_t ranks = w.block->cluster->blocks.size();
    const auto start = static_cast<std::uint64_t>(op.imm);
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const std::uint32_t rank = w.row<std::uint32_t>(op.b)[i];
        if (rank >= ranks)
            fail(w, op, i, DeviceFault::Kind::invalid_access,
                 "mapa asks for block " + std::to_string(rank) + " of a cluster of " + std::to_string(ranks));
        const std::uint64_t from =
            op.small == 8 ? w.row<std::uint64_t>(op.a)[i] : std::uint64_t{w.row<std::uint32_t>(op.a)[i]};
        const std::uint64_t made = start + (((from - start) & offset_bits) | std::uint64_t{rank + 1} << rank_shift);
        if (op.small == 8)
            w.row<std::uint64_t>(op.d)[i] = made;
        else
            w.row<std::uint32_t>(op.d)[i] = static_cast<std::uint32_t>(made);
    }
}

void rank_of_address(Warp& w, const Op& op, std::uint32_t m) {
    for (std::uint32_t left = m; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        const std::uint64_t from = (op.small == 8 ? w.row<std::uint64_t>(op.a)[i] - static_cast<std::uint64_t>(op.imm)
                                                  : std::uint64_t{w.row<std::uint32_t>(op.a)[i]}) >>
                                   rank_shift;
        w.row<std::uint32_t>(op.d)[i] = from == 0 ? w.block->rank : static_cast<std::uint32_t>(from - 1);
    }
}

}  // namespace autotune::emulator
