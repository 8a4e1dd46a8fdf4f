#ifndef AUTOTUNE_DEVICE_EMULATOR_ROUNDED_H
#define AUTOTUNE_DEVICE_EMULATOR_ROUNDED_H

#include "device/emulator/op.h"

namespace autotune::emulator {

/// Handlers of arithmetic that rounds toward zero or an infinity, and of conversions that do; null where there is none.
/// They set the CPU's rounding mode for the length of one op.
Handler select_rounded(const Selector& selector);

}  // namespace autotune::emulator
#endif
