#ifndef AUTOTUNE_DEVICE_EMULATOR_PHASE_BARRIERS_H
#define AUTOTUNE_DEVICE_EMULATOR_PHASE_BARRIERS_H

#include <cstdint>
#include <utility>
#include <vector>

#include "device/emulator/warp.h"

namespace autotune::emulator {

struct Block;
struct Cluster;

/// An mbarrier. What it holds stands here, by its offset in shared memory; the bytes there are filled with a tag, and
/// marked, so that plain accesses to them are reported.
struct PhaseBarrier {
    std::uint32_t expected = 0, pending = 0;  ///< arrivals: of a phase, and of this one still to come
    std::uint32_t phase = 0;                  ///< how many are complete
    std::int64_t bytes = 0;                   ///< that copies still have to bring in this phase
    const Op* made = nullptr;                 ///< what initialised it, of which warp and when, for races
    std::uint32_t made_by = 0, made_at = 0;
    bool foreign = false;                        ///< other blocks had a part in this phase
    std::vector<std::uint32_t> gathered, known;  ///< what arrived so far, and up to the last complete phase: for races
};

/// A bulk copy into shared memory, from its start until somebody waits for its mbarrier. The bytes are there at once,
/// and count as pending, so that reading them is reported.
struct BulkFlight {
    std::uint32_t barrier = 0;                                    ///< offset of its mbarrier
    std::int64_t bytes = 0;                                       ///< that it tells the mbarrier
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;  ///< starts and bytes in shared memory
    bool foreign = false;                                         ///< another block started it
    std::uint32_t warp = 0, time = 0;                             ///< that started it, and when: for races
    const Op* op = nullptr;
};

enum class PhaseAction : std::uint8_t { init, invalidate, expect, complete, arrive, async_arrive };
inline constexpr std::uint16_t phase_expects = 16, phase_drops = 32, phase_adds = 64;

/// mbarrier.init, .inval, .expect_tx, .complete_tx, .arrive, .arrive_drop. small: the action; with arrive that bytes
/// are expected (b) beforehand, that the thread arrives in no later phase, that it counts beyond those expected; a,
/// imm: address; b: count or bytes; d: the state, 0 for none.
void phase_update(Warp& warp, const Op& op, std::uint32_t mask);
/// test_wait and try_wait, which waits until nothing else of the cluster can run. small: 1 parity; a, imm: address; b:
/// state or parity; d: predicate.
void phase_wait(Warp& warp, const Op& op, std::uint32_t mask);
/// mbarrier.pending_count: d from state a.
void phase_pending_count(Warp& warp, const Op& op, std::uint32_t mask);

/// The mbarrier at an offset, for an op that needs one there.
PhaseBarrier& phase_barrier_at(Warp& warp, const Op& op, int lane, Block& block, std::uint32_t offset);
/// All copies that are under way in the cluster arrive: whether there were any.
bool land_flights(Cluster& cluster);
/// Those arrive whose mbarrier some warp waits at: for where others spin for what it does then.
void land_awaited(Cluster& cluster);
/// Waits of the cluster end without success: whether there were any.
bool time_out_waits(Cluster& cluster);

}  // namespace autotune::emulator
#endif
