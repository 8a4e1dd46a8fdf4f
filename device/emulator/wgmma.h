#ifndef AUTOTUNE_DEVICE_EMULATOR_WGMMA_H
#define AUTOTUNE_DEVICE_EMULATOR_WGMMA_H

#include <cstdint>
#include <utility>
#include <vector>

#include "device/emulator/warp.h"

namespace autotune::emulator {

struct Block;

/// Numbers of a wgmma.mma_async in Program::extra; rows of d, then of a where it comes from registers, stand behind.
struct WgmmaForm {
    std::int32_t n = 0, type = 0, sum = 0;  ///< columns; PtxType of a and b, and of d
    std::int32_t sums = 0;                  ///< rows of d
    std::int32_t a = 0, b = 0;              ///< rows of descriptors; a is 0 where it comes from registers
    std::int32_t keep = 0, keep_flip = 0;   ///< predicate: whether d is added to
    std::int32_t negate_a = 0, negate_b = 0;
    std::int32_t turned_a = 0, turned_b = 0;  ///< stored along m and n
};
inline constexpr int wgmma_numbers = sizeof(WgmmaForm) / 4;

/// Number of the meeting of four warps in Fragment::barrier, plus that of the warpgroup.
inline constexpr std::uint32_t warpgroup_meeting = 17;

/// A product that is under way: done at once, and its operands held until the warps have waited.
struct WgmmaFlight {
    const Op* op = nullptr;
    std::uint32_t batch[4]{};                                     ///< by warp: groups that it had committed before
    std::uint32_t waiting = 0xf;                                  ///< warps that have not waited yet
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;  ///< of shared memory that it reads
    std::vector<std::pair<std::uint32_t, std::uint32_t>> read;    ///< by which warps and when, for races
};

/// Four warps, and what they do together.
struct Warpgroup {
    const Op* op = nullptr;  ///< at which some have arrived
    std::uint32_t arrived = 0;
    std::uint64_t a[4]{}, b[4]{};  ///< their descriptors
    std::uint32_t committed[4]{};
    std::vector<WgmmaFlight> flights;
};

/// wgmma.mma_async; runs when the fourth warp arrives.
void wgmma_multiply(Warp& warp, const Op& op, std::uint32_t mask);
void wgmma_commit(Warp& warp, const Op& op, std::uint32_t mask);
/// imm: groups that may still be under way.
void wgmma_wait(Warp& warp, const Op& op, std::uint32_t mask);
/// While products are under way: faults where an op touches a register that one of them writes.
void watch_registers(Warp& warp, const Op& op, std::uint32_t mask);

}  // namespace autotune::emulator
#endif
