#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/loader/builder.h"
#include "tuner/model/evaluator.h"
#include "tuner/model/suggest.h"

namespace autotune {
namespace {

constexpr std::size_t most_lets = 1024;  // each may use the next, and they are followed by recursion
constexpr std::size_t longest_text = 4096;
constexpr Place of_key{.what = "what a key depends on", .uses = use_field | use_let};

Place of_problem(std::string_view what) { return {.what = what, .uses = use_field | use_let}; }

std::vector<std::string> words_of(const std::vector<Value>& values) {
    std::vector<std::string> words;
    for (const Value& value : values) words.push_back(to_text(value));
    return words;
}

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
    return out;
}

/// Which arguments each kind of fill takes.
struct FillRow {
    std::string_view kind, takes;
};
constexpr FillRow fills[] = {
    {"normal", ""},        {"uniform", "low high"}, {"constant", "value"},         {"int", "low high"},
    {"permutation", "of"}, {"sorted", "low high"},  {"lengths", "max like zeros"}, {"special", ""},
};

bool takes(std::string_view kind, std::string_view argument) {
    const auto* row = std::ranges::find(fills, kind, &FillRow::kind);
    return (" " + std::string{row->takes} + " ").find(" " + std::string{argument} + " ") != std::string::npos;
}

}  // namespace

void Builder::read_problem(const Node& problem) {
    for (const Node& child : problem.children) {
        if (child.key == "constraint" && child.kind == Node::Kind::array) {
            for (const Node& one : child.children) {
                if (one.kind != Node::Kind::table) document_.fail(one, "[[problem.constraint]] is a table");
                op_.constraints.push_back(
                    constraint(one, "[[problem.constraint]]", of_problem("a constraint of the problem")));
            }
            continue;
        }
        read_field(child);
    }
}

void Builder::read_field(const Node& node) {
    if (node.kind != Node::Kind::table)
        document_.fail_key(
            node, fmt::format("field '{0}' is a table, not {1}: {0} = {{ dim = \"near\" }}", node.key, kind_of(node)));
    if (!is_name(node.key))
        document_.fail_key(node, fmt::format("'{}' is no name: letters, digits and _, at most 64", node.key));
    const Section section{document_, node, "[problem]"};
    Field field;
    field.name = node.key;
    field.about = section.text("about");
    field.key = section.flag("key", true);
    std::vector<std::string> kinds;
    for (const char* key : {"dim", "one_of", "flag", "text"})
        if (section.has(key)) kinds.emplace_back(key);
    if (kinds.size() != 1)
        document_.fail_key(
            node, kinds.empty() ? fmt::format("field '{}' does not say what it is: dim, one_of, flag or text", node.key)
                                : fmt::format("field '{}' is {} at once; it is one of dim, one_of, flag and text",
                                              node.key, enumerated(kinds)));
    for (const char* key : {"flag", "text"})
        if (section.has(key) && !section.flag(key, true))
            document_.fail(section.at(key), fmt::format("'{0}' is true or not given: {0} = true", key));
    if (kinds[0] == "dim") field.near = section.text("dim") == "near";
    field.kind = kinds[0] == "dim"      ? Field::Kind::dim
                 : kinds[0] == "one_of" ? Field::Kind::choice
                 : kinds[0] == "flag"   ? Field::Kind::flag
                                        : Field::Kind::text;
    if (field.kind == Field::Kind::choice) read_choices(section, field);
    names_.declare(use_field, field.name, &node);
    if (field.kind == Field::Kind::choice) names_.declare_choices(field.name, field.choices);
    read_default(section, field);
    if (const Node* from = section.find("from")) {
        field.from_inputs = from->is_text() && from->text() == "inputs";
        if (field.from_inputs && field.kind != Field::Kind::dim)
            document_.fail(*from, fmt::format("only a dim can come from the inputs; '{}' is none", field.name));
        if (field.from_inputs && document_.root().find("inputs") == nullptr)
            document_.fail(*from,
                           fmt::format("field '{}' comes from the inputs, but there is no [inputs]", field.name));
        if (!field.from_inputs) field.from = expression(*from, {.what = "'from'", .uses = use_field | use_scalar});
    }
    op_.fields.push_back(std::move(field));
}

void Builder::read_choices(const Section& section, Field& field) {
    const Node& choices = section.at("one_of");
    for (const Node& choice : choices.children) {
        if (!field.choices.empty() && field.choices.front().index() != choice.value.index())
            document_.fail(choice, "the choices of a field are of one kind");
        if (std::ranges::find(field.choices, choice.value) != field.choices.end())
            document_.fail(choice, fmt::format("'{}' is a choice already", to_text(choice.value)));
        if (choice.is_text() && !is_name(choice.text()))
            document_.fail(choice, fmt::format("'{}' is no word: letters, digits and _, not starting with a digit",
                                               choice.text()));
        field.choices.push_back(choice.value);
    }
    if (field.choices.empty()) document_.fail_key(choices, fmt::format("field '{}' has no choices", field.name));
}

void Builder::read_default(const Section& section, Field& field) {
    const Node* given = section.find("default");
    if (given == nullptr) return;
    if (field.kind == Field::Kind::text) {
        if (!given->is_text())
            document_.fail(*given, fmt::format("the default of a text is a string, not {}", kind_of(*given)));
        if (given->text().size() > longest_text)
            document_.fail(*given, fmt::format("a text has at most {} bytes", longest_text));
        field.fallback = Expression::constant(given->value);
        return;
    }
    const Place place{.what = "a default", .uses = use_field, .fields = op_.fields.size()};
    std::vector<std::string> words;
    for (const Value& choice : field.choices)
        if (std::holds_alternative<std::string>(choice)) words.push_back(std::get<std::string>(choice));
    field.fallback = expression(*given, place, joined(words));
    const auto fits = [&field](const Value& value) {
        if (field.kind == Field::Kind::flag) return std::holds_alternative<bool>(value);
        if (field.kind == Field::Kind::choice) return std::ranges::find(field.choices, value) != field.choices.end();
        const auto* size = std::get_if<std::int64_t>(&value);
        return size && *size >= 1 && *size <= std::int64_t{1} << 40;
    };
    const std::string must = field.kind == Field::Kind::flag     ? "the default of a flag is true or false"
                             : field.kind == Field::Kind::choice ? fmt::format("the choices of '{}' are {}", field.name,
                                                                               enumerated(words_of(field.choices)))
                                                                 : "a dim is an integer from 1 to 2^40";
    check_leaves(field.fallback, *given, fits, must);
}

void Builder::read_scalar(const Node& node) {
    const Section section{document_, node, "[[scalar]]"};
    const DType dtype = *dtype_named(section.text("dtype"));
    const auto number = [&](const Node& given) -> Value {
        const bool whole = given.kind == Node::Kind::integer;
        if (!whole && given.kind != Node::Kind::real && !(dtype == DType::boolean && given.kind == Node::Kind::boolean))
            document_.fail(given,
                           fmt::format("a scalar of type {} is a number, not {}", name_of(dtype), kind_of(given)));
        if (given.kind == Node::Kind::real && !info(dtype).floating)
            document_.fail(given, fmt::format("a scalar of type {} is whole", name_of(dtype)));
        if (whole && info(dtype).floating) return static_cast<double>(std::get<std::int64_t>(given.value));
        return given.value;
    };
    Scalar scalar{.name = section.text("name"), .dtype = dtype, .fallback = number(section.at("default")), .check = {}};
    if (const Node* check = section.find("check"))
        for (const Node& one : check->children) scalar.check.push_back(number(one));
    names_.declare(use_scalar, scalar.name, &section.at("name"));
    op_.scalars.push_back(std::move(scalar));
}

void Builder::read_tensor(const Node& node) {
    const Section section{document_, node, "[[tensor]]"};
    Tensor tensor;
    tensor.name = section.text("name");
    tensor.key = section.flag("key", true);
    names_.declare(use_tensor, tensor.name, &section.at("name"));
    tensor_nodes_[tensor.name] = &node;
    const Node &role = section.at("role"), &dtype = section.at("dtype");
    tensor.role = expression(role, of_problem("a role"), "in out inout scratch");
    const auto is_role = [](const Value& value) {
        return value == Value{"in"} || value == Value{"out"} || value == Value{"inout"} || value == Value{"scratch"};
    };
    check_leaves(tensor.role, role, is_role, "a role is in, out, inout or scratch");
    std::string dtype_words;
    for (const DTypeInfo& row : dtypes) dtype_words += (dtype_words.empty() ? "" : " ") + std::string{row.name};
    tensor.dtype = expression(dtype, of_problem("a dtype"), dtype_words);
    named_dtypes_.emplace_back(&dtype, tensor.dtype);
    tensor.shape = expressions(section, "shape", of_problem("a shape"));
    if (tensor.shape.size() > 8) document_.fail_key(section.at("shape"), "a tensor has at most 8 dimensions");
    if (const Node* strides = section.find("strides")) {
        if (strides->children.size() != tensor.shape.size())
            document_.fail_key(*strides, fmt::format("'strides' of tensor '{}' has {} entries, its shape has {}",
                                                     tensor.name, strides->children.size(), tensor.shape.size()));
        for (const Node& one : strides->children) {
            tensor.strides.push_back(expression(one, of_problem("a stride")));
            strides_.emplace_back(tensor.name, pending_.back());
            pending_.pop_back();
        }
    }
    tensor.when = optional_expression(section, "when", of_problem("'when' of a tensor"));
    tensor.may_alias = section.texts("may_alias");
    if (const Node* alias = section.find("may_alias"))
        for (const Node& other : alias->children) named_later_.emplace_back(&other, other.text());
    if (const Node* fill = section.find("fill")) tensor.fill = read_fill(*fill);
    op_.tensors.push_back(std::move(tensor));
}

Fill Builder::read_fill(const Node& node) {
    Fill fill;
    if (node.is_text()) {
        if (std::ranges::find(fills, node.text(), &FillRow::kind) == std::ranges::end(fills)) {
            std::vector<std::string> kinds;
            for (const FillRow& row : fills) kinds.emplace_back(row.kind);
            document_.fail(node, fmt::format("'{}' is no fill; there are {}", node.text(), enumerated(kinds)));
        }
        fill.kind = node.text();
        return fill;
    }
    const Section section{document_, node, "fill"};
    fill.kind = section.text("kind");
    for (const Node& child : node.children) {
        if (child.key == "kind" || child.key == "junk_beyond") continue;
        if (!takes(fill.kind, child.key))
            document_.fail_key(child, fmt::format("fill '{}' takes no '{}'", fill.kind, child.key));
        fill.arguments.emplace_back(
            child.key, expression(child, of_problem("a fill"), child.key == "like" ? "full uniform skewed" : ""));
    }
    fill.junk_beyond = optional_expression(section, "junk_beyond",
                                           {.what = "'junk_beyond'", .uses = use_field | use_let | use_tensor});
    return fill;
}

void Builder::read_let(const Node& node) {
    if (node.children.size() > most_lets)
        document_.fail_key(node.children[most_lets],
                           fmt::format("[let] has {} names, at most {} are allowed", node.children.size(), most_lets));
    for (const Node& child : node.children) {
        if (!is_name(child.key))
            document_.fail_key(child, fmt::format("'{}' is no name: letters, digits and _, at most 64", child.key));
        if (child.kind == Node::Kind::array || child.kind == Node::Kind::table)
            document_.fail_key(child, fmt::format("a [let] name stands for an expression, not {}", kind_of(child)));
        Expression value = expression(child, of_key);
        pending_.pop_back();  // what it may use depends on who uses it
        names_.declare_let(child.key, std::move(value), &child);
    }
}

void Builder::read_work(const Node& node) {
    const Section section{document_, node, "[work]"};
    const Place place{.what = "[work]", .uses = use_field | use_let | use_sum};
    op_.flops = optional_expression(section, "flops", place);
    op_.bytes = optional_expression(section, "bytes", place);
}

void Builder::read_reference(const Node& node) {
    const Section section{document_, node, "[reference]"};
    Reference& reference = op_.reference;
    std::vector<std::string> kinds;
    for (const char* key : {"cpp", "kernel", "npy"})
        if (section.has(key)) kinds.emplace_back(key);
    if (kinds.size() != 1)
        document_.fail_key(node, kinds.empty()
                                     ? "there is no reference: [reference] says cpp, kernel or npy"
                                     : fmt::format("[reference] says {} at once; it is one of cpp, kernel and npy",
                                                   enumerated(kinds)));
    if (const Node* cpp = section.find("cpp")) {
        reference.kind = Reference::Kind::cpp;
        reference.cpp = read_file(*cpp, true);
    } else if (section.has("kernel")) {
        reference.kind = Reference::Kind::kernel;
        reference.kernel = section.text("kernel");
    } else {
        reference.kind = Reference::Kind::npy;
        for (const Node& child : section.at("npy").children) {
            if (!child.is_text())
                document_.fail_key(child,
                                   fmt::format("'{}' is the path of an array file, not {}", child.key, kind_of(child)));
            reference.npy.emplace_back(child.key, read_file(child, true));
        }
    }
    if (const Node* define = section.find("define")) reference.define = read_define(*define, nullptr);
    const Place place{.what = "a launch of the reference", .uses = use_field | use_let | use_limit | use_align};
    if (const Node* launches = section.find("launch"))
        for (const Node& launch : launches->children)
            reference.launches.push_back(read_launch(launch, "[[reference.launch]]", nullptr, place));
}

void Builder::read_tolerance(const Node& node) {
    for (const Node& child : node.children) {
        if (child.kind != Node::Kind::table)
            document_.fail_key(
                child,
                fmt::format("the tolerance of '{0}' is a table, not {1}: {0} = {{ terms = ..., accumulate = \"fma\" }}",
                            child.key, kind_of(child)));
        const Section section{document_, child, "[tolerance]"};
        Tolerance tolerance;
        tolerance.tensor = child.key;
        tolerance.exact = section.flag("exact", false);
        const bool bound = section.has("terms") || section.has("abs") || section.has("rel");
        if (tolerance.exact == bound)
            document_.fail_key(child,
                               fmt::format("the tolerance of '{}' is {}", child.key,
                                           bound ? "a bound and exact at once; it is one of them"
                                                 : "empty: it says terms and accumulate, abs or rel, or exact = true"));
        if (section.has("terms") != section.has("accumulate"))
            document_.fail_key(child,
                               fmt::format("the tolerance of '{}' needs terms and accumulate together", child.key));
        tolerance.terms = optional_expression(section, "terms", of_problem("a tolerance"));
        tolerance.accumulate = optional_expression(section, "accumulate", of_problem("a tolerance"), "fma mma");
        tolerance.intermediate =
            optional_expression(section, "intermediate", of_problem("a tolerance"), "f64 f32 f16 bf16 f8e4m3 f8e5m2");
        tolerance.absolute = optional_expression(section, "abs", of_problem("a tolerance"));
        tolerance.relative = optional_expression(section, "rel", of_problem("a tolerance"));
        if (const Node* given = section.find("accumulate"))
            check_leaves(
                tolerance.accumulate, *given,
                [](const Value& value) { return value == Value{"fma"} || value == Value{"mma"}; },
                "accumulate is fma or mma");
        op_.tolerances.push_back(std::move(tolerance));
    }
}

void Builder::read_check(const Node& node) {
    const Section section{document_, node, "[check]"};
    const Node* problems = section.find("problems");
    if (problems == nullptr) return;
    for (const Node& problem : problems->children) {
        auto& fields = op_.check_problems.emplace_back();
        for (const Node& given : problem.children) {
            const Field* field = op_.field(given.key);
            if (field == nullptr) {
                std::vector<std::string> known;
                for (const Field& one : op_.fields) known.push_back(one.name);
                std::string meant = did_you_mean(given.key, known);
                if (meant.empty()) meant = fmt::format("; the fields are {}", enumerated(known));
                document_.fail_key(given, fmt::format("there is no field '{}'{}", given.key, meant));
            }
            const auto* size = std::get_if<std::int64_t>(&given.value);
            const bool fits = field->kind == Field::Kind::dim ? size && *size >= 1
                              : field->kind == Field::Kind::choice
                                  ? std::ranges::find(field->choices, given.value) != field->choices.end()
                              : field->kind == Field::Kind::flag ? given.kind == Node::Kind::boolean
                                                                 : given.is_text();
            if (!fits || given.kind == Node::Kind::array || given.kind == Node::Kind::table)
                document_.fail(given, fmt::format("'{}' cannot be this: it is {}", given.key,
                                                  field->kind == Field::Kind::dim ? "an integer of at least 1"
                                                  : field->kind == Field::Kind::choice
                                                      ? "one of " + enumerated(words_of(field->choices))
                                                  : field->kind == Field::Kind::flag ? "true or false"
                                                                                     : "a text"));
            fields.emplace_back(given.key, given.value);
        }
    }
}

const Tensor& Builder::tensor_named(const std::string& name, const Node& node) const {
    if (const Tensor* tensor = op_.tensor(name)) return *tensor;
    std::vector<std::string> known;
    for (const Tensor& one : op_.tensors) known.push_back(one.name);
    std::string meant = did_you_mean(name, known);
    if (meant.empty()) meant = known.empty() ? "" : fmt::format("; the tensors are {}", enumerated(known));
    const std::string message = fmt::format("there is no tensor '{}'{}", name, meant);
    if (node.is_text()) document_.fail(node, message);
    document_.fail_key(node, message);
}

std::set<std::string> Builder::roles_of(const Tensor& tensor) const {
    std::set<std::string> roles;
    for (const ExpressionNode* leaf : leaves_of(tensor.role)) {
        if (const auto* word = std::get_if<std::string>(&leaf->value); leaf->kind == NodeKind::constant && word)
            roles.insert(*word);
        if (leaf->kind != NodeKind::constant) roles.insert({"in", "out", "inout"});
    }
    return roles;
}

void Builder::check_tensors() const {
    for (const auto& [node, name] : named_later_) tensor_named(name, *node);
    for (const auto& [node, dtype] : named_dtypes_) check_dtype(dtype, *node);
}

/// A bare name that stands for nothing else is a free stride, which kernels learn from an argument or from a tensor
/// map. One that no launch learns is no stride but a slip in the name of a field.
void Builder::check_strides(const std::set<std::string>& parameters) {
    std::set<std::string> learnt, mapped;
    std::vector<std::string> fields;
    for (const Field& field : op_.fields) fields.push_back(field.name);
    for (const Pending& argument : arguments_)
        for (const std::string& name : argument.expression.names()) learnt.insert(name);
    for (const Variant& variant : read_)
        for (const LaunchSpec& launch : variant.launches)
            for (const ArgumentSpec& argument : launch.arguments)
                if (argument.kind == ArgumentSpec::Kind::tensor_map) mapped.insert(argument.tensor);
    for (const auto& [tensor, stride] : strides_) {
        const auto free = stride.expression.bare_name();
        if (free && parameters.contains(*free))
            document_.fail(*stride.node, fmt::format("'{}' is a parameter, so it cannot be a stride", *free));
        const bool unknown = free && !names_.known(*free);
        if (unknown && (learnt.contains(*free) || (mapped.contains(tensor) && !suggestion(*free, fields)))) {
            names_.declare_stride(*free);
            continue;
        }
        pending_.push_back(stride);
        if (!unknown) continue;
        pending_.back().place.what = "a stride, and no launch is given it";
        names_.check(stride.expression, *stride.node, pending_.back().place);
    }
}

void Builder::check_outputs() const {
    bool any = false;
    for (const Tensor& tensor : op_.tensors) {
        const auto roles = roles_of(tensor);
        if (!roles.contains("out") && !roles.contains("inout")) continue;
        any = true;
        const Node* node = tensor_nodes_.at(tensor.name);
        if (std::ranges::find(op_.tolerances, tensor.name, &Tolerance::tensor) == op_.tolerances.end())
            document_.fail(*node->find("name"), fmt::format("output '{0}' has no tolerance; [tolerance] has a line for "
                                                            "each: {0} = {{ terms = ..., accumulate = \"fma\" }}",
                                                            tensor.name));
        if (op_.reference.kind == Reference::Kind::npy &&
            std::ranges::find(op_.reference.npy, tensor.name, &std::pair<std::string, std::string>::first) ==
                op_.reference.npy.end())
            document_.fail(*node->find("name"),
                           fmt::format("output '{}' has no file in npy of [reference]", tensor.name));
    }
    if (!any)
        document_.fail(*document_.root().find("op"),
                       fmt::format("op '{}' has no output: a [[tensor]] with role \"out\" or \"inout\"", op_.name));
    const auto output = [&](const std::string& name, const Node& node) {
        const auto roles = roles_of(tensor_named(name, node));
        if (roles.contains("out") || roles.contains("inout")) return;
        if (node.key.empty()) document_.fail(node, fmt::format("'{}' is no output", name));
        document_.fail_key(node, fmt::format("'{}' is no output", name));
    };
    for (const auto& [node, name] : outputs_later_) output(name, *node);
    if (const Node* tolerance = document_.root().find("tolerance"))
        for (const Node& one : tolerance->children) output(one.key, one);
    if (const Node* reference = document_.root().find("reference"))
        if (const Node* npy = reference->find("npy"))
            for (const Node& one : npy->children) output(one.key, one);
}

}  // namespace autotune
