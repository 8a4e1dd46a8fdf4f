#ifndef AUTOTUNE_DEVICE_EMULATOR_BLOCK_TRACE_H
#define AUTOTUNE_DEVICE_EMULATOR_BLOCK_TRACE_H

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "device/emulator/accesses.h"
#include "device/emulator/machine.h"
#include "device/emulator/op_cost.h"

namespace autotune::emulator {

/// What one block asks of its SM. Clocks are those that a unit of the whole SM is busy.
struct BlockWork {
    double blocks = 0;                   ///< that ran: the rest is the mean of one
    double slots = 0;                    ///< instructions that its warps issue
    std::array<double, units> clocks{};  ///< by Unit
    double path_clocks = 0;              ///< that its slowest warp takes when nothing else runs
    double l1_miss_bytes = 0;            ///< loads that L1 does not serve, in whole sectors
    double written_bytes = 0;            ///< stores and atomic operations, in whole sectors
    friend bool operator==(const BlockWork&, const BlockWork&) = default;
};

/// Sectors of 32 bytes in lines of 128, the last recently used leave first.
class SectorCache {
public:
    explicit SectorCache(double bytes);
    /// Takes a sector in; false where it was not there.
    bool touch(std::uint64_t sector);

private:
    struct Line {
        std::uint64_t tag = ~std::uint64_t{0}, used = 0;
        std::uint32_t sectors = 0;
    };
    static constexpr std::size_t ways = 8;
    std::vector<Line> lines_;
    std::uint64_t clock_ = 0;
};

/// Watches blocks, not too many, while they are interpreted, and times them: an op starts when its operands are there
/// and no branch or barrier before it is under way, whatever the order in between, which is the compiler's to choose.
class BlockTrace {
public:
    /// l1_bytes   of a block's share of L1
    BlockTrace(const OpCosts& costs, const Machine& machine, double l1_bytes);

    /// Before an op runs; `mask` may be empty.
    void issue(Warp& warp, const Op& op, std::uint32_t mask);
    /// What the op that was issued last accesses. at: addresses in its space; passes: that the banks need.
    void access(const Warp& warp, std::uint32_t mask, Space space, const std::uint64_t* at, std::uint32_t bytes,
                Access access, std::uint32_t passes);
    /// A row of a bulk copy, by its address in global memory.
    void bulk(std::uint64_t address, std::uint32_t bytes, Access access);
    /// A bulk copy tells an mbarrier of a block of the cluster that it is done.
    void lands(const Block& block, std::uint32_t barrier, std::uint32_t bytes);

    bool watched(std::uint64_t block) const { return blocks_.contains(block); }
    /// Clocks that the slowest warp of a block took; 0: it was not watched.
    double path(std::uint64_t block);
    /// The mean of the blocks that ran.
    BlockWork finish();
    /// Sectors of global memory that were touched, each once, in order; `finish` comes first.
    const std::vector<std::uint64_t>& sectors() const noexcept { return touched_; }

private:
    struct Warps {
        double now = 0;    ///< start of the run of ops without a branch between
        double slots = 0;  ///< of the run so far, as one warp alone issues them
        double last = 0;   ///< when the op of the run that starts last does
        std::vector<double> ready;
        // What it waits for, found out at its next op: others have arrived by then.
        int barrier = -1;
        std::size_t turn = 0;
        std::int64_t phase = -1;
        std::array<std::size_t, 16> turns{};
        // Copies, and products of warpgroups: when those of a group are done, and of the one that is open.
        struct Groups {
            std::vector<double> done;
            double open = 0;
        } copies, products;
        double tensor_free = 0;
        double path = 0;
    };
    struct BlockState {
        std::vector<Warps> warps;
        static constexpr std::size_t turns = 4;  ///< of a barrier that are told apart: no warp is further ahead
        std::array<std::array<double, turns>, 16> barriers{};  ///< by turn: when the last warp arrived
        std::map<std::uint32_t, double> phases;                ///< by mbarrier: likewise
    };

    bool select(const Block& block);
    double path(BlockState& block);
    Warps& state(const Warp& warp);
    void settle(Warps& w, BlockState& block);
    void end_run(Warps& w);
    void order(Warps& w, BlockState& block, Warp& warp, const Op& op, const OpCost& cost, std::uint32_t mask,
               double start);
    double load(std::uint64_t first, std::uint64_t last, bool past_l1);
    void delay(double latency);
    void touch(std::uint64_t sector);

    const OpCosts& costs_;
    const Machine machine_;
    SectorCache cache_;
    std::map<std::uint64_t, BlockState> blocks_;  ///< by number
    BlockState* block_ = nullptr;
    std::uint64_t block_number_ = ~std::uint64_t{0};
    BlockWork sum_;
    std::vector<std::uint64_t> touched_;
    std::size_t compact_at_ = 1 << 16;
    // The op at hand.
    const OpCost* cost_ = nullptr;
    Warps* warp_ = nullptr;
    double start_ = 0;
};

}  // namespace autotune::emulator
#endif
