#ifndef AUTOTUNE_DEVICE_LAUNCH_H
#define AUTOTUNE_DEVICE_LAUNCH_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "autotune/dtype.h"

namespace autotune {

struct Dim3 {
    std::uint32_t x = 1, y = 1, z = 1;
    friend bool operator==(const Dim3&, const Dim3&) = default;
};

/// The device address of a buffer of the sequence, by its index there.
struct BufferArgument {
    std::uint32_t buffer = 0;
    friend bool operator==(const BufferArgument&, const BufferArgument&) = default;
};

/// A value passed by copy: `size` bytes of `bytes`, little-endian, naturally aligned. All zero and 8 bytes for
/// the pointer of an optional tensor that is absent.
struct ValueArgument {
    std::array<std::byte, 8> bytes{};
    std::uint8_t size = 8;
    friend bool operator==(const ValueArgument&, const ValueArgument&) = default;
};

/// A tensor map (128 bytes, made by the device) over a buffer; extents and strides innermost first.
struct TensorMapArgument {
    std::uint32_t buffer = 0;
    DType dtype = DType::f32;
    std::vector<std::uint64_t> extents;
    std::vector<std::uint64_t> strides_bytes;  ///< of all dimensions but the innermost
    std::vector<std::uint32_t> box;
    std::uint32_t swizzle_bytes = 0;  ///< 0, 32, 64 or 128
    friend bool operator==(const TensorMapArgument&, const TensorMapArgument&) = default;
};

using Argument = std::variant<BufferArgument, ValueArgument, TensorMapArgument>;

/// One kernel launch, with every expression already a number.
struct Launch {
    std::string entry;  ///< as the source spells it: a name, or a name expression of a C++ template
    std::string source;
    std::uint32_t repeat = 1;
    Dim3 grid, block, cluster;
    std::uint32_t shared_bytes = 0;  ///< dynamic
    bool cooperative = false;
    std::vector<Argument> arguments;
    friend bool operator==(const Launch&, const Launch&) = default;
};

/// A module-scope variable that receives a tensor's contents.
struct SymbolCopy {
    std::string symbol, source;
    std::uint32_t buffer = 0;
    bool each_launch = false;  ///< as part of the timed sequence; else once a problem, untimed
    friend bool operator==(const SymbolCopy&, const SymbolCopy&) = default;
};

/// Working memory of one sequence, beyond the op's tensors.
struct ScratchBuffer {
    std::string name;
    std::uint64_t bytes = 0;
    bool zeroed = false;  ///< zero is what the kernel needs to find: part of the timed sequence
    friend bool operator==(const ScratchBuffer&, const ScratchBuffer&) = default;
};

/// What one config launches for one problem, ready for a device: buffers are numbered tensors first, in the
/// op's order, then scratch.
struct LaunchSequence {
    std::vector<ScratchBuffer> scratch;
    std::vector<SymbolCopy> symbols;
    std::vector<Launch> launches;
    friend bool operator==(const LaunchSequence&, const LaunchSequence&) = default;
};

}  // namespace autotune
#endif
