#ifndef AUTOTUNE_DEVICE_EMULATOR_BLOCK_H
#define AUTOTUNE_DEVICE_EMULATOR_BLOCK_H

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/emulator/block_races.h"
#include "device/emulator/counters.h"
#include "device/emulator/fault.h"
#include "device/emulator/memory.h"
#include "device/emulator/phase_barriers.h"
#include "device/emulator/program.h"
#include "device/emulator/races.h"
#include "device/emulator/warp.h"
#include "device/emulator/wgmma.h"
#include "device/launch.h"

namespace autotune::emulator {

/// Which faults are looked for. Without any, accesses still stay inside of the emulator's memory.
struct Checks {
    bool memory = true;         ///< bounds, alignment, use after free
    bool uninitialised = true;  ///< reads of what was never written
    bool races = true;          ///< of shared memory, and asynchronous copies that were not waited for
    bool sync = true;           ///< divergent barriers, lanes missing at collectives
    bool any() const noexcept { return memory || uninitialised || races || sync; }
};

/// One launch as its blocks see it.
struct LaunchState {
    const Program& program;
    const DecodedFunction& kernel;
    GlobalMemory& memory;
    Dim3 grid, block, cluster;
    std::vector<std::byte> parameters;
    std::vector<std::uint64_t> pointers;  ///< the address in each parameter, 0 where it is none
    std::uint32_t shared_bytes = 0, dynamic_shared_bytes = 0;
    Checks checks;
    Counters* counters = nullptr;
    class BlockTrace* trace = nullptr;  ///< times what runs; counters are there, too
    std::uint64_t steps_left = 0;
    std::uint64_t grid_id = 0;
    int cc = 0, sm_count = 1;
    std::string* printed = nullptr;     ///< what printf adds to
    BlockRaces* block_races = nullptr;  ///< null: not looked for
};

struct Barrier {
    struct Arrival {
        std::uint32_t warp, mask;
        const Op* op;
    };
    std::vector<Arrival> arrived;
    std::uint32_t lanes = 0;     ///< that arrived, live ones
    std::uint32_t rounded = 0;   ///< with lanes that warps lack or that exited counted as arrived
    std::uint32_t expected = 0;  ///< 0: all live threads of the block
    std::uint32_t popc = 0;      ///< of the predicates of bar.red
    std::uint32_t asked = 0;     ///< lanes whose predicates those are
};

/// A thread block that is being run.
struct Block {
    LaunchState* launch = nullptr;
    Dim3 index;
    std::uint64_t number = 0;
    std::vector<Warp> warps;
    std::vector<std::byte> registers;
    struct Cluster* cluster = nullptr;
    std::uint32_t rank = 0;  ///< in its cluster
    bool started = false;    ///< something of it has run
    bool in_touch = false;   ///< it made an access to global memory that may order it behind other blocks
    /// The last access to its shared memory by another block, and how often the cluster's barrier had opened by then.
    struct Reached {
        const Op* op = nullptr;
        const Warp* warp = nullptr;
        int lane = 0;
        std::uint32_t phase = 0;
    };
    Reached reached;
    std::byte* shared = nullptr;
    std::uint8_t* shared_states = nullptr;            ///< null: none are kept
    std::vector<std::uint32_t> cluster_knowledge[2];  ///< what arrived at the cluster's barrier, by phase: for races
    SharedRaces races;
    std::array<Barrier, 16> barriers;
    std::map<std::uint32_t, PhaseBarrier> phase_barriers;  ///< by offset in shared memory
    std::vector<BulkFlight> flights;
    std::vector<Warpgroup> warpgroups;
    /// A read of shared memory that was never written: told at the end of the block, unless a race explains it.
    std::optional<Report> deferred;
    std::uint32_t live_threads = 0;
    std::uint32_t next_warp = 0;

    Dim3 thread(const Warp& warp, int lane) const noexcept;
};

}  // namespace autotune::emulator
#endif
