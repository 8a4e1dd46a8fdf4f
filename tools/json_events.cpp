#include "tools/json_events.h"

#include <nlohmann/json.hpp>

namespace autotune {
namespace {

using Json = nlohmann::json;

Json to_value(const Value& value) {
    return std::visit([](const auto& held) { return Json(held); }, value);
}

Json pairs(const std::vector<std::pair<std::string, Value>>& values) {
    Json object = Json::object();
    for (const auto& [name, value] : values) object[name] = to_value(value);
    return object;
}

/// Compiler logs may hold any bytes: what is no UTF-8 is replaced.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json ranked(const Ranked& finalist) {
    return {{"config", finalist.config},
            {"time_us", finalist.time_us},
            {"low_us", finalist.low_us},
            {"high_us", finalist.high_us},
            {"samples", finalist.outcome.samples_us.size()},
            {"same_as_best", finalist.same_as_best},
            {"tainted", finalist.outcome.tainted},
            {"clock_mhz", finalist.outcome.clock_mhz}};
}

Json counts(const Tuning& tuning) {
    Json object = Json::object();
    for (const auto& [ending, count] : tuning.counts)
        if (count) object[std::string{info(ending).name}] = count;
    return object;
}

Json prior_fields(const PriorUse& prior) {
    Json object = {{"model", prior.model}, {"asked", prior.asked},     {"predicted", prior.predicted},
                   {"first", prior.first}, {"seconds", prior.seconds}, {"compared", prior.compared}};
    if (prior.rank_correlation) object["rank_correlation"] = *prior.rank_correlation;
    return object;
}

Json stages(const Tuning& tuning) {
    Json list = Json::array();
    for (const Stage& stage : tuning.use.stages)
        list.push_back({{"name", stage.name}, {"begin_s", stage.begin_s}, {"end_s", stage.end_s}});
    return list;
}

}  // namespace

void to_json(Json& json, const Config& config) {
    json = {{"variant", config.variant}, {"values", pairs(config.values)}, {"text", config.text()}};
}

void to_json(Json& json, const Problem& problem) { json = pairs(problem.fields); }

void to_json(Json& json, const DeviceIdentity& device) {
    json = {{"name", device.name},        {"fp", device.fp},
            {"cc", device.limits.cc},     {"sm_count", device.limits.sm_count},
            {"driver", device.driver},    {"memory_bytes", device.limits.memory_bytes},
            {"emulated", device.emulated}};
}

std::string json_event(const std::string& name, const Json& fields) {
    Json line = {{"v", 1}, {"event", name}};
    line.update(fields);
    return dump(line);
}

std::string json_prepared(const Instance& instance, const DeviceIdentity& device, const Space& space,
                          const Preparation& preparation) {
    return json_event("prepared", {{"op", instance.op().name},
                                   {"problem", instance.problem()},
                                   {"device", device},
                                   {"valid", space.size()},
                                   {"raw", space.raw_size()},
                                   {"reference", preparation.reference},
                                   {"method", preparation.method},
                                   {"copy_bandwidth_gbs", preparation.copy_bandwidth_gbs},
                                   {"floor_us", preparation.floor_us}});
}

std::string json_trial(const Instance& instance, const Trial& trial) {
    const Outcome& o = trial.outcome;
    Json fields = {{"op", instance.op().name},        {"trial", trial.ordinal},
                   {"config", trial.config},          {"outcome", info(o.ending).name},
                   {"invalidity", info(o.ending).t4}, {"new_best", trial.new_best},
                   {"resumed", trial.resumed},        {"compile_ms", o.compile_ms},
                   {"check_ms", o.check_ms},          {"time_ms", o.time_ms}};
    if (!o.reason.empty()) fields["reason"] = o.reason;
    if (o.time_us > 0) fields["time_us"] = o.time_us;
    if (o.predicted) fields["predicted"] = true;
    if (!o.samples_us.empty()) fields["samples_us"] = o.samples_us;
    if (o.registers)
        fields.update({{"registers", o.registers}, {"spill_bytes", o.spill_bytes}, {"shared_bytes", o.shared_bytes}});
    return json_event("trial", fields);
}

std::string json_explained(const Instance& instance, const Trial& trial) {
    return json_event("explained", {{"op", instance.op().name},
                                    {"trial", trial.ordinal},
                                    {"config", trial.config},
                                    {"outcome", info(trial.outcome.ending).name},
                                    {"reason", trial.outcome.reason}});
}

std::string json_summary(const Instance& instance, const DeviceIdentity& device, const Tuning& tuning,
                         const Stored& stored) {
    Json fields = {{"op", instance.op().name},
                   {"problem", instance.problem()},
                   {"device", device},
                   {"tried", tuning.tried},
                   {"resumed", tuning.resumed},
                   {"of_records", tuning.asked_first},
                   {"unfinished", tuning.unfinished},
                   {"valid", tuning.space_size},
                   {"outcomes", counts(tuning)},
                   {"elapsed_s", tuning.elapsed_s},
                   {"compile_s", tuning.use.compile_s},
                   {"check_s", tuning.use.check_s},
                   {"time_s", tuning.use.time_s},
                   {"gpu_idle_share", tuning.use.gpu_idle_share},
                   {"workers", tuning.use.compile_workers},
                   {"stages", stages(tuning)},
                   {"interrupted", tuning.interrupted},
                   {"verified",
                    {{"problems", tuning.verification.problems},
                     {"inputs", tuning.verification.inputs},
                     {"largest_error", tuning.verification.largest_error}}}};
    if (!tuning.stopped.empty()) fields["stopped"] = tuning.stopped;
    if (tuning.prior) fields["prior"] = prior_fields(*tuning.prior);
    if (tuning.best) fields["best"] = ranked(*tuning.best);
    if (tuning.default_result) fields["default"] = ranked(*tuning.default_result);
    fields["ranking"] = Json::array();
    for (const Ranked& finalist : tuning.ranking) fields["ranking"].push_back(ranked(finalist));
    const std::string why = why_not_stored(tuning, stored);
    if (!why.empty())
        fields["not_stored"] = why;
    else
        fields["stored"] = {{"path", stored.path}, {"records", stored.records}, {"kept_better", stored.kept_better}};
    return json_event("summary", fields);
}

std::string json_error(const std::string& message, const std::string& help, int exit_code) {
    return json_event("error", {{"message", message}, {"help", help}, {"exit_code", exit_code}});
}

}  // namespace autotune
