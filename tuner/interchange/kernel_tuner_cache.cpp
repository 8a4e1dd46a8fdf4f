#include "tuner/interchange/kernel_tuner_cache.h"

#include <nlohmann/json.hpp>

#include "tuner/interchange/json_text.h"
#include "tuner/interchange/measured_space.h"

namespace autotune {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// As Python's str() writes it: configs are looked up by these words.
std::string python_word(const Value& value) {
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
    return to_text(value);
}

std::string failure_of(const MeasuredConfig& config) {
    if (config.invalidity == "compile") return "CompilationFailedConfig";
    return config.invalidity == "constraints" ? "InvalidConfig" : "RuntimeFailedConfig";
}

OrderedJson row_of(const MeasuredConfig& config) {
    OrderedJson row = OrderedJson::object();
    for (const auto& [name, value] : config.values) row[name] = OrderedJson(json_of_value(value));
    double benchmark_ms = 0;
    for (const double time : config.runtimes_ms) benchmark_ms += time;
    if (config.time_ms) {
        row["time"] = *config.time_ms;
        row["times"] = config.runtimes_ms;
    } else {
        row["time"] = row["__error__"] = failure_of(config);
    }
    row["compile_time"] = config.compilation_ms;
    row["verification_time"] = config.validation_ms;
    row["benchmark_time"] = benchmark_ms;
    row["strategy_time"] = config.search_ms;
    row["framework_time"] = config.framework_ms;
    if (config.timestamp != 0) row["timestamp"] = utc_text(config.timestamp);
    return row;
}

}  // namespace

std::string kernel_tuner_cache_text(const Measurements& measured, std::string_view problem) {
    OrderedJson values = OrderedJson::object();
    const Op op = op_of_measurements(measured);
    for (const Parameter& parameter : op.variants.front().parameters)
        for (const Value& value : parameter.values) values[parameter.name].push_back(OrderedJson(json_of_value(value)));
    OrderedJson rows = OrderedJson::object();
    for (const MeasuredConfig& config : measured.configs) {
        if (config.invalidity == "correct" && !config.time_ms) continue;
        std::string key;
        for (const auto& [name, value] : config.values) key += (key.empty() ? "" : ",") + python_word(value);
        rows[key] = row_of(config);
    }
    const OrderedJson root = {{"device_name", measured.device},   {"kernel_name", measured.kernel},
                              {"problem_size", problem},          {"tune_params_keys", measured.parameters},
                              {"tune_params", std::move(values)}, {"objective", "time"},
                              {"cache", std::move(rows)}};
    return root.dump(0, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace autotune
