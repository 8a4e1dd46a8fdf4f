#ifndef AUTOTUNE_DEVICE_EMULATOR_COUNTERS_H
#define AUTOTUNE_DEVICE_EMULATOR_COUNTERS_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "device/emulator/op.h"

namespace autotune::emulator {

/// In the order of OpClass.
inline constexpr std::array<std::string_view, op_classes> op_class_names{
    "other", "integer", "fp32",   "fp64",       "fp16", "special",    "convert", "move",  "predicate",
    "load",  "store",   "atomic", "copy_async", "mma",  "collective", "barrier", "branch"};

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

/// Every sum of Counters by its name, so that whatever adds or sends them leaves none out.
struct CounterSum {
    std::string_view name;
    std::uint64_t Counters::*value;
};
inline constexpr std::array<CounterSum, 23> counter_sums{{
    {"blocks", &Counters::blocks},
    {"warps", &Counters::warps},
    {"instructions", &Counters::instructions},
    {"lane_instructions", &Counters::lane_instructions},
    {"flops", &Counters::flops},
    {"divergent_branches", &Counters::divergent_branches},
    {"barriers", &Counters::barriers},
    {"global_load_requests", &Counters::global_load_requests},
    {"global_load_sectors", &Counters::global_load_sectors},
    {"global_load_bytes", &Counters::global_load_bytes},
    {"global_store_requests", &Counters::global_store_requests},
    {"global_store_sectors", &Counters::global_store_sectors},
    {"global_store_bytes", &Counters::global_store_bytes},
    {"atomic_requests", &Counters::atomic_requests},
    {"local_bytes", &Counters::local_bytes},
    {"shared_load_requests", &Counters::shared_load_requests},
    {"shared_load_wavefronts", &Counters::shared_load_wavefronts},
    {"shared_load_bytes", &Counters::shared_load_bytes},
    {"shared_store_requests", &Counters::shared_store_requests},
    {"shared_store_wavefronts", &Counters::shared_store_wavefronts},
    {"shared_store_bytes", &Counters::shared_store_bytes},
    {"shared_conflicts", &Counters::shared_conflicts},
    {"async_bytes", &Counters::async_bytes},
}};
static_assert(sizeof(Counters) == sizeof(Counters::classes) + counter_sums.size() * sizeof(std::uint64_t),
              "a sum of Counters is missing in counter_sums");

/// What one launch of a sequence does, told by some of its blocks. A block of a cluster brings its cluster along:
/// Counters::blocks says how many were counted.
struct CountedLaunch {
    std::string entry;
    Dim3 grid, block;
    std::uint32_t shared_bytes = 0;  ///< dynamic
    std::uint32_t repeat = 1;
    KernelInfo resources;      ///< zeros where the artefact had no cubin
    std::uint64_t blocks = 0;  ///< of the grid
    Counters interior;         ///< of some blocks but the last; zeros where `edge` is the whole grid
    Counters edge;             ///< of the last block, or of all
};

/// What a cast of a Device finds in one that counts.
class Counting {
public:
    virtual ~Counting() = default;
    /// Of the sequence that was timed last.
    virtual const std::vector<CountedLaunch>& counted() const noexcept = 0;
};

}  // namespace autotune::emulator
#endif
