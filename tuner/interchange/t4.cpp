#include "tuner/interchange/t4.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "tuner/interchange/measurements_reader.h"

namespace autotune {
namespace {

constexpr std::array<std::string_view, 6> invalidities{"timeout",     "compile",     "runtime",
                                                       "correctness", "constraints", "correct"};

/// Milliseconds a unit, as public files spell it.
std::optional<double> milliseconds_of(std::string_view unit) {
    static constexpr std::pair<std::string_view, double> units[] = {{"", 1.0},
                                                                    {"ms", 1.0},
                                                                    {"milliseconds", 1.0},
                                                                    {"miliseconds", 1.0},
                                                                    {"millisecond", 1.0},
                                                                    {"s", 1e3},
                                                                    {"seconds", 1e3},
                                                                    {"us", 1e-3},
                                                                    {"microseconds", 1e-3},
                                                                    {"ns", 1e-6},
                                                                    {"nanoseconds", 1e-6},
                                                                    {"sec", 1e3}};
    for (const auto& [name, factor] : units)
        if (name == unit) return factor;
    return std::nullopt;
}

class T4Reader : MeasurementsReader {
public:
    using MeasurementsReader::MeasurementsReader;

    Measurements read() {
        const ForeignJson& results = root_["results"];
        if (!results.is_array()) refuse("results", "it is no list");
        double unit = 1;
        if (root_.contains("metadata") && root_["metadata"].is_object()) {
            const std::string word = word_or_nothing(root_["metadata"], "timeunit", "metadata");
            const auto known = milliseconds_of(word);
            if (!known) refuse("metadata", fmt::format("'{}' is no unit of time", word));
            unit = *known;
        }
        for (std::size_t i = 0; i < results.size(); ++i) result(results[i], unit, fmt::format("results[{}]", i));
        std::set<std::string> all;
        for (const auto& [variant, names] : names_of_) all.insert(names.begin(), names.end());
        out_.parameters.assign(all.begin(), all.end());
        return finish();
    }

private:
    void result(const ForeignJson& json, double unit, const std::string& where) {
        if (!json.is_object() || !json.contains("configuration")) refuse(where, "there is no configuration");
        MeasuredConfig config;
        values(config, json["configuration"], where);
        if (const std::string word = word_or_nothing(json, "invalidity", where); !word.empty()) {
            if (std::ranges::find(invalidities, word) == invalidities.end())
                refuse(where, fmt::format("'{}' is no invalidity: there are {}", word, fmt::join(invalidities, ", ")));
            config.invalidity = word;
        }
        if (json.contains("correctness") && json["correctness"].is_number())
            config.correctness = json["correctness"].get<double>();
        config.timestamp = timestamp_of(text_or_nothing(json, "timestamp"));
        if (json.contains("times") && json["times"].is_object()) {
            const ForeignJson& spent = json["times"];
            config.compilation_ms = time_or_nothing(spent, {"compilation_time", "compilation"}, unit, where);
            config.validation_ms = time_or_nothing(spent, {"validation"}, unit, where);
            config.search_ms = time_or_nothing(spent, {"search_algorithm"}, unit, where);
            config.framework_ms = time_or_nothing(spent, {"framework"}, unit, where);
            config.runtimes_ms = times(spent, "runtimes", unit, where);
        }
        if (config.invalidity == "correct" && json.contains("measurements") && json["measurements"].is_array())
            measured(config, json["measurements"], objective_of(json), unit, where);
        add(std::move(config));
    }

    /// Configs are compared by their time: the measurement of that name, else the objective's.
    void measured(MeasuredConfig& config, const ForeignJson& all, const std::string& objective, double unit,
                  const std::string& where) const {
        const ForeignJson* time = nullptr;
        for (const ForeignJson& each : all) {
            if (!each.is_object()) continue;
            const std::string name = text_or_nothing(each, "name");
            config.predicted = config.predicted || name == "predicted";
            if (each.contains("value") && (name == "time" || (name == objective && time == nullptr))) time = &each;
        }
        if (time == nullptr) return;
        const std::string name = text_or_nothing(*time, "name"), word = word_or_nothing(*time, "unit", where);
        const auto own = milliseconds_of(word);
        if (!own) refuse(where, fmt::format("its '{}' is in '{}', and configs are compared by their time", name, word));
        if (word.empty() && name != "time")
            refuse(where, fmt::format("its '{}' has no unit, and configs are compared by their time", name));
        // a measurement without a unit has the file's
        config.time_ms = time_of((*time)["value"], word.empty() ? unit : *own, where);
    }

    static std::string objective_of(const ForeignJson& json) {
        if (json.contains("objectives") && json["objectives"].is_array() && !json["objectives"].empty() &&
            json["objectives"][0].is_string())
            return json["objectives"][0].get<std::string>();
        return "time";
    }

    /// JSON gives members by name, so configurations of the same parameters have them in the same order.
    void values(MeasuredConfig& config, const ForeignJson& json, const std::string& where) {
        if (!json.is_object() || json.empty()) refuse(where, "its configuration is empty or no object");
        std::string variant;
        for (const auto& [name, value] : json.items()) {
            config.values.emplace_back(name, value_of(value, where, name));
            if (name == "variant") variant = to_text(config.values.back().second);
        }
        const auto [first, added] = names_of_.try_emplace(variant);
        if (added)
            for (const auto& entry : config.values) first->second.push_back(entry.first);
        const std::vector<std::string>& names = first->second;
        if (config.values.size() != names.size())
            refuse(where, fmt::format("it has {} parameters, and the first{} has {}", config.values.size(),
                                      variant.empty() ? "" : " of '" + variant + "'", names.size()));
        for (std::size_t i = 0; i < names.size(); ++i) {
            const std::string& own = config.values[i].first;
            if (own > names[i]) refuse(where, fmt::format("there is no '{}'", names[i]));
            if (own < names[i]) refuse(where, fmt::format("there is '{}', which the first has not", own));
        }
    }

    std::map<std::string, std::vector<std::string>> names_of_;  ///< of each variant's configurations
};

ForeignJson t4_result(const MeasuredConfig& config) {
    ForeignJson values = ForeignJson::object();
    for (const auto& [name, value] : config.values) values[name] = json_of_value(value);
    double benchmark = 0;
    for (const double time : config.runtimes_ms) benchmark += time;
    ForeignJson measurements = ForeignJson::array();
    if (config.time_ms)
        measurements.push_back(ForeignJson{{"name", "time"}, {"value", *config.time_ms}, {"unit", "ms"}});
    if (config.predicted) measurements.push_back(ForeignJson{{"name", "predicted"}, {"value", 1}, {"unit", ""}});
    ForeignJson out = ForeignJson::object();
    if (config.timestamp != 0) out["timestamp"] = utc_text(config.timestamp);
    out["configuration"] = std::move(values);
    out["objectives"] = ForeignJson::array({"time"});
    out["times"] = ForeignJson{{"compilation_time", config.compilation_ms},
                               {"compilation", config.compilation_ms},
                               {"benchmark", benchmark},
                               {"runtimes", config.runtimes_ms},
                               {"framework", config.framework_ms},
                               {"search_algorithm", config.search_ms},
                               {"validation", config.validation_ms}};
    out["invalidity"] = config.invalidity;
    out["correctness"] = config.correctness;
    out["measurements"] = std::move(measurements);
    return out;
}

}  // namespace

Measurements measurements_of_t4(const ForeignJson& root, const std::string& file) {
    return T4Reader{root, file}.read();
}

std::string t4_text(std::span<const MeasuredConfig> configs) {
    ForeignJson results = ForeignJson::array();
    for (const MeasuredConfig& config : configs) results.push_back(t4_result(config));
    ForeignJson root = ForeignJson::object();
    root["schema_version"] = "1.0.0";
    root["metadata"] = ForeignJson{{"timeunit", "milliseconds"}};
    root["results"] = std::move(results);
    return root.dump(1, ' ', true, ForeignJson::error_handler_t::replace) + "\n";
}

}  // namespace autotune
