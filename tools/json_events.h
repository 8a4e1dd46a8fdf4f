#ifndef AUTOTUNE_TOOLS_JSON_EVENTS_H
#define AUTOTUNE_TOOLS_JSON_EVENTS_H

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "tools/tune_report.h"
#include "tuner/tune.h"

namespace autotune {

// The JSON lines of --json: {"v":1,"event":...}. Fields are added, never renamed, within v.

std::string json_prepared(const Instance& instance, const DeviceIdentity& device, const Space& space,
                          const Preparation& preparation);
std::string json_trial(const Instance& instance, const Trial& trial);
std::string json_explained(const Instance& instance, const Trial& trial);
std::string json_summary(const Instance& instance, const DeviceIdentity& device, const Tuning& tuning,
                         const Stored& stored);
std::string json_error(const std::string& message, const std::string& help, int exit_code);

/// One line of any other event: `{"v":1,"event":NAME, ...fields}`.
std::string json_event(const std::string& name, const nlohmann::json& fields);

void to_json(nlohmann::json& json, const Config& config);
void to_json(nlohmann::json& json, const Problem& problem);
void to_json(nlohmann::json& json, const DeviceIdentity& device);

}  // namespace autotune
#endif
