#ifndef AUTOTUNE_DEVICE_EMULATOR_WARP_H
#define AUTOTUNE_DEVICE_EMULATOR_WARP_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "device/emulator/op.h"

namespace autotune::emulator {

struct Block;
struct Program;

inline constexpr int lanes = 32;
inline constexpr std::uint32_t all_lanes = 0xffffffffu;
inline constexpr std::uint32_t no_pc = 0xffffffffu;

/// What the bytes of memory are to a kernel; one byte for each.
enum class ByteState : std::uint8_t {
    outside = 0,  ///< in no allocation
    uninitialised = 1,
    initialised = 2,
    freed = 3,
    pending = 4,  ///< the target of an asynchronous copy that nobody has waited for
    barrier = 5,  ///< of an mbarrier: not for plain accesses
    reading = 6,  ///< an asynchronous operation that nobody has waited for reads it: not to be written
};

/// A piece of address space as memory handlers see it.
struct SpaceView {
    std::byte* base = nullptr;
    std::uint8_t* states = nullptr;  ///< a ByteState for each byte; null: none is kept
    std::uint64_t start = 0, size = 0;
    std::uint64_t lane_stride = 0;  ///< each lane has its own
};

/// Lanes of a warp that are at one place.
struct Fragment {
    enum class Wait : std::uint8_t {
        none,
        sync,     ///< at a `.sync` op, for lanes that it names
        aligned,  ///< at a barrier of whole warps, for the rest of its warp
        barrier,  ///< at a barrier of the block, its cluster or four warps, which then goes on at `pc`
        phase,    ///< at an mbarrier that is in that phase; `pc` is that of the op, which looks again
    };
    std::uint32_t pc = 0, mask = 0;
    Wait wait = Wait::none;
    const Op* at = nullptr;  ///< what it waits at
    std::uint32_t barrier = 0;
    bool tried = false;  ///< in vain, since anything of the warp last went on
};

/// Whether it goes on only by what other warps do.
inline bool waits_outside(const Fragment& fragment) noexcept { return fragment.wait >= Fragment::Wait::barrier; }

/// Bytes of shared memory that an asynchronous copy writes, by lane.
struct PendingCopy {
    std::uint32_t mask = 0;
    std::uint32_t bytes = 0;
    std::uint32_t at[lanes];
    std::uint32_t group[lanes];
    const Op* op = nullptr;
};

/// Shared memory that a lane's bulk copy reads.
struct BulkRead {
    int lane = 0;
    std::uint32_t group = 0;
    const Op* op = nullptr;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
};

/// How often an op ran.
struct Tally {
    std::uint64_t warps = 0, lanes = 0;
};

/// Why a warp stopped running.
enum class Stop : std::uint8_t { turn_over, blocked, exited };

struct Warp {
    std::byte* registers = nullptr;
    const std::byte* constants = nullptr;  ///< less INT32_MIN: what a negative offset is added to
    const Program* program = nullptr;
    const Op* ops = nullptr;              ///< of the program
    const std::int32_t* extra = nullptr;  ///< likewise
    Tally* tally = nullptr;               ///< by op; null: nothing is counted
    Block* block = nullptr;
    SpaceView views[space_count];  ///< by Space; that of `generic` is empty
    std::uint32_t index = 0;
    std::uint32_t present = 0;  ///< lanes that the launch has
    std::uint32_t live = 0;     ///< of them those that have not exited

    // The fragment that runs, and the others.
    std::uint32_t pc = 0, mask = 0;
    std::uint32_t meet = no_pc;  ///< lowest pc of another fragment that can be merged with
    std::uint32_t turn = 0;      ///< branches since the fragment began to run
    std::uint32_t ahead = 0;     ///< branches that it may run before one at a lower pc
    std::vector<Fragment> others;
    bool stop = false;  ///< leave the loop: nothing of the warp can run, or all of it exited

    std::uint32_t carry = 0;
    std::uint32_t depth[lanes]{};          ///< of calls
    std::vector<std::uint32_t> returns;    ///< [depth][lane]
    std::vector<std::uint32_t> active;     ///< by function: lanes that are inside
    std::uint32_t returned_from[lanes]{};  ///< function that the last return left
    bool forced = false;                   ///< missing lanes are no longer waited for

    std::unique_ptr<std::byte[]> local;  ///< a lane's behind the other's
    std::uint64_t divergent = 0;         ///< branches
    std::vector<PendingCopy> copies;
    std::uint32_t groups[lanes]{};
    std::vector<BulkRead> bulk_reads;
    std::uint32_t bulk_groups[lanes]{};
    std::uint32_t cluster_arrived = 0;     ///< lanes that did at the cluster's barrier, and have not waited yet
    std::uint32_t cluster_phase[lanes]{};  ///< in which they did
    std::uint32_t sync_count = 0;          ///< collectives so far: they order the lanes of a warp
    bool checked = false, counted = false;
    bool watching = false;                    ///< registers that products under way write are looked after
    bool turned = false;                      ///< `stop` is only for going on with another loop
    std::vector<std::uint8_t> watched;        ///< by 64 bytes of registers
    class SharedRaces* races = nullptr;       ///< null: not looked for
    class BlockRaces* block_races = nullptr;  ///< likewise, of global memory
    class BlockTrace* trace = nullptr;        ///< null: nothing is timed
    bool asleep = false;                      ///< `stop` is only for the end of its turn
    std::uint64_t slept = 0;                  ///< nanoseconds
    std::uint64_t steps = 0;
    std::uint64_t clock = 0;  ///< times that the clock was read

    template <class T>
    T* row(std::int32_t offset) noexcept {
        const std::byte* const base = offset < 0 ? constants : registers;
        return reinterpret_cast<T*>(const_cast<std::byte*>(base + offset));
    }
    std::uint32_t& predicate(std::int32_t offset) noexcept { return *row<std::uint32_t>(offset); }
};

}  // namespace autotune::emulator
#endif
