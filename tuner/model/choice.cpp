// Which configs may run here: objections, defaults, and configs as people write them.
#include <fmt/format.h>

#include <algorithm>

#include "tuner/model/claims.h"
#include "tuner/model/instance_data.h"
#include "tuner/model/suggest.h"

namespace autotune {
namespace {

std::vector<std::string> texts_of(const std::vector<Value>& values) {
    std::vector<std::string> out;
    for (const Value& value : values) out.push_back(to_text(value));
    return out;
}

/// The declared value that a value means; nullptr: none.
const Value* declared(const Parameter& parameter, const Value& value) {
    const auto found = std::ranges::find_if(parameter.values, [&](const Value& v) { return same_value(v, value); });
    return found == parameter.values.end() ? nullptr : &*found;
}

/// `BM=96 is not a value of BM (64 and 128)`; nullopt: each parameter has a declared value.
std::optional<std::string> undeclared(const Variant& variant, const Config& config) {
    for (const auto& [name, value] : config.values) {
        const auto parameter = std::ranges::find(variant.parameters, name, &Parameter::name);
        if (parameter == variant.parameters.end())
            return fmt::format("variant '{}' has no parameter '{}'", variant.name, name);
        // Exactly equal: a config that only means the same has another hash, so it is not this one.
        if (std::ranges::find(parameter->values, value) == parameter->values.end())
            return fmt::format("{}={} is not a value of {} ({})", name, to_text(value), name,
                               enumerated(texts_of(parameter->values)));
    }
    for (const Parameter& parameter : variant.parameters)
        if (std::ranges::count(config.values, parameter.name, &NamedValues::value_type::first) != 1)
            return fmt::format("{} is not given just once", parameter.name);
    return std::nullopt;
}

std::optional<std::string> unmet_needs(const Instance::Data& data, const Variant& variant) {
    if (variant.needs.empty()) return std::nullopt;
    return broken_claim(Constraint{fmt::format("'{}' is not for this problem and device", variant.name), variant.needs},
                        InstanceScope{data});
}

/// The defaults, or why there are none.
std::optional<std::string> defaults(const Instance::Data& data, const Variant& variant, Config& config) {
    if (auto unmet = unmet_needs(data, variant)) return unmet;
    config = {.variant = variant.name, .values = {}};
    for (const Parameter& parameter : variant.parameters) {
        Value value = parameter.values.empty() ? Value{} : parameter.values.front();
        try {
            if (!parameter.fallback.empty()) value = parameter.fallback.evaluate(InstanceScope{data, &config});
        } catch (const EvaluationError& error) {
            return fmt::format("the default of {} has no value: {}", parameter.name, error.what());
        }
        const Value* known = declared(parameter, value);
        config.values.emplace_back(parameter.name, known ? *known : value);
    }
    return std::nullopt;
}

std::vector<std::string> variant_names(const Op& op) {
    std::vector<std::string> names;
    for (const Variant& variant : op.variants) names.push_back(variant.name);
    return names;
}

const Variant& variant_meant(const Op& op, const Config& config) {
    const std::vector<std::string> names = variant_names(op);
    if (!config.variant.empty()) {
        if (const Variant* variant = op.variant(config.variant)) return *variant;
        throw Error{Error::Kind::usage, fmt::format("there is no variant '{}' in '{}'{}", config.variant, op.name,
                                                    remedy(config.variant, names, "variants"))};
    }
    for (const Variant& variant : op.variants)
        if (std::ranges::all_of(config.values, [&](const auto& entry) {
                return std::ranges::find(variant.parameters, entry.first, &Parameter::name) != variant.parameters.end();
            }))
            return variant;
    throw Error{Error::Kind::usage,
                fmt::format("no variant of '{}' has all parameters of the config '{}'; the variants are {}", op.name,
                            config.text(), enumerated(names))};
}

}  // namespace

std::optional<std::string> Instance::objection(const Config& config) const {
    const Variant* variant = op().variant(config.variant);
    if (variant == nullptr) return fmt::format("there is no variant '{}' in '{}'", config.variant, op().name);
    if (auto reason = undeclared(*variant, config)) return reason;
    if (auto reason = unmet_needs(*data_, *variant)) return reason;
    const InstanceScope scope{*data_, &config, 1};
    for (const Claim& claim : claims_of(*variant))
        if (auto reason = broken_claim(claim, scope, limits())) return reason;
    return std::nullopt;
}

Config Instance::default_config() const {
    std::string reasons;
    for (const Variant& variant : op().variants) {
        Config config;
        std::optional<std::string> reason = defaults(*data_, variant, config);
        if (!reason) reason = objection(config);
        if (!reason) return config;
        reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", variant.name, *reason);
    }
    throw Error{Error::Kind::nothing_found,
                fmt::format("no variant of '{}' runs at its defaults for {} on capability {}: {}", op().name,
                            problem().text(), limits().cc, reasons)};
}

std::optional<Config> Instance::defaults_of(const Variant& variant) const {
    Config config;
    return defaults(*data_, variant, config) ? std::nullopt : std::optional{std::move(config)};
}

Config Instance::resolve(const Config& config) const {
    const Variant& variant = variant_meant(op(), config);
    std::vector<std::string> names;
    for (const Parameter& parameter : variant.parameters) names.push_back(parameter.name);
    for (const auto& entry : config.values)
        if (std::ranges::find(names, entry.first) == names.end())
            throw Error{Error::Kind::usage,
                        fmt::format("variant '{}' of '{}' has no parameter '{}'{}", variant.name, op().name,
                                    entry.first, remedy(entry.first, names, "parameters"))};
    Config fallbacks;
    const bool has_fallbacks = !defaults(*data_, variant, fallbacks);
    Config out{.variant = variant.name, .values = {}};
    for (const Parameter& parameter : variant.parameters) {
        const Value* value = find_value(config.values, parameter.name);
        if (value == nullptr && has_fallbacks) value = find_value(fallbacks.values, parameter.name);
        if (value == nullptr)
            throw Error{Error::Kind::usage, fmt::format("{} is not given and variant '{}' has no defaults here",
                                                        parameter.name, variant.name)};
        const Value* known = declared(parameter, *value);
        if (known == nullptr)
            throw Error{Error::Kind::usage,
                        fmt::format("{}={} is not a value of {} ({})", parameter.name, to_text(*value), parameter.name,
                                    enumerated(texts_of(parameter.values)))};
        out.values.emplace_back(parameter.name, *known);
    }
    return out;
}

}  // namespace autotune
