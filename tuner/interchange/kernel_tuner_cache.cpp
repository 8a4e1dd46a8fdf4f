#include "tuner/interchange/kernel_tuner_cache.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tuner/interchange/measured_space.h"
#include "tuner/interchange/measurements_reader.h"

namespace autotune {
namespace {

class CacheReader : MeasurementsReader {
public:
    using MeasurementsReader::MeasurementsReader;

    Measurements read() {
        const ForeignJson& rows = root_["cache"];
        if (!rows.is_object()) refuse("cache", "it is no object");
        out_.kernel = text_or_nothing(root_, "kernel_name");
        out_.device = text_or_nothing(root_, "device_name");
        const std::string told = text_or_nothing(root_, "objective"), objective = told.empty() ? "time" : told;
        std::set<std::string> names;
        if (root_.contains("tune_params_keys") && root_["tune_params_keys"].is_array())
            for (const ForeignJson& key : root_["tune_params_keys"]) {
                if (!key.is_string()) refuse("tune_params_keys", "a name is no string");
                out_.parameters.push_back(key.get<std::string>());
                if (!names.insert(out_.parameters.back()).second)
                    refuse("tune_params_keys", fmt::format("'{}' is there twice", out_.parameters.back()));
            }
        if (out_.parameters.empty()) refuse("tune_params_keys", "it names no parameter");
        tells_predicted_ = !names.contains("predicted");
        for (const auto& [key, row] : rows.items()) cached(key, row, objective);
        return finish();
    }

private:
    void cached(const std::string& key, const ForeignJson& row, const std::string& objective) {
        const std::string where = fmt::format("cache['{}']", key.substr(0, 100));
        if (!row.is_object()) refuse(where, "it is no object");
        MeasuredConfig config;
        for (const std::string& name : out_.parameters) {
            if (!row.contains(name)) refuse(where, fmt::format("there is no '{}'", name));
            config.values.emplace_back(name, value_of(row[name], where, name));
        }
        config.compilation_ms = time_or_nothing(row, {"compile_time"}, 1, where);
        config.validation_ms = time_or_nothing(row, {"verification_time"}, 1, where);
        config.search_ms = time_or_nothing(row, {"strategy_time"}, 1, where);
        config.framework_ms = time_or_nothing(row, {"framework_time"}, 1, where);
        config.runtimes_ms = times(row, "times", 1, where);
        config.timestamp = timestamp_of(text_or_nothing(row, "timestamp"));
        std::string failure = text_or_nothing(row, "__error__");
        if (failure.empty()) failure = text_or_nothing(row, objective.c_str());
        if (failure.empty()) failure = text_or_nothing(row, "time");
        config.predicted = tells_predicted_ && row.contains("predicted") && row["predicted"] == 1;
        if (!failure.empty()) {
            config.invalidity = failure == "CompilationFailedConfig" ? "compile"
                                : failure == "InvalidConfig"         ? "constraints"
                                                                     : "runtime";
        } else if (row.contains("time") && !row["time"].is_null()) {
            // Before it wrote words, Kernel Tuner wrote 1e20 for a failure.
            config.time_ms = time_of(row["time"], 1, where);
            if (*config.time_ms >= 1e20) {
                config.time_ms.reset();
                config.invalidity = "runtime";
            }
        } else if (row.contains(objective) && !row[objective].is_null()) {
            refuse(where, "there is no 'time', by which configs are compared, whatever was searched for");
        }
        add(std::move(config));
    }

    bool tells_predicted_ = true;  ///< as we write it; false where a parameter has that name
};

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
    if (config.predicted && !row.contains("predicted")) row["predicted"] = 1;
    if (config.timestamp != 0) row["timestamp"] = utc_text(config.timestamp);
    return row;
}

}  // namespace

Measurements measurements_of_kernel_tuner_cache(const ForeignJson& root, const std::string& file) {
    return CacheReader{root, file}.read();
}

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
