#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "tuner/loader/builder.h"
#include "tuner/loader/compiler_option.h"
#include "tuner/model/argument.h"
#include "tuner/model/evaluator.h"
#include "tuner/model/suggest.h"

namespace autotune {
namespace {

constexpr std::size_t most_values = 4096;
constexpr std::size_t most_parameters = 64;
constexpr unsigned device_uses = use_field | use_let | use_limit | use_align;

/// Words that a macro would take from the language.
constexpr auto reserved = std::to_array<std::string_view>({
    "alignas",  "alignof",  "asm",       "auto",     "bool",     "break",     "case",     "catch",    "char",
    "class",    "const",    "constexpr", "continue", "decltype", "default",   "defined",  "delete",   "do",
    "double",   "else",     "enum",      "explicit", "extern",   "float",     "for",      "friend",   "goto",
    "if",       "inline",   "int",       "long",     "mutable",  "namespace", "new",      "noexcept", "nullptr",
    "operator", "private",  "protected", "public",   "register", "return",    "short",    "signed",   "sizeof",
    "static",   "struct",   "switch",    "template", "this",     "throw",     "try",      "typedef",  "typeid",
    "typename", "union",    "unsigned",  "using",    "virtual",  "void",      "volatile", "while",    "threadIdx",
    "blockIdx", "blockDim", "gridDim",   "warpSize",
});

/// Why a name cannot be a macro; nullopt: it can.
std::optional<std::string> macro_objection(std::string_view name) {
    if (!is_name(name)) return "is no name: letters, digits and _, at most 64";
    if (std::ranges::find(reserved, name) != reserved.end()) return "is a word of CUDA C++, so it cannot be a macro";
    if (name.find("__") != std::string_view::npos ||
        (name.size() > 1 && name[0] == '_' && std::isupper(static_cast<unsigned char>(name[1]))))
        return "is reserved to the compiler (two underscores, or _ and a capital), so it cannot be a macro";
    return std::nullopt;
}

/// `[A-Za-z_][A-Za-z0-9_:]*`: what may be pasted into a source.
bool can_be_pasted(std::string_view word) {
    std::string plain{word};
    std::ranges::replace(plain, ':', '_');
    return !word.empty() && word[0] != ':' && is_name(plain);
}

bool is_arch(std::string_view arch) {
    if (!arch.starts_with("sm_")) return false;
    arch.remove_prefix(3);
    if (arch.ends_with('a') || arch.ends_with('f')) arch.remove_suffix(1);
    return arch.size() >= 2 && arch.size() <= 3 &&
           std::ranges::all_of(arch, [](char c) { return c >= '0' && c <= '9'; });
}

struct Call {
    std::string function, argument;
};

/// `value(c)`: a call of one bare name.
std::optional<Call> call_of_name(std::string_view text) {
    std::string bare;
    for (const char c : text)
        if (c != ' ' && c != '\t') bare += c;
    const std::size_t open = bare.find('(');
    if (open == std::string::npos || bare.back() != ')') return std::nullopt;
    Call call{bare.substr(0, open), bare.substr(open + 1, bare.size() - open - 2)};
    if (!is_name(call.argument)) return std::nullopt;
    return call;
}

}  // namespace

void Builder::read_variant(const Node& node) {
    const Section section{document_, node, "[[kernel]]"};
    Variant& variant = read_.emplace_back();
    variant.name = section.text("name");
    const bool twice =
        (base_ && base_->variant(variant.name)) ||
        std::ranges::count_if(read_, [&](const Variant& other) { return other.name == variant.name; }) > 1;
    if (twice)
        document_.fail(section.at("name"),
                       fmt::format("there are two variants '{}'; each has a name of its own", variant.name));
    variant.needs = optional_expression(section, "needs",
                                        {.what = "'needs'", .uses = device_uses, .parameters = &variant.parameters});
    variant.parameters_as_template = section.text("parameters_as") == "template";
    if (const Node* source = section.find("source")) variant.source = read_file(*source, false);
    variant.entry = section.text("entry");
    if (const Node* include = section.find("include"))
        for (const Node& one : include->children) variant.include.push_back(read_file(one, false));

    std::map<std::string, Use> local;
    if (const Node* parameters = section.find("parameters")) read_parameters(variant, *parameters, local);
    if (const Node* define = section.find("define")) {
        variant.define = read_define(*define, &variant.parameters);
        for (const Node& one : define->children)
            if (local.contains(one.key))
                document_.fail_key(one,
                                   fmt::format("'{}' is a parameter and a define; one macro has one meaning", one.key));
    }
    if (const Node* entry = section.find("entry")) check_entry(variant, variant.entry, *entry);
    const Place place{.what = "a launch",
                      .uses = device_uses | use_parameter,
                      .parameters = &variant.parameters,
                      .scratch = &variant.scratch};
    Place constraint_place = place;
    constraint_place.what = "a constraint";
    if (const Node* constraints = section.find("constraint"))
        for (const Node& one : constraints->children)
            variant.constraints.push_back(constraint(one, "[[kernel.constraint]]", constraint_place));
    if (const Node* scratch = section.find("scratch"))
        for (const Node& one : scratch->children) read_scratch(variant, one, place, local);
    if (const Node* symbols = section.find("symbol"))
        for (const Node& one : symbols->children) read_symbol(variant, one);
    const Node& launches = section.at("launch");
    if (launches.children.empty())
        document_.fail_key(launches, fmt::format("variant '{}' has no [[kernel.launch]]", variant.name));
    for (const Node& one : launches.children)
        variant.launches.push_back(read_launch(one, "[[kernel.launch]]", &variant, place));

    variant.options = section.texts("options");
    if (const Node* options = section.find("options"))
        for (const Node& one : options->children) {
            if (one.text().starts_with("-arch") || one.text().starts_with("--gpu-arch"))
                document_.fail(one, "the architecture is said by arch = \"sm_90a\", not by an option");
            if (const auto objection = option_objection(one.text()))
                document_.fail(one, fmt::format("'{}' {}", one.text(), *objection));
        }
    if (const Node* arch = section.find("arch")) {
        if (!is_arch(arch->text()))
            document_.fail(*arch, fmt::format("'{}' is no architecture: sm_90, sm_90a", arch->text()));
        variant.arch = arch->text();
    }
    if (const Node* spill = section.find("spill_bytes")) {
        const auto bytes = std::get<std::int64_t>(spill->value);
        if (bytes < 0 || bytes > 1'000'000) document_.fail(*spill, "spill_bytes is from 0 to 1000000");
        variant.spill_bytes = static_cast<int>(bytes);
    }
    variant.pipelined = section.flag("pipelined", false);
    variant.deterministic = section.flag("deterministic", true);
    variant.idempotent = section.flag("idempotent", true);
}

void Builder::read_parameters(Variant& variant, const Node& node, std::map<std::string, Use>& local) {
    if (node.children.size() > most_parameters)
        document_.fail_key(node.children[most_parameters],
                           fmt::format("variant '{}' has {} parameters, at most {} are allowed", variant.name,
                                       node.children.size(), most_parameters));
    for (const Node& child : node.children) {
        if (child.kind != Node::Kind::table)
            document_.fail_key(
                child, fmt::format("parameter '{0}' is a table, not {1}: {0} = {{ values = [1, 2], default = 1 }}",
                                   child.key, kind_of(child)));
        if (const auto objection = macro_objection(child.key))
            document_.fail_key(child, fmt::format("'{}' {}", child.key, *objection));
        names_.declare_local(use_parameter, child.key, child, local);
        variant.parameters.push_back(read_parameter(variant, child));
    }
}

Parameter Builder::read_parameter(const Variant& variant, const Node& node) {
    const Section section{document_, node, "[kernel.parameters]"};
    Parameter parameter;
    parameter.name = node.key;
    parameter.about = section.text("about");
    const Node& values = section.at("values");
    if (values.children.empty()) document_.fail_key(values, fmt::format("parameter '{}' has no values", node.key));
    if (values.children.size() > most_values)
        document_.fail_key(values, fmt::format("parameter '{}' has {} values, at most {} are allowed", node.key,
                                               values.children.size(), most_values));
    std::string words;
    for (const Node& one : values.children) {
        if (one.kind != values.children.front().kind)
            document_.fail(one, fmt::format("the values of a parameter are of one kind; the first is {}",
                                            kind_of(values.children.front())));
        if (std::ranges::find(parameter.values, one.value) != parameter.values.end())
            document_.fail(one, fmt::format("{} is a value already", to_text(one.value)));
        if (one.is_text() && !can_be_pasted(one.text()))
            document_.fail(
                one,
                fmt::format("'{}' cannot be pasted into a source: letters, digits, _ and :, not starting with a digit",
                            one.text()));
        if (one.is_text()) words += (words.empty() ? "" : " ") + one.text();
        parameter.values.push_back(one.value);
    }
    const Node* given = section.find("default");
    if (given == nullptr) {
        parameter.fallback = Expression::constant(parameter.values.front());
        return parameter;
    }
    parameter.fallback =
        expression(*given, {.what = "a default", .uses = device_uses, .parameters = &variant.parameters}, words);
    std::vector<std::string> list;
    for (const Value& value : parameter.values) list.push_back(to_text(value));
    check_leaves(
        parameter.fallback, *given,
        [&](const Value& value) {
            return std::ranges::any_of(parameter.values, [&](const Value& one) { return same_value(one, value); });
        },
        fmt::format("the values of '{}' are {}", node.key, enumerated(list)));
    return parameter;
}

void Builder::read_scratch(Variant& variant, const Node& node, const Place& place, std::map<std::string, Use>& local) {
    const Section section{document_, node, "[[kernel.scratch]]"};
    Place here = place;
    here.what = "scratch";
    here.scratch = nullptr;
    Scratch scratch;
    scratch.name = section.text("name");
    scratch.zeroed = section.text("start") == "zero";
    names_.declare_local(use_scratch, scratch.name, section.at("name"), local);
    std::string words;
    for (const DTypeInfo& row : dtypes) words += (words.empty() ? "" : " ") + std::string{row.name};
    scratch.dtype = expression(section.at("dtype"), here, words);
    named_dtypes_.emplace_back(&section.at("dtype"), scratch.dtype);
    scratch.shape = expressions(section, "shape", here);
    scratch.when = optional_expression(section, "when", here);
    variant.scratch.push_back(std::move(scratch));
}

void Builder::read_symbol(Variant& variant, const Node& node) {
    const Section section{document_, node, "[[kernel.symbol]]"};
    variant.symbols.push_back(
        {.name = section.text("name"), .from = section.text("from"), .each_launch = section.text("copy") == "launch"});
    named_later_.emplace_back(&section.at("from"), section.text("from"));
}

std::vector<std::pair<std::string, Expression>> Builder::read_define(const Node& node,
                                                                     const std::vector<Parameter>* parameters) {
    std::vector<std::pair<std::string, Expression>> define;
    for (const Node& child : node.children) {
        if (const auto objection = macro_objection(child.key))
            document_.fail_key(child, fmt::format("'{}' {}", child.key, *objection));
        if (child.kind == Node::Kind::array || child.kind == Node::Kind::table)
            document_.fail_key(child, fmt::format("a define is an expression over fields, not {}", kind_of(child)));
        define.emplace_back(
            child.key, expression(child, {.what = "a define", .uses = use_field | use_let, .parameters = parameters}));
        for (const std::string& name : define.back().second.names())
            if (const Field* field = op_.field(name); field && field->kind == Field::Kind::text)
                document_.fail(child, fmt::format("field '{}' is a text, which never reaches a compiler", name));
    }
    return define;
}

LaunchSpec Builder::read_launch(const Node& node, std::string_view title, const Variant* variant, const Place& place) {
    const Section section{document_, node, title};
    LaunchSpec launch;
    launch.entry = section.text("entry", variant ? variant->entry : "");
    if (variant) launch.source = variant->source;
    if (const Node* source = section.find("source")) launch.source = read_file(*source, false);
    if (launch.source.empty()) document_.fail_key(node, "this launch has no source: say it here or for the variant");
    if (launch.entry.empty()) document_.fail_key(node, "this launch has no entry: say it here or for the variant");
    if (variant && section.has("entry")) check_entry(*variant, launch.entry, section.at("entry"));
    launch.when = optional_expression(section, "when", place);
    launch.repeat = optional_expression(section, "repeat", place);
    Place grid = place;
    grid.what = "a grid";
    grid.uses |= variant ? static_cast<unsigned>(use_blocks) : 0u;
    launch.grid = expressions(section, "grid", grid);
    launch.block = expressions(section, "block", place);
    launch.cluster = expressions(section, "cluster", place);
    for (const char* key : {"grid", "block", "cluster"})
        if (const Node* given = section.find(key); given && (given->children.empty() || given->children.size() > 3))
            document_.fail_key(*given,
                               fmt::format("'{}' has {} dimensions; it has 1 to 3", key, given->children.size()));
    launch.shared = optional_expression(section, "shared", place);
    launch.cooperative = section.flag("cooperative", false);
    Place argument = place;
    argument.what = "an argument";
    argument.uses |= use_tensor | use_scalar | use_stride | (variant ? static_cast<unsigned>(use_scratch) : 0u);
    for (const Node& one : section.at("args").children)
        launch.arguments.push_back(read_argument(one, argument, variant == nullptr));
    return launch;
}

ArgumentSpec Builder::read_argument(const Node& node, const Place& place, bool reference) {
    if (node.kind == Node::Kind::table) return read_tensor_map(node, place);
    if (reference && node.is_text())
        if (const auto call = call_of_name(node.text());
            call && (call->function == "value" || call->function == "magnitude")) {
            named_later_.emplace_back(&node, call->argument);
            outputs_later_.emplace_back(&node, call->argument);
            ArgumentSpec argument;
            argument.kind = call->function == "value" ? ArgumentSpec::Kind::reference_value
                                                      : ArgumentSpec::Kind::reference_magnitude;
            argument.tensor = call->argument;
            return argument;
        }
    ArgumentSpec argument;
    argument.expression = expression(node, place);
    arguments_.push_back(pending_.back());
    return argument;
}

ArgumentSpec Builder::read_tensor_map(const Node& node, const Place& place) {
    const Section section{document_, node, "a tensor map"};
    ArgumentSpec argument;
    argument.kind = ArgumentSpec::Kind::tensor_map;
    argument.tensor = section.text("tensor_map");
    named_later_.emplace_back(&section.at("tensor_map"), argument.tensor);
    Place box = place;
    box.what = "a box";
    box.uses &= ~static_cast<unsigned>(use_tensor | use_scratch | use_scalar | use_stride);
    argument.box = expressions(section, "box", box);
    if (argument.box.empty() || argument.box.size() > 5)
        document_.fail_key(section.at("box"), "a box has 1 to 5 dimensions");
    if (const Node* swizzle = section.find("swizzle")) {
        const auto bytes = std::get<std::int64_t>(swizzle->value);
        if (bytes != 0 && bytes != 32 && bytes != 64 && bytes != 128)
            document_.fail(*swizzle, "a swizzle is 0, 32, 64 or 128 bytes");
        argument.swizzle = static_cast<int>(bytes);
    }
    return argument;
}

void Builder::check_argument(const Pending& argument) const {
    const std::vector<Scratch>* scratch = argument.place.scratch;
    const auto objection =
        argument_objection(op_, scratch ? std::span{*scratch} : std::span<const Scratch>{}, argument.expression);
    if (!objection) return;
    if (argument.node->is_text())
        document_.fail_inside(*argument.node, objection->offset, objection->length, objection->reason);
    document_.fail(*argument.node, objection->reason);
}

void Builder::check_entry(const Variant& variant, const std::string& entry, const Node& node) const {
    const auto fail = [&](const std::string& message) { document_.fail(node, message); };
    const bool placeholders = entry.find('{') != std::string::npos || entry.find('}') != std::string::npos;
    if (!variant.parameters_as_template) {
        if (placeholders)
            fail(fmt::format("entry '{}' names template arguments; that takes parameters_as = \"template\"", entry));
        return;
    }
    std::vector<std::string> known;
    for (const Parameter& parameter : variant.parameters) known.push_back(parameter.name);
    for (const auto& [macro, value] : variant.define) known.push_back(macro);
    for (std::size_t open = entry.find('{'); open != std::string::npos; open = entry.find('{', open + 1)) {
        const std::size_t close = entry.find('}', open);
        if (close == std::string::npos) fail(fmt::format("entry '{}' has a {{ that is not closed", entry));
        const std::string name = entry.substr(open + 1, close - open - 1);
        if (std::ranges::find(known, name) != known.end()) continue;
        std::string meant = did_you_mean(name, known);
        if (meant.empty())
            meant = known.empty() ? "; the variant has neither" : fmt::format("; there are {}", enumerated(known));
        fail(fmt::format("'{{{}}}' in the entry is no parameter and no define{}", name, meant));
    }
}

}  // namespace autotune
