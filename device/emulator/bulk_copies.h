#ifndef AUTOTUNE_DEVICE_EMULATOR_BULK_COPIES_H
#define AUTOTUNE_DEVICE_EMULATOR_BULK_COPIES_H

#include <cstdint>

#include "device/emulator/warp.h"

namespace autotune::emulator {

/// Numbers of a bulk copy in Program::extra, from Op::extra on. Rows come with whether they have 64 bits, and an
/// offset.
struct BulkForm {
    enum class Way : std::int32_t { in, across, out };  ///< global to shared, shared to shared, shared to global
    Way way = Way::in;
    std::int32_t shared = 0, shared_wide = 1, shared_offset = 0;  ///< what lies in shared memory; across: the target
    std::int32_t other = 0, other_wide = 1,
                 other_offset = 0;  ///< in global memory, or the tensor map; across: the source
    std::int32_t bytes = 0;         ///< row; 0 with a tensor map
    std::int32_t barrier = 0, barrier_wide = 1, barrier_offset = 0;
    std::int32_t blocks = 0;      ///< row of the blocks of a multicast; 0: none
    std::int32_t reduction = -1;  ///< AtomicOperation, of `out`
    std::int32_t type = 0;        ///< PtxType of that, without a map
    std::int32_t dimensions = 0;  ///< 0: no tensor map
    std::int32_t coordinates[5]{};
};
inline constexpr int bulk_numbers = sizeof(BulkForm) / 4;

/// cp.async.bulk, cp.async.bulk.tensor, cp.reduce.async.bulk; the bytes move at once.
void bulk_copy(Warp& warp, const Op& op, std::uint32_t mask);
void bulk_commit(Warp& warp, const Op& op, std::uint32_t mask);
/// imm: groups that may still be under way.
void bulk_wait(Warp& warp, const Op& op, std::uint32_t mask);
/// fence.proxy.async
void proxy_fence(Warp& warp, const Op& op, std::uint32_t mask);

}  // namespace autotune::emulator
#endif
