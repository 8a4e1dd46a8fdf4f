#ifndef AUTOTUNE_DEVICE_EMULATOR_PROGRAM_H
#define AUTOTUNE_DEVICE_EMULATOR_PROGRAM_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/emulator/op.h"
#include "device/emulator/ptx_module.h"

namespace autotune::emulator {

// Where the address spaces lie in generic addresses. Global memory has its own: see memory.h.
inline constexpr std::uint64_t shared_window = 0x7f0000000000, local_window = 0x7e0000000000,
                               param_window = 0x7d0000000000, code_window = 0x7c0000000000,
                               window_bytes = 0x10000000000;

/// Special registers, in the order of their names in program.cpp.
enum class Special : std::uint8_t {
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    laneid,
    warpid,
    nwarpid,
    smid,
    nsmid,
    gridid,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    dynamic_smem_size,
    total_smem_size,
    clusterid_x,
    clusterid_y,
    clusterid_z,
    nclusterid_x,
    nclusterid_y,
    nclusterid_z,
    cluster_ctaid_x,
    cluster_ctaid_y,
    cluster_ctaid_z,
    cluster_nctaid_x,
    cluster_nctaid_y,
    cluster_nctaid_z,
    cluster_ctarank,
    cluster_nctarank,
    is_explicit_cluster
};
inline constexpr int specials = 40;

/// A place for per-lane bytes of a function: local arrays, parameters.
struct Formal {
    std::uint32_t offset = 0;  ///< in a lane's local memory; of an entry's parameter: in the parameter buffer
    std::uint32_t bytes = 0;
};

struct DecodedFunction {
    std::string_view name;
    bool entry = false;
    std::uint32_t first = 0, last = 0;  ///< its ops: [first, last)
    std::vector<Formal> parameters, results;
    std::uint32_t parameter_bytes = 0;                                   ///< of an entry
    std::vector<std::pair<std::uint32_t, std::uint32_t>> shared_ranges;  ///< start and bytes of its variables
    std::uint32_t static_shared_bytes = 0;                               ///< with gaps between them
    std::uint32_t max_threads = 0;
    bool required_threads = false;
    bool dynamic_shared = false;
    std::array<std::uint32_t, 3> cluster{};
};

/// One call: how arguments travel.
struct CallSite {
    struct Move {
        std::int32_t row = 0;    ///< of a register, where `bytes` is negative its size
        std::uint32_t from = 0;  ///< local offset
        std::int32_t bytes = 0;
    };
    std::int32_t callee = -1;  ///< function number; -1: by address in op.a; below: an intrinsic
    std::vector<Move> arguments, results;
};
inline constexpr std::int32_t call_vprintf = -2, call_assertfail = -3, call_unknown = -4;

/// A module ready to run: ops of all functions in one array, constants as ready rows.
struct Program {
    PtxModule module;
    std::vector<Op> ops;
    std::vector<std::int32_t> extra;
    std::vector<std::string_view> names;    ///< opcodes, by Op::instruction
    std::vector<std::uint32_t> text_lines;  ///< of the PTX, likewise
    std::vector<DecodedFunction> functions;
    std::vector<CallSite> calls;
    /// Rows of registers that an instruction names: where they begin in `operand_list` and how many there are. Only
    /// where the module has a wgmma, whose accumulators are looked after.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> operand_rows;
    std::vector<std::int32_t> operand_list;
    std::vector<std::byte> constants;  ///< rows of 32 lanes, at 64-byte steps
    std::uint32_t register_bytes = 0;  ///< of one warp
    std::uint32_t local_bytes = 0;     ///< of one lane
    std::vector<std::pair<Special, std::uint32_t>> special_rows;
    bool has_wgmma = false;
    bool partial_barriers = false;  ///< some barrier is not one of the whole block

    const DecodedFunction* function(std::string_view name) const noexcept;
    /// "softmax.cu:93", or the line of the PTX where there is none.
    std::string place(const Op& op) const;
    /// The function that an op belongs to.
    const DecodedFunction& owner(const Op& op) const noexcept;
};

/// Where a module's variables lie; told by the loader, as decoding bakes addresses in.
using SymbolAddress = std::function<std::uint64_t(std::string_view name)>;

/// Decodes for this machine's CPU. Instructions that are not emulated become ops that say so when they run.
/// throws  Error{usage} for a text that contradicts itself: an unknown label, registers of wrong kinds
Program decode(PtxModule module, const SymbolAddress& address_of);

/// The number of a special register, or -1.
int special_named(std::string_view name) noexcept;

}  // namespace autotune::emulator
#endif
