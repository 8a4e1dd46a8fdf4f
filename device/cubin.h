#ifndef AUTOTUNE_DEVICE_CUBIN_H
#define AUTOTUNE_DEVICE_CUBIN_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace autotune {

/// What a cubin says of one kernel. Spills in bytes stand in the compile log only (device/compile_log.h).
struct CubinKernel {
    std::string symbol;
    int registers = 0;            ///< a thread
    int static_shared_bytes = 0;  ///< without the block that the driver reserves
    int stack_bytes = 0;          ///< local arrays and spills
    int deepest_stack_bytes = 0;  ///< with its callees
    int barriers = 0;             ///< highest named barrier plus one
    bool spills = false;
    std::array<std::uint32_t, 3> launch_bound{};    ///< zeros: none given
    std::array<std::uint32_t, 3> required_block{};  ///< zeros: none given
    std::array<std::uint32_t, 3> cluster{};         ///< zeros: none given
    std::uint32_t parameter_bytes = 0;
    std::uint64_t code_bytes = 0;
    std::uint64_t code_offset = 0;  ///< of its instructions in the file; 0: they are not there
};

/// A cubin's own account of itself. The format is undocumented: read from toolkits 12 and 13.
struct Cubin {
    int cc = 0;  ///< 90 for sm_90 and sm_90a: the file does not tell them apart
    std::vector<CubinKernel> kernels;
    std::uint64_t constant_bytes = 0;  ///< __constant__ data
    std::uint64_t global_bytes = 0;    ///< module-scope variables
};

/// Reads a cubin. Every offset is checked, so bytes from anywhere are safe to read.
/// throws  Error{usage} for what is no cubin, or one whose tables point outside of it
Cubin read_cubin(std::span<const std::byte> bytes);

/// The kernel in the words of an artefact; `name` is its symbol, and spill_bytes is left to the compile log.
KernelInfo kernel_info(const CubinKernel& kernel);

}  // namespace autotune
#endif
