#include "tuner/interchange/measured_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "autotune/error.h"
#include "tuner/model/printable.h"

namespace autotune {
namespace {

/// Equal for values that same_value() calls the same, and for no others.
std::string meaning_of(const Value& value) {
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
    if (const auto* word = std::get_if<std::string>(&value)) return "'" + *word;
    const auto* real = std::get_if<double>(&value);
    if (real != nullptr && std::abs(*real) < 0x1p53 && std::trunc(*real) == *real)
        return std::to_string(static_cast<std::int64_t>(*real));
    return to_text(value);
}

/// Of the parameter at a place of the results' list.
Value value_of(const MeasuredConfig& config, std::size_t column, const std::string& name) {
    if (column < config.values.size() && config.values[column].first == name) return config.values[column].second;
    const auto found = std::ranges::find(config.values, name, &std::pair<std::string, Value>::first);
    return found != config.values.end() ? found->second : Value{std::string{lacked}};
}

/// The rows of a space by the values of results.
class RowFinder {
public:
    RowFinder(const Variant& variant, const Measurements& measurements, const std::string& file) {
        for (const Parameter& parameter : variant.parameters) {
            const auto found = std::ranges::find(measurements.parameters, parameter.name);
            const bool there = found != measurements.parameters.end();
            if (!there && parameter.values.size() > 1 && !measurements.configs.empty())
                throw Error{Error::Kind::usage,
                            fmt::format("{}: its configurations have no '{}', which is a parameter of '{}'", file,
                                        parameter.name, variant.name)};
            names_.push_back(there ? parameter.name : std::string{});
            column_.push_back(static_cast<std::size_t>(found - measurements.parameters.begin()));
            index_.emplace_back();
            for (std::size_t v = 0; v < parameter.values.size(); ++v)
                index_.back().emplace(meaning_of(parameter.values[v]), static_cast<std::uint16_t>(v));
        }
    }

    std::optional<Space::Row> row(const MeasuredConfig& config) const {
        Space::Row out{index_.size()};
        for (std::size_t p = 0; p < index_.size(); ++p) {
            if (names_[p].empty()) continue;  // the results do not tell its only value
            const auto found = index_[p].find(meaning_of(value_of(config, column_[p], names_[p])));
            if (found == index_[p].end()) return std::nullopt;
            out[p] = found->second;
        }
        return out;
    }

private:
    std::vector<std::string> names_;
    std::vector<std::size_t> column_;
    std::vector<std::unordered_map<std::string, std::uint16_t>> index_;
};

/// Numbers by size, booleans among them, then words.
bool before(const Value& a, const Value& b) {
    const auto number = [](const Value& value) -> std::optional<double> {
        if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1.0 : 0.0;
        if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
        if (const auto* real = std::get_if<double>(&value)) return *real;
        return std::nullopt;
    };
    const auto left = number(a), right = number(b);
    if (left && right) return *left < *right;
    if (left || right) return left.has_value();
    return std::get<std::string>(a) < std::get<std::string>(b);
}

bool timed(const MeasuredConfig& config) { return config.time_ms && *config.time_ms > 0; }

bool parts_cells(char c) { return c == ' ' || c == ',' || static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

Error no_cell(const std::string& text, std::string_view why) {
    return {Error::Kind::usage, fmt::format("'{}' cannot stand in a recorded space: {}", printable(text), why)};
}

std::string cell(const std::string& text) {
    if (text.empty()) throw no_cell(text, "it is empty");
    if (std::ranges::any_of(text, parts_cells)) throw no_cell(text, "it has a blank, a comma or a control character");
    if (text.starts_with('#')) throw no_cell(text, "a line that begins with it is none of a config");
    return text;
}

std::string column(const std::string& name) {
    static constexpr std::string_view taken[] = {"time_ms", "sd_ms", "cost_ms", "status"};
    if (std::ranges::find(taken, name) != std::end(taken)) throw no_cell(name, "a column of its own has that name");
    return cell(name);
}

/// What names a kernel or device elsewhere, in one word.
std::string one_word(std::string text) {
    std::ranges::replace_if(text, parts_cells, '_');
    return text.empty() ? "unknown" : text;
}

/// The standard deviation of single runs; empty where they are not told.
std::string spread_of(const std::vector<double>& runtimes) {
    if (runtimes.size() < 2) return {};
    double mean = 0, squares = 0;
    for (const double time : runtimes) mean += time / static_cast<double>(runtimes.size());
    for (const double time : runtimes) squares += (time - mean) * (time - mean);
    return fmt::format("{}", std::sqrt(squares / static_cast<double>(runtimes.size() - 1)));
}

std::string status_of(const MeasuredConfig& config) {
    if (timed(config)) return "ok";
    return config.invalidity == "compile" || config.invalidity == "runtime" ? config.invalidity : "failed";
}

}  // namespace

Op op_of_measurements(const Measurements& measurements) {
    if (measurements.configs.empty())
        throw Error{Error::Kind::usage, "there is no result, so the parameters of its space are not known"};
    Op op;
    op.name = measurements.kernel.empty() ? "kernel" : one_line(measurements.kernel);
    op.summary = "the space of results of another tuner";
    Variant variant;
    variant.name = op.name;
    for (std::size_t p = 0; p < measurements.parameters.size(); ++p) {
        std::unordered_map<std::string, Value> values;
        for (const MeasuredConfig& config : measurements.configs) {
            Value value = value_of(config, p, measurements.parameters[p]);
            std::string meaning = meaning_of(value);
            values.emplace(std::move(meaning), std::move(value));
        }
        Parameter parameter{.name = measurements.parameters[p], .values = {}, .fallback = {}, .about = {}};
        for (auto& [meaning, value] : values) parameter.values.push_back(std::move(value));
        std::ranges::sort(parameter.values, before);
        parameter.fallback = Expression::constant(parameter.values.front());
        variant.parameters.push_back(std::move(parameter));
    }
    op.variants.push_back(std::move(variant));
    return op;
}

MeasuredSpace measured_space(const Space& space, const Measurements& measurements, const std::string& file) {
    MeasuredSpace out;
    const RowFinder finder{*space.variants()[0].variant, measurements, file};
    for (const MeasuredConfig& config : measurements.configs) {
        const auto row = finder.row(config);
        const auto number = row ? space.number_of(0, *row) : std::nullopt;
        if (!number || config.invalidity == "constraints")
            ++out.outside;
        else if (config.invalidity == "correct" && !timed(config))
            ++out.untimed;
        else
            out.rows.push_back({*number, &config});
    }
    std::ranges::stable_sort(out.rows, {}, &MeasuredSpace::Row::number);
    const auto again = std::ranges::unique(out.rows, {}, &MeasuredSpace::Row::number);
    out.repeated = again.size();
    out.rows.erase(again.begin(), again.end());
    const auto rank = [](const MeasuredConfig& config) { return std::pair{config.predicted, *config.time_ms}; };
    for (const MeasuredSpace::Row& row : out.rows)
        if (timed(*row.measured) && (!out.fastest || rank(*row.measured) < rank(*out.fastest->measured)))
            out.fastest = row;
    return out;
}

std::string recorded_text(const Space& space, const MeasuredSpace& measured, const std::string& device) {
    const Variant& variant = *space.variants()[0].variant;
    std::string out = fmt::format("# kernel: {}\n# device: {}\n", one_word(variant.name), one_word(device));
    std::vector<std::vector<std::string>> texts;
    for (const Parameter& parameter : variant.parameters) {
        texts.emplace_back();
        out += fmt::format("# values {}:", column(parameter.name));
        std::set<std::string> written;
        for (const Value& value : parameter.values) {
            out += " " + texts.back().emplace_back(cell(to_text(value)));
            if (!written.insert(texts.back().back()).second)
                throw no_cell(texts.back().back(), fmt::format("two values of '{}' are written so", parameter.name));
        }
        out += "\n";
    }
    for (const Parameter& parameter : variant.parameters) out += parameter.name + ",";
    out += "time_ms,sd_ms,cost_ms,status\n";
    for (const MeasuredSpace::Row& row : measured.rows) {
        const MeasuredConfig& config = *row.measured;
        const Space::Row values = space.row(row.number);
        for (std::size_t p = 0; p < texts.size(); ++p) out += texts[p][values[p]] + ",";
        double cost = config.compilation_ms + config.validation_ms;
        for (const double time : config.runtimes_ms) cost += time;
        out += fmt::format("{},{},{},{}\n", timed(config) ? fmt::format("{}", *config.time_ms) : "error",
                           timed(config) ? spread_of(config.runtimes_ms) : "", cost > 0 ? fmt::format("{}", cost) : "",
                           status_of(config));
    }
    return out;
}

}  // namespace autotune
