#include "tuner/interchange/measurements_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "autotune/error.h"

namespace autotune {

void MeasurementsReader::refuse(const std::string& where, const std::string& what) const {
    throw Error{Error::Kind::usage, fmt::format("{}: {}{}{}", file_, where, where.empty() ? "" : ": ", what),
                foreign_help};
}

std::string MeasurementsReader::text_or_nothing(const ForeignJson& object, const char* name) {
    return object.contains(name) && object[name].is_string() ? object[name].get<std::string>() : std::string{};
}

std::string MeasurementsReader::word_or_nothing(const ForeignJson& object, const char* name,
                                                const std::string& where) const {
    if (object.contains(name) && !object[name].is_null() && !object[name].is_string())
        refuse(where, fmt::format("its {} is no word", name));
    return text_or_nothing(object, name);
}

double MeasurementsReader::time_of(const ForeignJson& json, double unit, const std::string& where) const {
    if (!json.is_number()) refuse(where, "a time is no number");
    const double time = json.get<double>() * unit;
    // in microseconds too
    if (!std::isfinite(time * 1000) || time < 0) refuse(where, fmt::format("a time is {}", json.get<double>()));
    return time;
}

double MeasurementsReader::time_or_nothing(const ForeignJson& object, std::initializer_list<const char*> spellings,
                                           double unit, const std::string& where) const {
    for (const char* name : spellings)
        if (object.contains(name) && !object[name].is_null()) return time_of(object[name], unit, where);
    return 0;
}

std::vector<double> MeasurementsReader::times(const ForeignJson& object, const char* name, double unit,
                                              const std::string& where) const {
    std::vector<double> out;
    if (!object.contains(name) || !object[name].is_array()) return out;
    for (const ForeignJson& each : object[name]) out.push_back(time_of(each, unit, where));
    return out;
}

Value MeasurementsReader::value_of(const ForeignJson& json, const std::string& where, const std::string& name) const {
    return value_of_json(json, fmt::format("{}: {}: '{}'", file_, where, name));
}

std::int64_t MeasurementsReader::timestamp_of(const std::string& text) {
    std::tm when{};
    if (text.empty() || ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &when) == nullptr) {
        if (text.empty() || ::strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &when) == nullptr) return 0;
    }
    return static_cast<std::int64_t>(::timegm(&when));
}

void MeasurementsReader::add(MeasuredConfig config) {
    if (config.invalidity != "correct") config.time_ms.reset();
    // What was dropped early has runs and no time.
    if (config.invalidity == "correct" && !config.time_ms && config.runtimes_ms.empty()) {
        config.invalidity = "runtime";
        ++without_time_;
    }
    out_.configs.push_back(std::move(config));
}

Measurements MeasurementsReader::finish() {
    if (without_time_ > 0)
        out_.notes.push_back(fmt::format("{} said to be correct and without a time: taken as failed at run time",
                                         without_time_ == 1 ? std::string{"1 configuration is"}
                                                            : fmt::format("{} configurations are", without_time_)));
    return std::move(out_);
}

}  // namespace autotune
