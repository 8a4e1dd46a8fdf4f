#ifndef AUTOTUNE_DEVICE_EMULATOR_ATOMICS_H
#define AUTOTUNE_DEVICE_EMULATOR_ATOMICS_H

#include <cstdint>

#include "device/emulator/warp.h"

namespace autotune::emulator {

enum class AtomicOperation : std::uint8_t { add, min, max, inc, dec, and_, or_, xor_, exch, cas };

/// What memory holds after an atomic operation of two operands.
std::uint64_t combined(AtomicOperation operation, PtxType type, std::uint64_t old, std::uint64_t with);

/// atom and red, lane after lane. d: what was there before, 0 for none; a: address, imm: its offset; b: the operand,
/// c: of cas the new value; small: operation, type << 8; extra: the number of elements, then rows of d and b where
/// there are several.
void atomic(Warp& warp, const Op& op, std::uint32_t mask);

}  // namespace autotune::emulator
#endif
