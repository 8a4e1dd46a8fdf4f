#ifndef AUTOTUNE_DEVICE_EMULATOR_COUNTERS_H
#define AUTOTUNE_DEVICE_EMULATOR_COUNTERS_H

#include <array>
#include <cstdint>
#include <vector>

#include "device/emulator/op.h"

namespace autotune::emulator {

/// What a launch did, counted while it ran.
struct Counters {
    struct Class {
        std::uint64_t warps = 0;  ///< instructions issued
        std::uint64_t lanes = 0;  ///< of all lanes that took part
    };
    std::array<Class, op_classes> classes;  ///< by OpClass

    std::uint64_t blocks = 0, warps = 0;
    std::uint64_t instructions = 0;  ///< warp instructions
    std::uint64_t lane_instructions = 0;
    std::uint64_t flops = 0;  ///< a fused multiply-add is two
    std::uint64_t divergent_branches = 0;
    std::uint64_t barriers = 0;  ///< warps that arrived at barriers of the block

    // Requests: warp instructions. Sectors: distinct 32 bytes of one request.
    std::uint64_t global_load_requests = 0, global_load_sectors = 0, global_load_bytes = 0;
    std::uint64_t global_store_requests = 0, global_store_sectors = 0, global_store_bytes = 0;
    std::uint64_t atomic_requests = 0;
    std::uint64_t local_bytes = 0;
    // Wavefronts: passes that the banks need; one a request where there is no conflict and 128 bytes at most.
    std::uint64_t shared_load_requests = 0, shared_load_wavefronts = 0, shared_load_bytes = 0;
    std::uint64_t shared_store_requests = 0, shared_store_wavefronts = 0, shared_store_bytes = 0;
    std::uint64_t shared_conflicts = 0;  ///< wavefronts beyond those that the bytes need
    std::uint64_t async_bytes = 0;       ///< from global to shared memory by cp.async and bulk copies

    Counters& operator+=(const Counters& other) noexcept;
    friend bool operator==(const Counters&, const Counters&) = default;
};

inline bool operator==(const Counters::Class& a, const Counters::Class& b) noexcept {
    return a.warps == b.warps && a.lanes == b.lanes;
}

}  // namespace autotune::emulator
#endif
