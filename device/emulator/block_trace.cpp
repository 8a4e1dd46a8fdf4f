#include "device/emulator/block_trace.h"

#include <algorithm>
#include <utility>

#include "device/emulator/block.h"

namespace autotune::emulator {
namespace {

constexpr double barrier_clocks = 12, cluster_clocks = 190, schedulers = 4;
constexpr std::size_t most_watched = 256, most_ready_bytes = std::size_t{1} << 28;
constexpr std::uint64_t sector_bytes = 32, line_sectors = 4;

/// Of a load that L1 does not serve. Blocks run in step: all of them wait for the first that touches a sector.
double miss_latency(const Machine& machine) { return machine.dram_latency; }

}  // namespace

SectorCache::SectorCache(double bytes)
    : lines_(std::max<std::size_t>(1, static_cast<std::size_t>(bytes / (sector_bytes * line_sectors * ways))) * ways) {}

bool SectorCache::touch(std::uint64_t sector) {
    const std::uint64_t tag = sector / line_sectors;
    const std::uint32_t bit = 1u << sector % line_sectors;
    Line* const set = lines_.data() + tag % (lines_.size() / ways) * ways;
    Line* oldest = set;
    ++clock_;
    for (Line* line = set; line < set + ways; ++line) {
        if (line->tag == tag) {
            line->used = clock_;
            const bool there = (line->sectors & bit) != 0;
            line->sectors |= bit;
            return there;
        }
        if (line->used < oldest->used) oldest = line;
    }
    *oldest = {.tag = tag, .used = clock_, .sectors = bit};
    return false;
}

BlockTrace::BlockTrace(const OpCosts& costs, const Machine& machine, double l1_bytes)
    : costs_{costs}, machine_{machine}, cache_{l1_bytes} {}

/// False where enough blocks were watched: what is left is like them.
bool BlockTrace::select(const Block& block) {
    if (block.number == block_number_) return block_ != nullptr;
    block_number_ = block.number;
    const auto found = blocks_.find(block.number);
    if (found != blocks_.end()) {
        block_ = &found->second;
    } else {
        const std::size_t bytes = (costs_.register_count + 1) * sizeof(double) * block.warps.size();
        const std::size_t most =
            std::clamp<std::size_t>(most_ready_bytes / std::max<std::size_t>(bytes, 1), 1, most_watched);
        block_ = blocks_.size() < most ? &blocks_[block.number] : nullptr;
    }
    return block_ != nullptr;
}

BlockTrace::Warps& BlockTrace::state(const Warp& warp) {
    std::vector<Warps>& warps = block_->warps;
    if (warps.empty()) warps.resize(warp.block->warps.size());
    Warps& one = warps[warp.index];
    if (one.ready.empty()) one.ready.resize(costs_.register_count + 1);
    return one;
}

/// What the warp waited for has happened.
void BlockTrace::settle(Warps& w, BlockState& block) {
    if (w.barrier >= 0) {
        w.now = std::max(w.now, block.barriers[static_cast<std::size_t>(w.barrier)][w.turn] + barrier_clocks);
        w.barrier = -1;
    }
    if (w.phase >= 0) {
        w.now = std::max(w.now, block.phases[static_cast<std::uint32_t>(w.phase)] + barrier_clocks);
        w.phase = -1;
    }
    w.last = std::max(w.last, w.now);
}

void BlockTrace::end_run(Warps& w) {
    w.now = std::max(w.now + w.slots, w.last + 1);
    w.last = w.now;
    w.slots = 0;
}

void BlockTrace::issue(Warp& warp, const Op& op, std::uint32_t mask) {
    cost_ = nullptr;
    if (!select(*warp.block)) return;
    Warps& w = state(warp);
    BlockState& block = *block_;
    const OpCost& cost = costs_.ops[static_cast<std::size_t>(&op - warp.ops)];
    settle(w, block);
    sum_.slots += static_cast<double>(cost.slots);
    const double spilled = costs_.local_requests * static_cast<double>(cost.slots) * machine_.request_clocks;
    sum_.clocks[static_cast<std::size_t>(Unit::memory)] += spilled;
    double start = w.now;
    const std::uint32_t* const rows = costs_.registers.data() + cost.first;
    for (int i = cost.written; i < cost.written + cost.read; ++i) start = std::max(start, w.ready[rows[i]]);
    w.last = std::max(w.last, start);
    warp_ = &w;
    cost_ = &cost;
    start_ = start;
    if (mask == 0) {
        w.slots += static_cast<double>(cost.slots);
        if (op.control && cost.order == OpOrder::ends_run) end_run(w);
        return;
    }
    const double clocks = static_cast<double>(cost.clocks);
    sum_.clocks[static_cast<std::size_t>(cost.unit)] += clocks;
    w.slots += std::max(static_cast<double>(cost.slots), schedulers * clocks) + schedulers * spilled;
    delay(static_cast<double>(cost.latency));
    if (cost.asynchronous) {
        w.tensor_free = std::max(w.tensor_free, start) + schedulers * clocks;
        w.products.open = std::max(w.products.open, w.tensor_free);
    }
    if (cost.unit == Unit::memory && cost.kind == CodeKind::shuffle)
        sum_.clocks[static_cast<std::size_t>(Unit::memory)] += machine_.request_clocks;
    order(w, block, warp, op, cost, mask, start);
}

void BlockTrace::order(Warps& w, BlockState& block, Warp& warp, const Op& op, const OpCost& cost, std::uint32_t mask,
                       double start) {
    const auto first_lane = [&](std::int32_t row) { return warp.row<std::uint32_t>(row)[__builtin_ctz(mask)]; };
    switch (cost.order) {
        case OpOrder::none:
        case OpOrder::copy:
            return;
        case OpOrder::ends_run:
            return end_run(w);
        case OpOrder::cluster:
            end_run(w);
            w.last = w.now += cluster_clocks;
            return;
        case OpOrder::arrive:
        case OpOrder::barrier: {
            if (mask != warp.live) return;  // it comes here once more, with the others
            end_run(w);
            const std::uint32_t number = first_lane(op.a) % 16;
            const std::size_t turn = w.turns[number]++ % BlockState::turns;
            double& arrived = block.barriers[number][turn];
            arrived = std::max(arrived, w.now);
            if (cost.order == OpOrder::barrier) {
                w.barrier = static_cast<int>(number);
                w.turn = turn;
            }
            return;
        }
        case OpOrder::phase_arrive:
        case OpOrder::phase_wait: {
            const std::uint64_t base =
                op.wide_address ? warp.row<std::uint64_t>(op.a)[__builtin_ctz(mask)] : std::uint64_t{first_lane(op.a)};
            const auto at = static_cast<std::uint32_t>(base + static_cast<std::uint64_t>(op.imm));
            if (cost.order == OpOrder::phase_wait) {
                end_run(w);
                w.phase = at;
            } else {
                double& done = block.phases[at];
                done = std::max(done, start);
            }
            return;
        }
        case OpOrder::commit: {
            Warps::Groups& groups = cost.kind == CodeKind::branch ? w.products : w.copies;
            groups.done.push_back(std::exchange(groups.open, 0));
            constexpr std::size_t most_groups = 64;  // older ones are taken to be done with the next
            if (groups.done.size() > most_groups) {
                groups.done[1] = std::max(groups.done[0], groups.done[1]);
                groups.done.erase(groups.done.begin());
            }
            return;
        }
        case OpOrder::wait: {
            Warps::Groups& groups = cost.kind == CodeKind::branch ? w.products : w.copies;
            end_run(w);
            const std::size_t under_way = op.imm < 0 ? 0 : static_cast<std::size_t>(op.imm);
            const std::size_t done = groups.done.size() - std::min(under_way, groups.done.size());
            for (std::size_t i = 0; i < done; ++i) w.now = std::max(w.now, groups.done[i]);
            groups.done.erase(groups.done.begin(), groups.done.begin() + static_cast<std::ptrdiff_t>(done));
            if (op.imm < 0) w.now = std::max(w.now, std::exchange(groups.open, 0));
            w.last = w.now;
            return;
        }
    }
}

/// The result of the op at hand is there that long after its start.
void BlockTrace::delay(double latency) {
    const std::uint32_t* const rows = costs_.registers.data() + cost_->first;
    for (int i = 0; i < cost_->written; ++i) warp_->ready[rows[i]] = start_ + latency;
}

void BlockTrace::touch(std::uint64_t sector) {
    if (!touched_.empty() && touched_.back() == sector) return;
    touched_.push_back(sector);
    if (touched_.size() < compact_at_) return;
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    compact_at_ = 2 * touched_.size() + (1 << 16);
}

/// Brings in the sectors from one to another: the latency.
double BlockTrace::load(std::uint64_t first, std::uint64_t last, bool past_l1) {
    double latency = machine_.l1_latency;
    for (std::uint64_t sector = first; sector <= last; ++sector) {
        if (!past_l1 && cache_.touch(sector)) continue;
        touch(sector);
        sum_.l1_miss_bytes += sector_bytes;
        latency = miss_latency(machine_);
    }
    return latency;
}

void BlockTrace::access(const Warp& warp, std::uint32_t mask, Space space, const std::uint64_t* at, std::uint32_t bytes,
                        Access access, std::uint32_t passes) {
    if (!cost_) return;
    double& busy = sum_.clocks[static_cast<std::size_t>(Unit::memory)];
    const double scale = static_cast<double>(cost_->requests), lanes_used = __builtin_popcount(mask);
    const double request = machine_.request_clocks;
    double latency = 0, clocks = 0;
    if (cost_->kind == CodeKind::constant_load) {  // an address after the other
        std::uint64_t before = ~std::uint64_t{0};
        int distinct = 0;
        for (std::uint32_t left = mask; left; left &= left - 1) {
            distinct += at[__builtin_ctz(left)] != before;
            before = at[__builtin_ctz(left)];
        }
        if (distinct == 1) return;
        clocks = distinct;
        latency = static_cast<double>(cost_->latency) + distinct;
        busy += clocks;
        warp_->slots += clocks;
        return delay(latency);
    }
    if (space == Space::shared || space == Space::cluster) {
        clocks = std::max(request, passes * 128 / machine_.l1_bytes);
        if (access == Access::atomic) clocks *= 2;
        latency = machine_.shared_latency + clocks - 1;
    } else if (space == Space::local) {
        clocks = std::max(request, lanes_used * bytes / machine_.l1_bytes);
        latency = machine_.l1_latency;
    } else if (space == Space::global) {
        const std::uint64_t start = warp.views[static_cast<int>(Space::global)].start;
        std::uint64_t lines_seen[lanes];
        std::size_t lines = 0;
        std::uint64_t before = ~std::uint64_t{0};
        for (std::uint32_t left = mask; left; left &= left - 1) {
            const std::uint64_t address = start + at[__builtin_ctz(left)];
            const std::uint64_t first = address / sector_bytes, last = (address + bytes - 1) / sector_bytes;
            if (const std::uint64_t line = first / line_sectors;
                std::find(lines_seen, lines_seen + lines, line) == lines_seen + lines)
                lines_seen[lines++] = line;
            if (last == before) continue;
            if (access == Access::load) {
                latency = std::max(latency, load(first == before ? last : first, last, cost_->past_l1));
            } else {
                for (std::uint64_t sector = first == before ? last : first; sector <= last; ++sector) touch(sector);
                sum_.written_bytes += static_cast<double>((last - first + 1) * sector_bytes);
            }
            before = last;
        }
        clocks = std::max({request, static_cast<double>(lines), lanes_used * bytes / machine_.l1_bytes});
        if (access == Access::atomic) {
            sum_.l1_miss_bytes += lanes_used * bytes;
            latency = machine_.l2_latency;
        }
    }
    clocks *= scale;
    busy += clocks;
    warp_->slots += std::max(0.0, clocks - static_cast<double>(cost_->slots));
    if (access == Access::store) return;
    if (cost_->order == OpOrder::copy)
        warp_->copies.open = std::max(warp_->copies.open, start_ + latency);
    else
        delay(latency);
}

void BlockTrace::bulk(std::uint64_t address, std::uint32_t bytes, Access access) {
    if (bytes == 0 || !cost_) return;
    const std::uint64_t first = address / sector_bytes, last = (address + bytes - 1) / sector_bytes;
    for (std::uint64_t sector = first; sector <= last; ++sector) touch(sector);
    double& sum = access == Access::load ? sum_.l1_miss_bytes : sum_.written_bytes;
    sum += static_cast<double>((last - first + 1) * sector_bytes);
    sum_.clocks[static_cast<std::size_t>(Unit::memory)] += bytes / machine_.l1_bytes;
}

void BlockTrace::lands(const Block& block, std::uint32_t barrier, std::uint32_t bytes) {
    const auto found = blocks_.find(block.number);
    if (!cost_ || found == blocks_.end()) return;
    double& done = found->second.phases[barrier];
    done = std::max(done, start_ + miss_latency(machine_) + bytes / machine_.l1_bytes);
}

double BlockTrace::path(BlockState& block) {
    double path = 0;
    for (Warps& w : block.warps) {
        settle(w, block);
        path = std::max({path, w.now + w.slots, w.last});
    }
    return path;
}

double BlockTrace::path(std::uint64_t block) {
    const auto found = blocks_.find(block);
    return found == blocks_.end() ? 0 : path(found->second);
}

BlockWork BlockTrace::finish() {
    BlockWork work = sum_;
    for (auto& [number, block] : blocks_) work.path_clocks += path(block);
    work.blocks = static_cast<double>(blocks_.size());
    const double count = std::max(1.0, work.blocks);
    work.slots /= count;
    for (double& clocks : work.clocks) clocks /= count;
    work.path_clocks /= count;
    work.l1_miss_bytes /= count;
    work.written_bytes /= count;
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    return work;
}

}  // namespace autotune::emulator
