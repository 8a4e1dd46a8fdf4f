#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tuner/model/hashing.h"
#include "tuner/model/instance_data.h"
#include "tuner/model/template_text.h"

namespace autotune {
namespace {

bool is_word(std::string_view text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !text.empty() && letter(text[0]) &&
           std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == ':'; });
}

/// The files that a text includes by `#include "..."` or `<...>`, whether or not a condition leaves the line out.
std::vector<std::string> included(std::string_view text) {
    std::vector<std::string> out;
    const auto skip = [](std::string_view line, std::string_view what) {
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        if (!line.starts_with(what)) return std::string_view{};
        line.remove_prefix(what.size());
        return line;
    };
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view rest = skip(skip(text.substr(0, end), "#"), "include");
        text.remove_prefix(std::min(end + 1, text.size()));
        rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
        if (rest.empty() || (rest[0] != '"' && rest[0] != '<')) continue;
        const std::size_t close = rest.find(rest[0] == '"' ? '"' : '>', 1);
        if (close != std::string_view::npos) out.emplace_back(rest.substr(1, close - 1));
    }
    return out;
}

/// The op's headers that a source needs, with those they need in turn.
std::vector<std::pair<std::string, std::string>> headers_of(const Op& op, std::string_view text,
                                                            const std::vector<std::string>& always) {
    std::map<std::string, std::string> found;
    std::vector<std::string> wanted = included(text);
    wanted.insert(wanted.end(), always.begin(), always.end());
    while (!wanted.empty()) {
        const std::string name = std::move(wanted.back());
        wanted.pop_back();
        const auto file = op.files.find(name);
        if (file == op.files.end() || !found.emplace(name, file->second).second)
            continue;  // the toolkit's own, or known
        for (std::string& next : included(file->second)) wanted.push_back(std::move(next));
    }
    return {found.begin(), found.end()};
}

using Defines = std::vector<std::pair<std::string, std::string>>;

/// Of `define`: problem fields that become macros. A text never reaches a compiler.
void add_defines(const Instance::Data& data, const std::vector<std::pair<std::string, Expression>>& define,
                 const Scope& scope, Defines& out) {
    for (const auto& [name, expression] : define) {
        for (const std::string& used : expression.names())
            if (const Field* field = data.op->field(used); field && field->kind == Field::Kind::text)
                throw EvaluationError{
                    fmt::format("the macro '{}' uses the text '{}', which may not reach a compiler", name, used)};
        out.emplace_back(name, pasted(Value{expression.evaluate(scope)}, true));
    }
}

const std::string& file_text(const Op& op, const std::string& name) {
    const auto file = op.files.find(name);
    if (file != op.files.end()) return file->second;
    throw Error{Error::Kind::usage,
                fmt::format("'{}' names the source '{}', which is not among its files", op.name, name)};
}

/// One SourceSpec a distinct source, with the entries that launches take from it.
std::vector<SourceSpec> collected(const Op& op, const std::vector<Launch>& launches, const SourceSpec& common,
                                  const std::vector<std::string>& include) {
    std::vector<SourceSpec> out;
    for (const Launch& launch : launches) {
        auto spec = std::ranges::find(out, launch.source, &SourceSpec::source);
        if (spec == out.end()) {
            out.push_back(common);
            spec = out.end() - 1;
            spec->source = launch.source;
            spec->text = file_text(op, launch.source);
            spec->headers = headers_of(op, spec->text, include);
        }
        if (std::ranges::find(spec->entries, launch.entry) == spec->entries.end())
            spec->entries.push_back(launch.entry);
    }
    return out;
}

}  // namespace

const Variant& variant_of(const Instance::Data& data, const Config& config) {
    if (const Variant* variant = data.op->variant(config.variant)) return *variant;
    throw Error{Error::Kind::usage, fmt::format("there is no variant '{}' in '{}'", config.variant, data.op->name)};
}

std::string pasted(const Value& value, bool dtypes_as_c) {
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
    const auto* word = std::get_if<std::string>(&value);
    if (word == nullptr) return to_text(value);
    if (const auto dtype = dtype_named(*word); dtype && dtypes_as_c) return std::string{info(*dtype).c_name};
    if (is_word(*word)) return *word;
    throw EvaluationError{
        fmt::format("'{}' is no word that may be pasted into a source: [A-Za-z_][A-Za-z0-9_:]*", *word)};
}

std::string entry_text(const Variant& variant, std::string_view entry, const Config& config) {
    if (!variant.parameters_as_template) return std::string{entry};
    std::string out;
    while (!entry.empty()) {
        const std::size_t open = std::min(entry.find('{'), entry.size());
        out += entry.substr(0, open);
        entry.remove_prefix(open);
        if (entry.empty()) break;
        const std::size_t close = entry.find('}');
        if (close == std::string_view::npos)
            throw EvaluationError{fmt::format("the entry '{}' does not close a brace", variant.entry)};
        const std::string name{entry.substr(1, close - 1)};
        const Value* value = find_value(config.values, name);
        if (value == nullptr)
            throw EvaluationError{fmt::format("the entry '{}' names no parameter by {{{}}}", variant.entry, name)};
        // As C++ has it: a flag of a template is a bool, not a macro's 1 or 0.
        out += std::holds_alternative<bool>(*value) ? to_text(*value) : pasted(*value, false);
        entry.remove_prefix(close + 1);
    }
    return out;
}

std::vector<SourceSpec> Instance::sources(const Config& config) const {
    const Variant& variant = variant_of(*data_, config);
    SourceSpec common;
    common.options = variant.options;
    common.arch = variant.arch;
    valued(op(), fmt::format("the source of '{}'", config.text()), [&] {
        add_defines(*data_, variant.define, InstanceScope{*data_, &config}, common.defines);
        if (!variant.parameters_as_template)
            for (const auto& [name, value] : config.values) common.defines.emplace_back(name, pasted(value, false));
        return true;
    });
    std::ranges::sort(common.defines);
    return collected(op(), launches(config, 1).launches, common, variant.include);
}

std::vector<SourceSpec> Instance::reference_sources() const {
    SourceSpec common;
    valued(op(), "the source of the device reference", [&] {
        add_defines(*data_, op().reference.define, InstanceScope{*data_}, common.defines);
        return true;
    });
    std::ranges::sort(common.defines);
    return collected(op(), reference_launches().launches, common, {});
}

std::string SourceSpec::hash() const {
    CanonicalBytes bytes;
    bytes.add(source).add(text).add(arch);
    for (const auto* pairs : {&headers, &defines}) {
        bytes.add(std::uint64_t{pairs->size()});
        for (const auto& [name, value] : *pairs) bytes.add(name).add(value);
    }
    for (const auto* list : {&options, &entries}) {
        bytes.add(std::uint64_t{list->size()});
        for (const std::string& item : *list) bytes.add(item);
    }
    return bytes.sha256();
}

}  // namespace autotune
