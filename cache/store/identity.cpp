#include "cache/store/identity.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <type_traits>

#include "cache/store/json.h"
#include "tuner/model/hashing.h"

namespace autotune {

namespace {

/// Part of every binary's key: raised when the way keys are made changes.
constexpr int binary_key_version = 1;

/// Adds any whole number or text, and chains.
class Hasher {
public:
    template <class T>
    Hasher& add(const T& value) {
        if constexpr (std::is_integral_v<T>)
            bytes_.add(static_cast<std::uint64_t>(value));
        else
            bytes_.add(std::string_view{value});
        return *this;
    }
    std::string hex() const { return bytes_.sha256(); }

private:
    CanonicalBytes bytes_;
};

void add(Hasher& hasher, const std::vector<Expression>& expressions) {
    hasher.add(static_cast<std::int64_t>(expressions.size()));
    for (const Expression& expression : expressions) hasher.add(expression.text());
}

void add(Hasher& hasher, const LaunchSpec& launch) {
    hasher.add(launch.entry).add(launch.source).add(launch.when.text()).add(launch.repeat.text());
    add(hasher, launch.grid);
    add(hasher, launch.block);
    add(hasher, launch.cluster);
    hasher.add(launch.shared.text()).add(launch.cooperative);
    for (const ArgumentSpec& argument : launch.arguments) {
        hasher.add(static_cast<std::int64_t>(argument.kind))
            .add(argument.expression.text())
            .add(argument.tensor)
            .add(argument.swizzle);
        add(hasher, argument.box);
    }
}

/// The variant's own source and all headers of the op: which of them it includes only a compiler knows.
std::string source_hash(const Op& op, const Variant& variant) {
    Hasher hasher;
    const auto is_named = [&](const std::string& file) {
        if (file == variant.source) return true;
        for (const std::string& include : variant.include)
            if (file == include) return true;
        for (const LaunchSpec& launch : variant.launches)
            if (file == launch.source) return true;
        return file.ends_with(".cuh") || file.ends_with(".h") || file.ends_with(".hpp");
    };
    for (const auto& [file, text] : op.files)
        if (is_named(file)) hasher.add(file).add(text);
    hasher.add(variant.source).add(variant.entry).add(variant.arch).add(variant.parameters_as_template);
    for (const auto& [macro, expression] : variant.define) hasher.add(macro).add(expression.text());
    for (const std::string& option : variant.options) hasher.add(option);
    for (const LaunchSpec& launch : variant.launches) add(hasher, launch);
    for (const Symbol& symbol : variant.symbols) hasher.add(symbol.name).add(symbol.from).add(symbol.each_launch);
    for (const Scratch& scratch : variant.scratch) {
        hasher.add(scratch.name).add(scratch.dtype.text()).add(scratch.when.text()).add(scratch.zeroed);
        add(hasher, scratch.shape);
    }
    for (const auto& [name, expression] : op.lets) hasher.add(name).add(expression.text());
    return hasher.hex();
}

std::string space_hash(const Variant& variant) {
    Hasher hasher;
    hasher.add(variant.needs.text());
    for (const Parameter& parameter : variant.parameters) {
        hasher.add(parameter.name).add(static_cast<std::int64_t>(parameter.values.size()));
        for (const Value& value : parameter.values)
            hasher.add(static_cast<std::int64_t>(value.index())).add(to_text(value));
    }
    for (const Constraint& constraint : variant.constraints) hasher.add(constraint.holds.text());
    hasher.add(variant.spill_bytes.value_or(-1)).add(variant.pipelined);
    return hasher.hex();
}

std::string manifest(const Variant& variant) {
    nlohmann::json parameters = nlohmann::json::array(), constraints = nlohmann::json::array();
    for (const Parameter& parameter : variant.parameters) {
        nlohmann::json values = nlohmann::json::array();
        for (const Value& value : parameter.values) values.push_back(to_json(value));
        parameters.push_back({{"name", parameter.name}, {"values", values}});
    }
    for (const Constraint& constraint : variant.constraints)
        constraints.push_back({{"claim", constraint.claim}, {"holds", constraint.holds.text()}});
    const nlohmann::json out{{"source", variant.source},
                             {"needs", variant.needs.text()},
                             {"parameters", parameters},
                             {"constraints", constraints}};
    return out.dump();
}

}  // namespace

std::string Environment::hash() const {
    return Hasher{}
        .add(nvrtc_major)
        .add(nvrtc_minor)
        .add(driver)
        .add(runtime)
        .add(emulator)
        .add(tool_version)
        .add(os)
        .hex();
}

std::string TemplateIdentity::hash() const {
    return Hasher{}.add(op).add(variant).add(source_hash).add(space_hash).add(abi).hex();
}

TemplateIdentity template_of(const Op& op, const Variant& variant) {
    return {.op = op.name,
            .variant = variant.name,
            .source_hash = source_hash(op, variant),
            .space_hash = space_hash(variant),
            .manifest = manifest(variant)};
}

std::vector<TemplateIdentity> templates_of(const Op& op) {
    std::vector<TemplateIdentity> templates;
    for (const Variant& variant : op.variants) templates.push_back(template_of(op, variant));
    return templates;
}

std::string ProblemIdentity::text() const {
    std::string text;
    for (const auto& [name, value] : fields) {
        if (!text.empty()) text += ' ';
        text += name + '=' + to_text(value);
    }
    return text;
}

ProblemIdentity problem_of(const Instance& instance) {
    ProblemIdentity problem{.op = instance.op().name, .key = instance.key(), .json = instance.key_json(), .fields = {}};
    for (const auto& [name, value] : instance.problem().fields) {
        const Field* field = instance.op().field(name);
        if (!field || field->key) problem.fields.emplace_back(name, value);
    }
    return problem;
}

std::string source_key(const SourceSpec& source, std::span<const std::string_view> fixed_options,
                       std::string_view arch) {
    Hasher hasher;
    hasher.add(binary_key_version).add(source.hash()).add(static_cast<std::int64_t>(fixed_options.size()));
    for (const std::string_view option : fixed_options) hasher.add(option);
    return hasher.add(arch).hex();
}

std::string binary_key(const SourceSpec& source, std::span<const std::string_view> fixed_options, std::string_view arch,
                       int nvrtc_major, int nvrtc_minor) {
    return fmt::format("{}-{}.{}", source_key(source, fixed_options, arch), nvrtc_major, nvrtc_minor);
}

}  // namespace autotune
