#include "tuner/interchange/measurements.h"

#include <fmt/format.h>

#include <unordered_map>

#include "autotune/error.h"
#include "tuner/interchange/measured_space.h"
#include "tuner/interchange/measurements_reader.h"

namespace autotune {
namespace {

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

}  // namespace

Measurements measurements_from_text(std::string_view text, const std::string& file) {
    const ForeignJson root = root_of(text, file);
    const auto refuse = [&](const char* what) {
        throw Error{Error::Kind::usage, fmt::format("{}: {}", file, what), foreign_help};
    };
    if (!root.is_object()) refuse("it is no object");
    if (root.contains("results")) return measurements_of_t4(root, file);
    if (!root.contains("cache")) refuse("it is neither T4, with results, nor a Kernel Tuner cache, with a cache");
    return measurements_of_kernel_tuner_cache(root, file);
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
        for (const std::string& name : measured.parameters) values.emplace_back(name, std::string{lacked});
        for (auto& [name, value] : config.values) values[place.at(name)].second = std::move(value);
        config.values = std::move(values);
    }
}

}  // namespace autotune
