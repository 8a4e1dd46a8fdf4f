#ifndef AUTOTUNE_DEVICE_EMULATOR_CONTROL_H
#define AUTOTUNE_DEVICE_EMULATOR_CONTROL_H

#include <cstdint>

#include "device/emulator/warp.h"

namespace autotune::emulator {

struct Block;

// Divergence: a warp is a few fragments, lanes that are at one place. The one at the lowest place runs, and merges with
// whom it meets, so that lanes come together again as early as can be without knowing the flow graph. What waits at a
// lower place for one that is ahead (a spin lock inside a warp) would starve it: after many branches the others run.

/// The fragment that runs has arrived at the place of another: they go on together.
void meet_others(Warp& warp);
/// The fragment that runs goes on at `pc`, unless another comes first now.
void go_on(Warp& warp, std::uint32_t pc);
/// The fragment that runs cannot go on; the next that can does, or the warp stops.
void park(Warp& warp, Fragment::Wait wait, const Op& op, std::uint32_t pc);
/// The fragment that ran is among the others already: the next one runs.
void next_fragment(Warp& warp);
/// Lanes of the running fragment that go elsewhere.
void split_off(Warp& warp, std::uint32_t lanes_going, std::uint32_t pc);
/// Fragments of the warp that wait at a barrier of the block go on.
void release(Warp& warp, std::uint32_t barrier);
/// The same for any kind of wait; `barrier` of all of them where either is no_pc.
void wake(Warp& warp, Fragment::Wait wait, std::uint32_t barrier);
/// Lets another fragment run soon: the op spins.
void yield_lanes(Warp& warp);

// Handlers; all are control ops.
void branch(Warp& warp, const Op& op, std::uint32_t mask);          ///< imm: the target
void indexed_branch(Warp& warp, const Op& op, std::uint32_t mask);  ///< a: index; extra: small targets
void call(Warp& warp, const Op& op, std::uint32_t mask);            ///< imm: number of the CallSite; a: address
void collect(Warp& warp, const Op& op, std::uint32_t mask);         ///< behind a call: its results; no control op
void leave(Warp& warp, const Op& op, std::uint32_t mask);           ///< ret; imm: number of its function
void leave_kernel(Warp& warp, const Op& op, std::uint32_t mask);    ///< exit
void trap(Warp& warp, const Op& op, std::uint32_t mask);
void sleep(Warp& warp, const Op& op, std::uint32_t mask);  ///< nanosleep; a: how long

// Barriers of the block. small: bit 0 .aligned, bit 1 arrive, bits 2-3 red (1 popc, 2 and, 3 or), bit 4 the predicate
// is negated; a: number, b: threads or 0 for none, c: the predicate, d: the result.
void block_barrier(Warp& warp, const Op& op, std::uint32_t mask);
/// Warps that left may be what a barrier waited for.
void settle_barriers(Block& block);

// Collectives of a warp; each waits for the lanes that its mask (row c) names.
void warp_barrier(Warp& warp, const Op& op, std::uint32_t mask);
void shuffle(Warp& warp, const Op& op,
             std::uint32_t mask);  ///< small: 0 up, 1 down, 2 bfly, 3 idx; imm: predicate; extra: clamp, mask
void vote(Warp& warp, const Op& op, std::uint32_t mask);   ///< small: 0 all, 1 any, 2 uni, 3 ballot, +4 negated
void match(Warp& warp, const Op& op, std::uint32_t mask);  ///< small: bit 0 all, bit 1 of 64 bits; imm: predicate
void redux(Warp& warp, const Op& op,
           std::uint32_t mask);  ///< small: 0 add, 1 min, 2 max, 3 and, 4 or, 5 xor, +8 signed
void elect(Warp& warp, const Op& op, std::uint32_t mask);  ///< d: lane; imm: predicate
void active_mask(Warp& warp, const Op& op, std::uint32_t mask);

/// Waits until all live lanes of `named` are at the op: false where the fragment was parked for that.
bool gather(Warp& warp, const Op& op, std::uint32_t mask, std::uint32_t named);

}  // namespace autotune::emulator
#endif
