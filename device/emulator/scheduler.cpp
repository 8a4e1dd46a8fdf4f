#include "device/emulator/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "device/emulator/cluster.h"
#include "device/emulator/fault.h"
#include "device/emulator/rows.h"

namespace autotune::emulator {
namespace {

constexpr std::uint64_t steps_a_turn = 1 << 16;                  ///< of a warp
constexpr std::uint64_t steps_a_block = std::uint64_t{1} << 22;  ///< before later blocks may run beside it
constexpr std::uint64_t nanoseconds_a_step = 16;                 ///< of a sleep, which is part of a block's share
constexpr std::size_t most_blocks = 64;                          ///< at once, unless all have to be

/// Rounds in which all of a cluster waits in vain at mbarriers.
constexpr std::uint32_t most_idle = 1000;

std::uint32_t special_value(const Block& block, const Warp& w, int lane, Special which) {
    const LaunchState& launch = *block.launch;
    const Dim3 thread = block.thread(w, lane), &grid = launch.grid, &cluster = launch.cluster, &index = block.index;
    const std::uint32_t bit = 1u << lane, warps = static_cast<std::uint32_t>(block.warps.size());
    switch (which) {
        case Special::tid_x:
            return thread.x;
        case Special::tid_y:
            return thread.y;
        case Special::tid_z:
            return thread.z;
        case Special::ntid_x:
            return launch.block.x;
        case Special::ntid_y:
            return launch.block.y;
        case Special::ntid_z:
            return launch.block.z;
        case Special::ctaid_x:
            return index.x;
        case Special::ctaid_y:
            return index.y;
        case Special::ctaid_z:
            return index.z;
        case Special::nctaid_x:
            return grid.x;
        case Special::nctaid_y:
            return grid.y;
        case Special::nctaid_z:
            return grid.z;
        case Special::laneid:
            return static_cast<std::uint32_t>(lane);
        case Special::warpid:
            return w.index;
        case Special::nwarpid:
            return warps;
        case Special::smid:
            return static_cast<std::uint32_t>(block.number % static_cast<std::uint64_t>(launch.sm_count));
        case Special::nsmid:
            return static_cast<std::uint32_t>(launch.sm_count);
        case Special::gridid:
            return static_cast<std::uint32_t>(launch.grid_id);
        case Special::lanemask_eq:
            return bit;
        case Special::lanemask_le:
            return bit | (bit - 1);
        case Special::lanemask_lt:
            return bit - 1;
        case Special::lanemask_ge:
            return ~(bit - 1);
        case Special::lanemask_gt:
            return ~(bit - 1) & ~bit;
        case Special::dynamic_smem_size:
            return launch.dynamic_shared_bytes;
        case Special::total_smem_size:
            return launch.shared_bytes;
        // Without clusters each block is one of its own.
        case Special::clusterid_x:
            return index.x / cluster.x;
        case Special::clusterid_y:
            return index.y / cluster.y;
        case Special::clusterid_z:
            return index.z / cluster.z;
        case Special::nclusterid_x:
            return grid.x / cluster.x;
        case Special::nclusterid_y:
            return grid.y / cluster.y;
        case Special::nclusterid_z:
            return grid.z / cluster.z;
        case Special::cluster_ctaid_x:
            return index.x % cluster.x;
        case Special::cluster_ctaid_y:
            return index.y % cluster.y;
        case Special::cluster_ctaid_z:
            return index.z % cluster.z;
        case Special::cluster_nctaid_x:
            return cluster.x;
        case Special::cluster_nctaid_y:
            return cluster.y;
        case Special::cluster_nctaid_z:
            return cluster.z;
        case Special::cluster_ctarank:
            return block.rank;
        case Special::cluster_nctarank:
            return cluster.x * cluster.y * cluster.z;
        default:
            return 0;
    }
}

class Scheduler {
public:
    explicit Scheduler(LaunchState& launch)
        : launch_{launch}, cluster_size_{launch.cluster.x * launch.cluster.y * launch.cluster.z} {
        if (launch.counters) tally_.resize(launch.program.ops.size());
    }

    void run(bool cooperative, std::span<const std::uint64_t> chosen) {
        const std::vector<std::uint64_t> some = clusters_of(chosen);
        const std::uint64_t all = std::uint64_t{launch_.grid.x} * launch_.grid.y * launch_.grid.z / cluster_size_;
        const std::uint64_t count = chosen.empty() ? all : some.size();
        const std::size_t at_once = cooperative ? static_cast<std::size_t>(std::min<std::uint64_t>(count, 4096)) : 1;
        std::deque<std::unique_ptr<Cluster>> resident;
        std::uint64_t next = 0;
        const auto start = [&] {
            resident.push_back(begin(chosen.empty() ? next : some[next]));
            ++next;
        };
        while (next < count || !resident.empty()) {
            while (resident.size() < at_once && next < count) start();
            std::unique_ptr<Cluster> cluster = std::move(resident.front());
            resident.pop_front();
            if (run_or_explain(*cluster, at_once > 1 ? steps_a_block / 16 : steps_a_block)) {
                spare_.push_back(std::move(cluster));
                continue;
            }
            resident.push_back(std::move(cluster));
            if (resident.size() < most_blocks && next < count) {
                start();
                std::rotate(resident.begin(), resident.end() - 1, resident.end());
            }
        }
        add_up();
    }

private:
    /// Numbers of the clusters that some blocks belong to, each once.
    std::vector<std::uint64_t> clusters_of(std::span<const std::uint64_t> chosen) const {
        std::vector<std::uint64_t> numbers;
        const Dim3 &grid = launch_.grid, &shape = launch_.cluster;
        for (const std::uint64_t block : chosen) {
            const std::uint64_t x = block % grid.x / shape.x, y = block / grid.x % grid.y / shape.y,
                                z = block / grid.x / grid.y / shape.z;
            const std::uint64_t number = (z * (grid.y / shape.y) + y) * (grid.x / shape.x) + x;
            if (cluster_size_ == 1 || std::find(numbers.begin(), numbers.end(), number) == numbers.end())
                numbers.push_back(number);
        }
        return numbers;
    }

    std::unique_ptr<Cluster> begin(std::uint64_t number) {
        std::unique_ptr<Cluster> cluster;
        if (spare_.empty()) {
            cluster = std::make_unique<Cluster>();
            build(*cluster);
        } else {
            cluster = std::move(spare_.back());
            spare_.pop_back();
        }
        cluster->number = number;
        cluster->phase = cluster->arrived = cluster->idle = 0;
        const Dim3 &grid = launch_.grid, &shape = launch_.cluster;
        const std::uint32_t across = grid.x / shape.x, down = grid.y / shape.y;
        for (const auto& block : cluster->blocks) {
            const std::uint32_t rank = block->rank;
            block->index = {static_cast<std::uint32_t>(number % across) * shape.x + rank % shape.x,
                            static_cast<std::uint32_t>(number / across % down) * shape.y + rank / shape.x % shape.y,
                            static_cast<std::uint32_t>(number / across / down) * shape.z + rank / shape.x / shape.y};
            block->number = (std::uint64_t{block->index.z} * grid.y + block->index.y) * grid.x + block->index.x;
            reset(*block);
        }
        return cluster;
    }

    void build(Cluster& cluster) {
        cluster.launch = &launch_;
        cluster.step = (launch_.shared_bytes + 16 + 1023) / 1024 * 1024;
        cluster.shared.resize(std::size_t{cluster.step} * cluster_size_);
        if (launch_.checks.any()) cluster.states.resize(cluster.shared.size());
        for (std::uint32_t rank = 0; rank < cluster_size_; ++rank) {
            Block& block = *cluster.blocks.emplace_back(std::make_unique<Block>());
            block.cluster = &cluster;
            block.rank = rank;
            block.shared = cluster.shared.data() + std::size_t{rank} * cluster.step;
            block.shared_states =
                cluster.states.empty() ? nullptr : cluster.states.data() + std::size_t{rank} * cluster.step;
            build(block);
        }
    }

    /// What all blocks of the launch have alike.
    void build(Block& block) {
        const Program& program = launch_.program;
        block.launch = &launch_;
        const std::uint32_t threads = launch_.block.x * launch_.block.y * launch_.block.z,
                            warps = (threads + lanes - 1) / lanes;
        block.warps.resize(warps);
        block.registers.resize(std::size_t{warps} * program.register_bytes + 64);
        const bool states = launch_.checks.any();
        Cluster& cluster = *block.cluster;
        std::byte* const aligned =
            reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(block.registers.data()) + 63) / 64 * 64);
        for (std::uint32_t i = 0; i < warps; ++i) {
            Warp& w = block.warps[i];
            w.index = i;
            w.registers = aligned + std::size_t{i} * program.register_bytes;
            w.constants = program.constants.data() - static_cast<std::ptrdiff_t>(INT32_MIN);
            w.program = &program;
            w.ops = program.ops.data();
            w.extra = program.extra.data();
            w.tally = launch_.counters ? tally_.data() : nullptr;
            w.block = &block;
            w.checked = states;
            w.counted = launch_.counters != nullptr;
            w.races = launch_.checks.races ? &block.races : nullptr;
            w.trace = launch_.trace;
            w.block_races = launch_.block_races;
            const std::uint32_t left = threads - i * lanes;
            w.present = left >= lanes ? all_lanes : (1u << left) - 1;
            w.local = std::make_unique<std::byte[]>(std::size_t{program.local_bytes} * lanes + 1);
            const SpaceView& global = launch_.memory.view();
            w.views[static_cast<int>(Space::global)] = {global.base, states ? global.states : nullptr, global.start,
                                                        global.size, 0};
            w.views[static_cast<int>(Space::shared)] = {block.shared, block.shared_states, 0, launch_.shared_bytes, 0};
            w.views[static_cast<int>(Space::cluster)] = {
                cluster.shared.data(), states ? cluster.states.data() : nullptr, 0, cluster.shared.size(), 0};
            w.views[static_cast<int>(Space::local)] = {w.local.get(), nullptr, 0, program.local_bytes,
                                                       program.local_bytes};
            w.views[static_cast<int>(Space::param)] = {launch_.parameters.data(), nullptr, 0, launch_.parameters.size(),
                                                       0};
        }
    }

    void reset(Block& block) {
        const Program& program = launch_.program;
        block.live_threads = launch_.block.x * launch_.block.y * launch_.block.z;
        block.next_warp = 0;
        block.barriers = {};
        block.phase_barriers.clear();
        block.flights.clear();
        block.warpgroups.clear();
        block.deferred.reset();
        block.started = block.in_touch = false;
        block.reached = {};
        for (std::vector<std::uint32_t>& one : block.cluster_knowledge) one.clear();
        if (block.shared_states) {
            std::memset(block.shared_states, static_cast<int>(ByteState::outside), block.cluster->step);
            for (const DecodedFunction& one : program.functions)  // functions that are called have some of their own
                if (!one.entry || &one == &launch_.kernel)
                    for (const auto& [at, bytes] : one.shared_ranges) mark_shared(block, at, bytes);
            mark_shared(block, launch_.kernel.static_shared_bytes, launch_.dynamic_shared_bytes);
        }
        if (launch_.checks.races)
            block.races.begin(static_cast<std::uint32_t>(block.warps.size()), launch_.shared_bytes,
                              program.partial_barriers);
        for (Warp& w : block.warps) reset(block, w);
        if (launch_.counters) {
            ++launch_.counters->blocks;
            launch_.counters->warps += block.warps.size();
        }
    }

    void mark_shared(Block& block, std::uint32_t at, std::uint32_t bytes) {
        if (at < launch_.shared_bytes)
            std::memset(block.shared_states + at, static_cast<int>(ByteState::uninitialised),
                        std::min(bytes, launch_.shared_bytes - at));
    }

    void reset(Block& block, Warp& w) {
        w.live = w.mask = w.present;
        w.pc = launch_.kernel.first;
        w.meet = no_pc;
        w.turn = w.ahead = 0;
        w.others.clear();
        w.stop = w.forced = false;
        std::fill(std::begin(w.depth), std::end(w.depth), 0);
        std::fill(w.active.begin(), w.active.end(), 0);
        w.copies.clear();
        std::fill(std::begin(w.groups), std::end(w.groups), 0);
        w.sync_count = 0;
        w.cluster_arrived = 0;
        w.bulk_reads.clear();
        w.watching = w.turned = w.asleep = false;
        w.slept = 0;
        std::fill(std::begin(w.bulk_groups), std::end(w.bulk_groups), 0);
        w.predicate(0) = all_lanes;
        for (const auto& [which, row] : launch_.program.special_rows)
            for (int i = 0; i < lanes; ++i)
                reinterpret_cast<std::uint32_t*>(w.registers + row)[i] = special_value(block, w, i, which);
    }

    /// A fault that a read of nothing may have led to is told as that, a race as it is.
    bool run_or_explain(Cluster& cluster, std::uint64_t share) {
        const auto deferred = [&]() -> const std::optional<Report>& {
            for (const auto& block : cluster.blocks)
                if (block->deferred) return block->deferred;
            return cluster.blocks.front()->deferred;
        };
        try {
            const bool done = run_cluster(cluster, share);
            if (done && deferred()) throw Fault{*deferred()};
            return done;
        } catch (const Fault& fault) {
            if (deferred() && fault.report().kind != DeviceFault::Kind::race) throw Fault{*deferred()};
            throw;
        }
    }

    /// Runs the warps in turn; true when all are done, false when the cluster had its share.
    bool run_cluster(Cluster& cluster, std::uint64_t share) {
        std::uint64_t used = 0;
        while (used < share) {
            bool ran = false;
            for (const auto& block : cluster.blocks) ran |= run_warps(*block, used);
            if (cluster.live_threads() == 0) return true;
            if (ran) land_awaited(cluster);
            if (ran || land_flights(cluster)) continue;
            // Some may do something else where what they try to wait for takes long.
            if (++cluster.idle > most_idle || !time_out_waits(cluster)) deadlock(cluster);
            return false;
        }
        return false;
    }

    /// Gives each warp of a block its turn; whether any could run.
    bool run_warps(Block& block, std::uint64_t& used) {
        const RowBuild& rows = row_build();
        bool ran = false;
        block.started = true;
        for (Warp& w : block.warps) {
            if (w.live == 0 || w.stop) continue;
            ran = true;
            const std::uint64_t before = w.steps;
            rows.run(w, std::min(steps_a_turn, launch_.steps_left + 1));
            const std::uint64_t steps = w.steps - before;
            used += steps + w.slept / nanoseconds_a_step;
            w.slept = 0;
            if (steps > launch_.steps_left) exhausted(w);
            launch_.steps_left -= steps;
        }
        return ran;
    }

    [[noreturn]] void exhausted(Warp& w) {
        fail(w, launch_.program.ops[w.pc], w.mask ? __builtin_ctz(w.mask) : 0, DeviceFault::Kind::deadlock,
             "the launch goes on beyond the steps that it is given");
    }

    /// All warps that are left wait, each for the others.
    [[noreturn]] void deadlock(const Cluster& cluster) {
        const Fragment *first = nullptr, *second = nullptr;
        const Warp* at = nullptr;
        for (const auto& block : cluster.blocks)
            for (const Warp& w : block->warps)
                for (const Fragment& fragment : w.others) {
                    if (!waits_outside(fragment)) continue;
                    if (!first) {
                        first = &fragment;
                        at = &w;
                    } else if (fragment.at != first->at) {
                        second = &fragment;
                    }
                }
        if (!at) throw Fault{{.kind = DeviceFault::Kind::deadlock, .message = "a block cannot go on"}};
        fail(*at, *first->at, __builtin_ctz(first->mask), DeviceFault::Kind::deadlock, what_is_missing(*at, *first),
             second ? ", while others wait" : "", 0, second ? second->at : nullptr);
    }

    static std::string what_is_missing(const Warp& w, const Fragment& fragment) {
        if (fragment.wait == Fragment::Wait::phase) {
            const auto found = w.block->phase_barriers.find(fragment.barrier);
            if (found == w.block->phase_barriers.end()) return "mbarriers wait for what never comes";
            return fmt::format("an mbarrier waits for {} more arrivals and {} more bytes that never come",
                               found->second.pending, found->second.bytes);
        }
        if (fragment.barrier == cluster_barrier) return "the cluster's barrier waits for threads that never arrive";
        if (fragment.barrier >= warpgroup_meeting) return "a wgmma waits for warps of its warpgroup that never arrive";
        return fmt::format("barrier {} waits for threads that never arrive", fragment.barrier);
    }

    /// Counts by op become counts by class.
    void add_up() {
        if (!launch_.counters) return;
        Counters& counters = *launch_.counters;
        for (std::size_t i = 0; i < tally_.size(); ++i) {
            const Op& op = launch_.program.ops[i];
            Counters::Class& sum = counters.classes[static_cast<std::size_t>(op.kind)];
            sum.warps += tally_[i].warps;
            sum.lanes += tally_[i].lanes;
            counters.instructions += tally_[i].warps;
            counters.lane_instructions += tally_[i].lanes;
            counters.flops += tally_[i].lanes * op.flops;
        }
        for (const auto& cluster : spare_)
            for (const auto& block : cluster->blocks)
                for (Warp& w : block->warps) {
                    counters.divergent_branches += w.divergent;
                    w.divergent = 0;
                }
    }

    LaunchState& launch_;
    std::uint32_t cluster_size_;
    std::vector<Tally> tally_;
    std::vector<std::unique_ptr<Cluster>> spare_;
};

}  // namespace

void run_launch(LaunchState& launch, bool cooperative, std::span<const std::uint64_t> blocks) {
    Scheduler{launch}.run(cooperative, blocks);
}

}  // namespace autotune::emulator
