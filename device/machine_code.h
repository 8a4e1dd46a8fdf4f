#ifndef AUTOTUNE_DEVICE_MACHINE_CODE_H
#define AUTOTUNE_DEVICE_MACHINE_CODE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace autotune {

/// Kinds of instructions that PTX and machine code both have, so that the counts of one can be held against the
/// other's.
enum class CodeKind : std::uint8_t {
    fp32,
    half,
    fp64,
    special,  ///< reciprocals, exponentials
    convert,
    tensor,
    shared_load,
    shared_store,
    global_load,
    global_store,
    constant_load,
    local,
    copy_async,
    shuffle,
    integer,  ///< with predicates, moves and all that is not named here
    branch,
};
inline constexpr int code_kinds = 16;
inline constexpr std::array<std::string_view, code_kinds> code_kind_names{
    "fp32",        "half",         "fp64",          "special", "convert",    "tensor",  "shared_load", "shared_store",
    "global_load", "global_store", "constant_load", "local",   "copy_async", "shuffle", "integer",     "branch"};

using CodeCounts = std::array<std::uint32_t, code_kinds>;

/// How many instructions of each kind stand in a kernel's code; padding is left out. For capabilities 7.5 to 9.0, whose
/// instructions take 16 bytes, the opcode in the low bits.
/// code  of one kernel: see CubinKernel::code_offset
CodeCounts count_machine_code(std::span<const std::byte> code) noexcept;

struct KernelCode {
    std::string symbol;
    CodeCounts counts{};
};

/// The same of each kernel in a cubin; none where it is of another capability.
/// throws  Error{usage} for what is no cubin
std::vector<KernelCode> count_kernels(std::span<const std::byte> cubin);

}  // namespace autotune
#endif
