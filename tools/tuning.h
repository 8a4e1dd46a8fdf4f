#ifndef AUTOTUNE_TOOLS_TUNING_H
#define AUTOTUNE_TOOLS_TUNING_H

#include "autotune/dispatcher.h"
#include "tools/run_keeper.h"
#include "tools/search.h"

namespace autotune {

/// One search of a dispatcher's tuner, its records and binaries stored. Throws Error: nothing was found, or could be
/// stored; what was tried is stored nevertheless.
void tune_into(Store& store, Bench& bench, const Instance& instance, const DeviceIdentity& device,
               const TuneRequest& request);

}  // namespace autotune
#endif
