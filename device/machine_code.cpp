#include "device/machine_code.h"

#include <cstring>

#include "device/cubin.h"

namespace autotune {
namespace {

struct Opcode {
    std::uint16_t code;
    CodeKind kind;
};

/// The low nine bits; three more tell registers from constants and immediates. What is not here counts as integer.
constexpr Opcode opcodes[] = {
    {0x020, CodeKind::fp32},           // FMUL
    {0x021, CodeKind::fp32},           // FADD
    {0x023, CodeKind::fp32},           // FFMA
    {0x030, CodeKind::half},           // HADD2
    {0x031, CodeKind::half},           // HFMA2
    {0x032, CodeKind::half},           // HMUL2
    {0x035, CodeKind::half},           // HFMA2.MMA, of 8.0 and 9.0
    {0x028, CodeKind::fp64},           // DMUL
    {0x029, CodeKind::fp64},           // DADD
    {0x02b, CodeKind::fp64},           // DFMA
    {0x108, CodeKind::special},        // MUFU
    {0x104, CodeKind::convert},        // F2F
    {0x105, CodeKind::convert},        // F2I
    {0x106, CodeKind::convert},        // I2F
    {0x107, CodeKind::convert},        // FRND
    {0x03e, CodeKind::convert},        // F2FP
    {0x03c, CodeKind::tensor},         // HMMA
    {0x037, CodeKind::tensor},         // IMMA
    {0x03f, CodeKind::tensor},         // DMMA
    {0x1f0, CodeKind::tensor},         // HGMMA
    {0x184, CodeKind::shared_load},    // LDS
    {0x03b, CodeKind::shared_load},    // LDSM
    {0x188, CodeKind::shared_store},   // STS
    {0x181, CodeKind::global_load},    // LDG
    {0x180, CodeKind::global_load},    // LD
    {0x186, CodeKind::global_store},   // STG
    {0x185, CodeKind::global_store},   // ST
    {0x182, CodeKind::constant_load},  // LDC
    {0x183, CodeKind::local},          // LDL
    {0x187, CodeKind::local},          // STL
    {0x1ae, CodeKind::copy_async},     // LDGSTS
    {0x189, CodeKind::shuffle},        // SHFL
    {0x147, CodeKind::branch},         // BRA
    {0x145, CodeKind::branch},         // BSSY
    {0x141, CodeKind::branch},         // BSYNC
    {0x14d, CodeKind::branch},         // EXIT
    {0x11d, CodeKind::branch},         // BAR
};
constexpr std::uint16_t padding = 0x118;  // NOP

CodeKind kind_of(std::uint16_t code) noexcept {
    for (const Opcode& one : opcodes)
        if (one.code == code) return one.kind;
    return CodeKind::integer;
}

}  // namespace

CodeCounts count_machine_code(std::span<const std::byte> code) noexcept {
    constexpr std::size_t instruction_bytes = 16;
    CodeCounts counts{};
    for (std::size_t at = 0; at + instruction_bytes <= code.size(); at += instruction_bytes) {
        std::uint16_t low = 0;
        std::memcpy(&low, code.data() + at, sizeof low);
        low &= 0x1ff;
        if (low != padding) ++counts[static_cast<std::size_t>(kind_of(low))];
    }
    return counts;
}

std::vector<KernelCode> count_kernels(std::span<const std::byte> cubin) {
    const Cubin read = read_cubin(cubin);
    std::vector<KernelCode> kernels;
    if (read.cc < 70 || read.cc >= 100) return kernels;
    for (const CubinKernel& kernel : read.kernels)
        if (kernel.code_offset > 0)
            kernels.push_back(
                {kernel.symbol, count_machine_code(cubin.subspan(kernel.code_offset, kernel.code_bytes))});
    return kernels;
}

}  // namespace autotune
