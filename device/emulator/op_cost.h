#ifndef AUTOTUNE_DEVICE_EMULATOR_OP_COST_H
#define AUTOTUNE_DEVICE_EMULATOR_OP_COST_H

#include <cstdint>
#include <vector>

#include "device/emulator/machine.h"
#include "device/emulator/program.h"
#include "device/machine_code.h"

namespace autotune::emulator {

/// What of an SM an instruction keeps busy, besides a slot of its schedulers.
enum class Unit : std::uint8_t { none, fma, alu, special, fp64, tensor, memory };
inline constexpr int units = 7;

/// How an op orders what stands around it.
enum class OpOrder : std::uint8_t {
    none,
    ends_run,      ///< what follows begins when all before it has been issued
    barrier,       ///< of the block: waits for the other warps
    cluster,       ///< of the cluster: waits for the other blocks
    arrive,        ///< there without waiting
    phase_arrive,  ///< at an mbarrier
    phase_wait,
    copy,  ///< cp.async
    commit,
    wait,  ///< imm: groups that may be under way
};

/// What an op costs a warp: of the machine code that it became, as far as PTX tells.
struct OpCost {
    CodeKind kind = CodeKind::integer;
    Unit unit = Unit::none;
    OpOrder order = OpOrder::none;
    bool asynchronous = false;  ///< a wgmma: its result is waited for by a `wait`
    bool past_l1 = false;       ///< served by the second-level cache
    float slots = 0;            ///< instructions issued
    float clocks = 0;           ///< of its unit, if one unit served the whole SM
    float requests = 0;         ///< of the load-store unit, for one of the PTX
    float latency = 0;          ///< of its result, where memory does not decide it
    std::uint32_t first = 0;    ///< in OpCosts::registers: written ones, then read ones
    std::uint16_t written = 0, read = 0;
};

struct OpCosts {
    std::vector<OpCost> ops;               ///< by Program::ops
    std::vector<std::uint32_t> registers;  ///< numbers
    std::uint32_t register_count = 0;
    double local_requests = 0;  ///< accesses to spilled registers for each slot
};

/// The costs of a program's ops on a machine.
/// machine_code  of the kernel, whose counts say what became of the PTX: loads that were merged, constants that became
///               operands. Zeros: costs are those of the PTX.
OpCosts op_costs(const Program& program, const DecodedFunction& kernel, const CodeCounts& machine_code,
                 const Machine& machine);

}  // namespace autotune::emulator
#endif
