#include "tuner/interchange/t4.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <set>
#include <unordered_map>

#include "autotune/error.h"
#include "tuner/interchange/json_text.h"

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

class ResultsReader {
public:
    ResultsReader(const ForeignJson& root, const std::string& file) : root_{root}, file_{file} {}

    Measurements read() {
        if (!root_.is_object()) refuse("", "it is no object");
        if (root_.contains("results"))
            t4();
        else if (root_.contains("cache"))
            cache();
        else
            refuse("", "it is neither T4, with results, nor a Kernel Tuner cache, with a cache");
        if (without_time_ > 0)
            out_.notes.push_back(fmt::format("{} said to be correct and without a time: taken as failed at run time",
                                             without_time_ == 1 ? std::string{"1 configuration is"}
                                                                : fmt::format("{} configurations are", without_time_)));
        return std::move(out_);
    }

private:
    [[noreturn]] void refuse(const std::string& where, const std::string& what) const {
        throw Error{Error::Kind::usage, fmt::format("{}: {}{}{}", file_, where, where.empty() ? "" : ": ", what),
                    foreign_help};
    }

    static std::string text_or_nothing(const ForeignJson& object, const char* name) {
        return object.contains(name) && object[name].is_string() ? object[name].get<std::string>() : std::string{};
    }

    /// The same of what must be a word where it is there at all.
    std::string word_or_nothing(const ForeignJson& object, const char* name, const std::string& where) const {
        if (object.contains(name) && !object[name].is_null() && !object[name].is_string())
            refuse(where, fmt::format("its {} is no word", name));
        return text_or_nothing(object, name);
    }

    double time_of(const ForeignJson& json, double unit, const std::string& where) const {
        if (!json.is_number()) refuse(where, "a time is no number");
        const double time = json.get<double>() * unit;
        // in microseconds too
        if (!std::isfinite(time * 1000) || time < 0) refuse(where, fmt::format("a time is {}", json.get<double>()));
        return time;
    }

    double time_or_nothing(const ForeignJson& object, std::initializer_list<const char*> spellings, double unit,
                           const std::string& where) const {
        for (const char* name : spellings)
            if (object.contains(name) && !object[name].is_null()) return time_of(object[name], unit, where);
        return 0;
    }

    std::vector<double> times(const ForeignJson& object, const char* name, double unit,
                              const std::string& where) const {
        std::vector<double> out;
        if (!object.contains(name) || !object[name].is_array()) return out;
        for (const ForeignJson& each : object[name]) out.push_back(time_of(each, unit, where));
        return out;
    }

    void t4() {
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
    }

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
        settle(config);
        out_.configs.push_back(std::move(config));
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
        const std::string word = text_or_nothing(*time, "unit");
        const auto own = milliseconds_of(word);
        if (!own)
            refuse(where, fmt::format("its '{}' is in '{}', and configs are compared by their time",
                                      text_or_nothing(*time, "name"), word));
        // a measurement without a unit has the file's
        config.time_ms = time_of((*time)["value"], word.empty() ? unit : *own, where);
    }

    static std::string objective_of(const ForeignJson& json) {
        if (json.contains("objectives") && json["objectives"].is_array() && !json["objectives"].empty() &&
            json["objectives"][0].is_string())
            return json["objectives"][0].get<std::string>();
        return "time";
    }

    void cache() {
        const ForeignJson& rows = root_["cache"];
        if (!rows.is_object()) refuse("cache", "it is no object");
        out_.kernel = text_or_nothing(root_, "kernel_name");
        out_.device = text_or_nothing(root_, "device_name");
        const std::string told = text_or_nothing(root_, "objective"), objective = told.empty() ? "time" : told;
        if (root_.contains("tune_params_keys") && root_["tune_params_keys"].is_array())
            for (const ForeignJson& key : root_["tune_params_keys"]) {
                if (!key.is_string()) refuse("tune_params_keys", "a name is no string");
                out_.parameters.push_back(key.get<std::string>());
            }
        if (out_.parameters.empty()) refuse("tune_params_keys", "it names no parameter");
        for (const auto& [key, row] : rows.items()) cached(key, row, objective);
    }

    void cached(const std::string& key, const ForeignJson& row, const std::string& objective) {
        const std::string where = fmt::format("cache['{}']", key.substr(0, 100));
        if (!row.is_object()) refuse(where, "it is no object");
        MeasuredConfig config;
        for (const std::string& name : out_.parameters) {
            if (!row.contains(name)) refuse(where, fmt::format("there is no '{}'", name));
            config.values.emplace_back(name, value_of_json(row[name], fmt::format("{}: {}: '{}'", file_, where, name)));
        }
        config.compilation_ms = time_or_nothing(row, {"compile_time"}, 1, where);
        config.validation_ms = time_or_nothing(row, {"verification_time"}, 1, where);
        config.search_ms = time_or_nothing(row, {"strategy_time"}, 1, where);
        config.framework_ms = time_or_nothing(row, {"framework_time"}, 1, where);
        config.runtimes_ms = times(row, "times", 1, where);
        config.timestamp = timestamp_of(text_or_nothing(row, "timestamp"));
        std::string failure = text_or_nothing(row, "__error__");
        if (failure.empty()) failure = text_or_nothing(row, objective.c_str());
        // Whatever was searched for, configs are compared by their time.
        const std::string compared = row.contains("time") ? "time" : objective;
        if (failure.empty()) failure = text_or_nothing(row, compared.c_str());
        if (!failure.empty()) {
            config.invalidity = failure == "CompilationFailedConfig" ? "compile"
                                : failure == "InvalidConfig"         ? "constraints"
                                                                     : "runtime";
        } else if (row.contains(compared) && !row[compared].is_null()) {
            // Before it wrote words, Kernel Tuner wrote 1e20 for a failure.
            config.time_ms = time_of(row[compared], 1, where);
            if (*config.time_ms >= 1e20) {
                config.time_ms.reset();
                config.invalidity = "runtime";
            }
        }
        settle(config);
        out_.configs.push_back(std::move(config));
    }

    /// JSON gives members by name, so configurations of the same parameters have them in the same order.
    void values(MeasuredConfig& config, const ForeignJson& json, const std::string& where) {
        if (!json.is_object() || json.empty()) refuse(where, "its configuration is empty or no object");
        std::string variant;
        for (const auto& [name, value] : json.items()) {
            config.values.emplace_back(name, value_of_json(value, fmt::format("{}: {}: '{}'", file_, where, name)));
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

    void settle(MeasuredConfig& config) {
        if (config.invalidity != "correct") config.time_ms.reset();
        // What was dropped early has runs and no time.
        if (config.invalidity != "correct" || config.time_ms || !config.runtimes_ms.empty()) return;
        config.invalidity = "runtime";
        ++without_time_;
    }

    static std::int64_t timestamp_of(const std::string& text) {
        std::tm when{};
        if (text.empty() || ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &when) == nullptr) {
            if (text.empty() || ::strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &when) == nullptr) return 0;
        }
        return static_cast<std::int64_t>(::timegm(&when));
    }

    const ForeignJson& root_;
    const std::string& file_;
    Measurements out_;
    std::map<std::string, std::vector<std::string>> names_of_;  ///< of each variant's configurations
    std::size_t without_time_ = 0;
};

/// A cache is appended to row by row, and closed when its tuner ends: `... },` and nothing else. The end of such a file
/// is put there; nullopt where the text does not end so.
std::optional<std::string> closed(std::string_view text) {
    const std::size_t last = text.find_last_not_of(" \t\r\n");
    if (last == std::string_view::npos || text.find("\"cache\"") == std::string_view::npos) return std::nullopt;
    if (text[last] == ',') return std::string{text.substr(0, last)} + "}}";
    if (text[last] == '{' || text[last] == '}') return std::string{text.substr(0, last + 1)} + "}}";
    return std::nullopt;
}

ForeignJson root_of(std::string_view text, const std::string& file) {
    try {
        return json_from_text(text, file);
    } catch (const Error&) {
        const auto whole = closed(text);
        if (!whole) throw;
        try {
            return json_from_text(*whole, file);
        } catch (const Error&) {  // what was wrong with the file itself is what to tell
        }
        throw;
    }
}

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

Measurements measurements_from_text(std::string_view text, const std::string& file) {
    const ForeignJson root = root_of(text, file);
    return ResultsReader{root, file}.read();
}

MeasuredConfig measured_config(const Config& config, const Outcome& outcome, std::int64_t ended) {
    MeasuredConfig out{.values = config.values,
                       .invalidity = std::string{info(outcome.ending).t4},
                       .time_ms = {},
                       .runtimes_ms = outcome.samples_us,
                       .compilation_ms = outcome.compile_ms,
                       .validation_ms = outcome.check_ms,
                       .correctness = outcome.ending == Ending::wrong_result ? 0.0 : 1.0,
                       .predicted = outcome.predicted,
                       .timestamp = ended};
    out.values.emplace(out.values.begin(), "variant", config.variant);
    for (double& time : out.runtimes_ms) time /= 1000;
    if (outcome.ok()) out.time_ms = outcome.time_us / 1000;
    return out;
}

void even_out(Measurements& measured) {
    std::unordered_map<std::string, std::size_t> place;
    measured.parameters.clear();
    for (const MeasuredConfig& config : measured.configs)
        for (const auto& [name, value] : config.values)
            if (place.emplace(name, place.size()).second) measured.parameters.push_back(name);
    for (MeasuredConfig& config : measured.configs) {
        std::vector<std::pair<std::string, Value>> values;
        for (const std::string& name : measured.parameters) values.emplace_back(name, std::string{"none"});
        for (auto& [name, value] : config.values) values[place.at(name)].second = std::move(value);
        config.values = std::move(values);
    }
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
