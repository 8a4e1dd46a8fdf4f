#ifndef AUTOTUNE_INTERCHANGE_KERNEL_TUNER_CACHE_H
#define AUTOTUNE_INTERCHANGE_KERNEL_TUNER_CACHE_H

#include <string>
#include <string_view>

#include "tuner/interchange/measurements.h"

namespace autotune {

/// The cache file that Kernel Tuner would have written of these configs, closed: its simulation mode and its tools read
/// it, and so does measurements_from_text(). What the format has no word for is a failure at run time; what was dropped
/// early is left out, since it has no time and did not fail; of a config that is there twice the last counts.
/// measured  every config with all parameters, in their order: see even_out()
/// problem   in words
std::string kernel_tuner_cache_text(const Measurements& measured, std::string_view problem);

}  // namespace autotune
#endif
