#include "tools/launch_scalars.h"

#include <fmt/format.h>

#include <algorithm>

#include "autotune/error.h"

namespace autotune {
namespace {

/// Whether a scalar may have that value, another than it has, in this very problem.
bool may_be(const Instance& instance, const std::string& scalar, const Value& value) {
    std::vector<std::pair<std::string, Value>> fields;
    for (const auto& [name, field_value] : instance.problem().fields) {
        const Field* field = instance.op().field(name);
        if (field && field->from.empty() && !field->from_inputs) fields.emplace_back(name, field_value);
    }
    Binding binding = instance.binding();
    binding.scalars = instance.scalars();
    for (auto& [name, held] : binding.scalars)
        if (name == scalar) held = value;
    try {
        const Instance other = Instance::make(instance.op(), fields, instance.limits(), binding);
        return other.problem() == instance.problem() && other.scalars() != instance.scalars();
    } catch (const Error&) {  // no value of this scalar
        return false;
    }
}

/// What follows from a scalar: "no_c = false".
std::string fact_of(const Instance& instance, const std::string& scalar) {
    std::string fact;
    for (const Field& field : instance.op().fields)
        if (field.from.uses(scalar))
            fact += fmt::format("{}{} = {}", fact.empty() ? "" : ", ", field.name,
                                to_text(*instance.problem().find(field.name)));
    return fact;
}

bool may_change(const Instance& instance, const Scalar& scalar) {
    std::vector<Value> others = scalar.check;
    for (const std::int64_t whole : {0, 1, 2, 3}) others.emplace_back(whole);
    return std::ranges::any_of(others, [&](const Value& other) { return may_be(instance, scalar.name, other); });
}

}  // namespace

LaunchScalars::LaunchScalars(const Instance& instance, const Config& config) : instance_{instance} {
    const std::unique_ptr<Scope> scope = instance.scope(&config);
    for (const LaunchSpec& spec : instance.op().variant(config.variant)->launches)
        if (spec.when.empty() || spec.when.evaluate_bool(*scope)) launches_.push_back(&spec);
    for (const auto& [name, now] : instance.scalars()) {
        const auto scalar = std::ranges::find(instance.op().scalars, name, &Scalar::name);
        const bool is_argument = std::ranges::any_of(launches_, [&](const LaunchSpec* launch) {
            return std::ranges::any_of(launch->arguments,
                                       [&](const ArgumentSpec& a) { return a.expression.bare_name() == name; });
        });
        std::string fact = fact_of(instance, name);
        if (is_argument && (fact.empty() || may_change(instance, *scalar)))
            parameters_.push_back({&*scalar, now, std::move(fact)});
    }
}

const ArgumentSpec& LaunchScalars::spec(std::size_t launch, std::size_t argument) const {
    return launches_.at(launch)->arguments.at(argument);
}

const ScalarParameter* LaunchScalars::parameter(std::size_t launch, std::size_t argument) const {
    const Expression& expression = spec(launch, argument).expression;
    if (expression.empty()) return nullptr;
    const auto found = std::ranges::find_if(
        parameters_, [&](const ScalarParameter& p) { return expression.bare_name() == p.scalar->name; });
    return found == parameters_.end() ? nullptr : &*found;
}

std::string LaunchScalars::words(std::size_t launch, std::size_t argument) const {
    const Expression& expression = spec(launch, argument).expression;
    if (expression.empty()) return spec(launch, argument).tensor;
    if (const auto name = expression.bare_name(); name && instance_.op().tensor(*name))
        return fmt::format("there is no {}", *name);
    std::string text = expression.text();
    for (const auto& [name, now] : instance_.scalars()) {
        if (!expression.uses(name)) continue;
        text += fmt::format("{} = {}", expression.bare_name() ? "" : ", " + name, to_text(now));
        if (const std::string fact = fact_of(instance_, name); !fact.empty()) text += fmt::format(", so that {}", fact);
    }
    return text;
}

}  // namespace autotune
