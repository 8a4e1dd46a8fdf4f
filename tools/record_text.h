#ifndef AUTOTUNE_TOOLS_RECORD_TEXT_H
#define AUTOTUNE_TOOLS_RECORD_TEXT_H

#include <string>

#include "cache/store/record.h"
#include "tuner/model/instance.h"

namespace autotune {

// One stored record in a form that can be used elsewhere: pure functions.

/// A C++ header with the entry, the defines and a function a launch that calls the driver. Compiles on its own with
/// <cuda.h>. The instance is that of the record's problem.
std::string record_as_cpp(const Record& record, const Instance& instance);
/// The record as TOML, for people and scripts.
std::string record_as_toml(const Record& record);
/// One JSON object: the record, and its launches with every number filled in.
std::string record_as_json(const Record& record, const Instance& instance);

}  // namespace autotune
#endif
