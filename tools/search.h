#ifndef AUTOTUNE_TOOLS_SEARCH_H
#define AUTOTUNE_TOOLS_SEARCH_H

#include <string>

#include "cache/store/store.h"
#include "tuner/tune.h"

namespace autotune {

// How a search is told to the store, by the command line and by a dispatcher's tuner alike.

/// What runs here; the device is left out where none does.
Environment environment_here(const DeviceIdentity* device);

/// What a source is compiled for on the instance's device: binaries are kept under it, though an older NVRTC makes code
/// for an earlier architecture in its place.
std::string asked_arch(const SourceSpec& source, const Instance& instance);

/// "60s", "200", "60s,200"
std::string budget_text(const Budget& budget);

RunStart start_of(const Instance& instance, const DeviceIdentity& device, const TuneOptions& options);
RunEnd end_of(const Tuning& tuning, const DeviceIdentity& device);

/// The very bytes that were timed, for `query --as cubin` and the dispatcher. A kept binary saves a compile; one
/// that cannot be kept, which false tells, costs nothing else.
bool keep_binaries(const Store& store, Bench& bench, const Instance& instance, const Config& config);

}  // namespace autotune
#endif
