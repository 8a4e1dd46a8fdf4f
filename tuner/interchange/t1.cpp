#include "tuner/interchange/t1.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "autotune/error.h"
#include "tuner/interchange/json_text.h"
#include "tuner/interchange/python_text.h"
#include "tuner/model/printable.h"
#include "tuner/model/suggest.h"

namespace autotune {
namespace {

constexpr std::size_t parameters_at_most = 64, conditions_at_most = 4096;
/// A byte of a condition takes some hundred of memory.
constexpr std::size_t condition_bytes_at_most = std::size_t{1} << 20;

/// Parameters with the values of one config, valid or not.
class DrawnConfig final : public Scope {
public:
    /// number  of the draw: the first values, the last ones, then some of each, the same in each run
    DrawnConfig(std::span<const Parameter> parameters, std::size_t number) {
        std::uint64_t state = number;
        for (const Parameter& parameter : parameters) {
            const std::size_t count = parameter.values.size();
            state = state * 6364136223846793005u + 1442695040888963407u;
            const std::size_t value = number == 0 ? 0 : number == 1 ? count - 1 : (state >> 33) % count;
            values_.emplace(parameter.name, &parameter.values[value]);
        }
    }
    const Value* find(std::string_view name) const override {
        const auto found = values_.find(name);
        return found == values_.end() ? nullptr : found->second;
    }

private:
    std::map<std::string_view, const Value*> values_;
};

class T1Reader {
public:
    T1Reader(const ForeignJson& root, const std::string& file) : root_{root}, file_{file} {}

    T1 read() {
        if (!root_.is_object()) refuse("", "it is no object");
        const ForeignJson& space = member(root_, "ConfigurationSpace", "");
        const ForeignJson& parameters = member(space, "TuningParameters", "ConfigurationSpace");
        if (!parameters.is_array() || parameters.empty()) refuse("TuningParameters", "it lists no parameter");
        if (parameters.size() > parameters_at_most)
            refuse("TuningParameters",
                   fmt::format("it lists {}, and at most {} are read", parameters.size(), parameters_at_most));
        for (std::size_t i = 0; i < parameters.size(); ++i) parameter(parameters[i], i);
        if (space.contains("Conditions")) {
            const ForeignJson& conditions = space["Conditions"];
            if (!conditions.is_array()) refuse("Conditions", "it is no list");
            if (conditions.size() > conditions_at_most)
                refuse("Conditions",
                       fmt::format("it lists {}, and at most {} are read", conditions.size(), conditions_at_most));
            for (std::size_t i = 0; i < conditions.size(); ++i) condition(conditions[i], i);
        }
        note_what_is_passed_over(space);
        if (root_.contains("KernelSpecification") && root_["KernelSpecification"].is_object()) {
            const ForeignJson& kernel = root_["KernelSpecification"];
            out_.kernel = one_line(text_or_nothing(kernel, "KernelName"));
            out_.source = text_or_nothing(kernel, "KernelFile");
            out_.language = text_or_nothing(kernel, "Language");
        } else {
            out_.notes.push_back("there is no KernelSpecification: the space has no kernel");
        }
        note_what_has_no_value();
        return std::move(out_);
    }

private:
    [[noreturn]] void refuse(const std::string& where, const std::string& what) const {
        throw Error{Error::Kind::usage, fmt::format("{}: {}{}{}", file_, where, where.empty() ? "" : ": ", what),
                    foreign_help};
    }

    const ForeignJson& member(const ForeignJson& object, const char* name, const std::string& where) const {
        if (!object.is_object() || !object.contains(name)) refuse(where, fmt::format("there is no {}", name));
        return object[name];
    }

    static std::string text_or_nothing(const ForeignJson& object, const char* name) {
        return object.contains(name) && object[name].is_string() ? object[name].get<std::string>() : std::string{};
    }

    /// Conditions by another name would leave every config valid.
    void note_what_is_passed_over(const ForeignJson& space) {
        constexpr std::size_t notes_at_most = 5;
        std::size_t noted = 0;
        for (const auto& [name, value] : space.items())
            if (name != "TuningParameters" && name != "Conditions" && noted++ < notes_at_most)
                out_.notes.push_back(
                    fmt::format("ConfigurationSpace: '{}' is passed over: TuningParameters and Conditions are read",
                                one_line(name.substr(0, 60))));
    }

    void parameter(const ForeignJson& json, std::size_t i) {
        const std::string numbered = fmt::format("TuningParameters[{}]", i);
        const ForeignJson& name = member(json, "Name", numbered);
        if (!name.is_string() || !is_word(name.get<std::string>())) refuse(numbered, "its Name is no word");
        static constexpr std::string_view taken[] = {"and", "or",   "not",   "in",   "if",   "else",
                                                     "for", "true", "false", "True", "False"};
        if (std::ranges::find(taken, name.get<std::string>()) != std::end(taken))
            refuse(numbered, fmt::format("'{}' means something else in conditions, and names no parameter",
                                         name.get<std::string>()));
        Parameter parameter{.name = name.get<std::string>(), .values = {}, .fallback = {}, .about = {}};
        const std::string where = fmt::format("parameter '{}'", parameter.name);
        if (std::ranges::find(out_.parameters, parameter.name, &Parameter::name) != out_.parameters.end())
            refuse(where, "it is there twice");
        const std::string type = text_or_nothing(json, "Type");
        std::vector<Value> values = listed(member(json, "Values", where), where);
        std::set<Value> seen;
        for (Value& value : values) {
            value = typed(std::move(value), type, where);
            if (seen.insert(meant(value)).second) parameter.values.push_back(std::move(value));
        }
        if (parameter.values.empty()) refuse(where, "it has no value");
        if (json.contains("Default")) {
            std::vector<Value> wanted = defaults_of(json["Default"]);
            if (type == "string" && !wanted.empty()) wanted.emplace_back(to_text(wanted.front()));
            const auto found = std::ranges::find_if(parameter.values, [&](const Value& value) {
                return std::ranges::any_of(wanted, [&](const Value& each) { return same_value(value, each); });
            });
            if (found != parameter.values.end())
                parameter.fallback = Expression::constant(*found);
            else
                out_.notes.push_back(fmt::format("the default {} of '{}' is none of its values",
                                                 wanted.empty() ? "there is" : to_text(wanted.front()),
                                                 parameter.name));
        }
        out_.parameters.push_back(std::move(parameter));
    }

    /// Equal for values that mean the same: 1, 1.0 and true.
    static Value meant(const Value& value) {
        if (const auto* flag = std::get_if<bool>(&value)) return std::int64_t{*flag};
        const auto* real = std::get_if<double>(&value);
        if (real != nullptr && std::abs(*real) < 0x1p53 && std::trunc(*real) == *real)
            return static_cast<std::int64_t>(*real);
        return value;
    }

    static bool is_word(const std::string& name) {
        return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
               std::ranges::all_of(name,
                                   [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
    }

    std::vector<Value> listed(const ForeignJson& json, const std::string& where) const {
        std::vector<Value> out;
        if (json.is_array()) {
            if (json.size() > 65535) refuse(where, "it has more than 65535 values");
            for (const ForeignJson& each : json) out.push_back(value_of_json(each, where_in_file(where)));
            return out;
        }
        if (!json.is_string()) refuse(where, "its Values are neither a list nor one in a string");
        const std::string text = json.get<std::string>();
        try {
            return values_from_python(text);
        } catch (const ParseError& error) {
            refuse(where, misread("Values", text, error));
        }
    }

    std::string where_in_file(const std::string& where) const { return fmt::format("{}: {}", file_, where); }

    static std::string misread(std::string_view what, const std::string& text, const ParseError& error) {
        return fmt::format("its {} '{}{}' cannot be read: {} at column {}", what, one_line(text.substr(0, 200)),
                           text.size() > 200 ? " ..." : "", error.what(), error.offset() + 1);
    }

    /// A default is a value, or one in a string, or the only one of a list; empty: none of these. What stands in a
    /// string may be that word, or a value as Python or we write it.
    static std::vector<Value> defaults_of(const ForeignJson& json) {
        if (json.is_array() && json.size() == 1 && !json[0].is_array()) return defaults_of(json[0]);
        if (json.is_string()) {
            const std::string text = json.get<std::string>();
            std::vector<Value> out{text, value_from_text(text)};
            try {
                const std::vector<Value> listed = values_from_python("[" + text + "]");
                if (listed.size() == 1) out.push_back(listed.front());
            } catch (const ParseError&) {  // then it is that word
            }
            return out;
        }
        if (json.is_boolean()) return {json.get<bool>()};
        if (json.is_number_float()) return {json.get<double>()};
        if (json.is_number_integer() && json <= INT64_MAX) return {json.get<std::int64_t>()};
        return {};
    }

    Value typed(Value value, const std::string& type, const std::string& where) const {
        if (type == "string") {
            if (!std::holds_alternative<std::string>(value)) value = to_text(value);
        } else if (std::holds_alternative<std::string>(value)) {
            if (type.empty()) return value;
            refuse(where, fmt::format("'{}' is a word, and its Type is {}", to_text(value), type));
        } else if (type == "bool") {
            if (!same_value(value, true) && !same_value(value, false))
                refuse(where, fmt::format("{} is neither true nor false", to_text(value)));
            value = same_value(value, true);
        } else if (type == "int" || type == "uint") {
            if (const auto* flag = std::get_if<bool>(&value)) value = std::int64_t{*flag};
            if (const auto* real = std::get_if<double>(&value)) {
                if (!(std::abs(*real) < 0x1p53) || static_cast<double>(static_cast<std::int64_t>(*real)) != *real)
                    refuse(where, fmt::format("{} is no integer, and its Type is {}", to_text(value), type));
                value = static_cast<std::int64_t>(*real);
            }
            if (type == "uint" && std::get<std::int64_t>(value) < 0)
                refuse(where, fmt::format("{} is below 0, and its Type is uint", to_text(value)));
        }
        return value;
    }

    void condition(const ForeignJson& json, std::size_t i) {
        const std::string where = fmt::format("Conditions[{}]", i);
        const ForeignJson& text = member(json, "Expression", where);
        if (!text.is_string()) refuse(where, "its Expression is no string");
        const std::string python = text.get<std::string>();
        condition_bytes_ += python.size();
        if (condition_bytes_ > condition_bytes_at_most)
            refuse(where, fmt::format("with it the Expressions have more than {} bytes", condition_bytes_at_most));
        Constraint out{.claim = one_line(python.substr(0, 200)), .holds = {}};
        try {
            out.holds = expression_from_python(python);
        } catch (const ParseError& error) {
            refuse(where, misread("Expression", python, error));
        }
        std::vector<std::string> names;
        for (const Parameter& parameter : out_.parameters) names.push_back(parameter.name);
        for (const std::string& name : out.holds.names())
            if (std::ranges::find(names, name) == names.end())
                refuse(where,
                       fmt::format("'{}' in '{}' is no parameter{}", name, out.claim, did_you_mean(name, names)));
        if (!out.holds.tensors().empty())
            refuse(where, fmt::format("'{}' asks for a tensor, and there is none", out.claim));
        out_.conditions.push_back(std::move(out));
    }

    /// In Python such a condition ends the program, or it has integers of any size; here the config is not valid, which
    /// somebody who counts on his condition has to know. Some configs are looked at, so that it takes no time.
    void note_what_has_no_value() {
        constexpr std::size_t draws = 64, notes_at_most = 5;
        std::size_t noted = 0;
        std::vector<DrawnConfig> drawn;
        for (std::size_t i = 0; i < draws; ++i) drawn.emplace_back(out_.parameters, i);
        for (const Constraint& condition : out_.conditions) {
            if (noted == notes_at_most) return;
            for (const DrawnConfig& config : drawn) try {
                    condition.holds.evaluate_bool(config);
                } catch (const EvaluationError& error) {
                    std::string where;
                    for (const std::string& name : condition.holds.names())
                        where +=
                            fmt::format("{}{}={}", where.empty() ? " where " : " ", name, to_text(*config.find(name)));
                    out_.notes.push_back(fmt::format("'{}' has no value{}, which is then not valid: {}",
                                                     condition.claim, where, error.what()));
                    ++noted;
                    break;
                }
        }
    }

    const ForeignJson& root_;
    const std::string& file_;
    std::size_t condition_bytes_ = 0;
    T1 out_;
};

}  // namespace

T1 t1_from_text(std::string_view text, const std::string& file) {
    const ForeignJson root = json_from_text(text, file);
    return T1Reader{root, file}.read();
}

Op op_of_t1(const T1& t1) {
    Op op;
    op.name = t1.kernel.empty() ? "kernel" : t1.kernel;
    op.summary = fmt::format("the space of {}", t1.source.empty() ? op.name : t1.source);
    Variant variant;
    variant.name = op.name;
    variant.parameters = t1.parameters;
    for (Parameter& parameter : variant.parameters)
        if (parameter.fallback.empty()) parameter.fallback = Expression::constant(parameter.values.front());
    variant.constraints = t1.conditions;
    op.variants.push_back(std::move(variant));
    return op;
}

}  // namespace autotune
