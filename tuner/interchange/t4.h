#ifndef AUTOTUNE_INTERCHANGE_T4_H
#define AUTOTUNE_INTERCHANGE_T4_H

#include <span>
#include <string>

#include "tuner/interchange/measurements.h"

namespace autotune {

/// T4, 1.0.0: the spelling of the schema, and beside it the one that Kernel Tuner writes and reads. Times are
/// milliseconds, as the file says.
std::string t4_text(std::span<const MeasuredConfig> configs);

}  // namespace autotune
#endif
