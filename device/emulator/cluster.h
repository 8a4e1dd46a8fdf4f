#ifndef AUTOTUNE_DEVICE_EMULATOR_CLUSTER_H
#define AUTOTUNE_DEVICE_EMULATOR_CLUSTER_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/emulator/block.h"

namespace autotune::emulator {

/// Number of the cluster's barrier in Fragment::barrier, behind those of a block.
inline constexpr std::uint32_t cluster_barrier = 16;

/// Blocks that run side by side and reach each other's shared memory; without clusters each block is one of its own.
/// Their shared memories lie at equal steps in one piece. In addresses of `.shared::cluster` bits 24 and up hold the
/// rank of a block plus 1; 0 is the block itself, so that addresses of `.shared::cta` are right there, too.
struct Cluster {
    LaunchState* launch = nullptr;
    std::uint64_t number = 0;
    std::vector<std::unique_ptr<Block>> blocks;  ///< by rank
    std::vector<std::byte> shared;
    std::vector<std::uint8_t> states;
    std::uint32_t step = 0;     ///< bytes from one block's shared memory to the next one's
    std::uint32_t phase = 0;    ///< of the barrier: how often it opened
    std::uint32_t arrived = 0;  ///< live threads that did in this phase
    std::uint32_t idle = 0;     ///< rounds in which nothing could run, since anything was waited for with success
    std::uint32_t live_threads() const noexcept;
};

/// Offsets from the start of shared memory that lie beyond it: as offsets in the memory of the whole cluster. False
/// where there is no such place; faults for that of a block that does not run.
bool reach_cluster(Warp& warp, const Op& op, std::uint32_t mask, std::uint64_t* at, std::uint32_t bytes, Space& space);

/// barrier.cluster. small: bit 0 .aligned.
void cluster_arrive(Warp& warp, const Op& op, std::uint32_t mask);
void cluster_wait(Warp& warp, const Op& op, std::uint32_t mask);
/// Lanes of a warp exit.
void leave_cluster(Warp& warp, std::uint32_t leaving);

/// mapa: d from address a and rank b; small: bytes of addresses, imm: where shared memory begins in them.
void map_address(Warp& warp, const Op& op, std::uint32_t mask);
/// getctarank: likewise.
void rank_of_address(Warp& warp, const Op& op, std::uint32_t mask);

}  // namespace autotune::emulator
#endif
