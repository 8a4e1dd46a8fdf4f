#include "tuner/loader/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tuner/loader/format.h"
#include "tuner/model/evaluator.h"
#include "tuner/model/suggest.h"

namespace autotune {
namespace {

struct UseRow {
    Use use;
    std::string_view one, many;
};

constexpr auto uses = std::to_array<UseRow>({
    {use_parameter, "a parameter", "parameters"},
    {use_field, "a field of the problem", "fields"},
    {use_let, "a [let] name", "[let] names"},
    {use_limit, "a limit of the device", "limits of the device"},
    {use_scalar, "a scalar", "scalars"},
    {use_tensor, "a tensor", "tensors"},
    {use_scratch, "scratch", "scratch"},
    {use_stride, "a free stride", "free strides"},
    {use_blocks, "known in a grid only", "blocks_per_sm"},
    {use_align, "a fact of a tensor", "align() and contiguous() of tensors"},
    {use_sum, "a sum over a tensor", "sum() of integer inputs"},
});

std::string_view one(Use use) { return std::ranges::find(uses, use, &UseRow::use)->one; }

std::string allowed(unsigned mask) {
    std::vector<std::string> list;
    for (const UseRow& row : uses)
        if (mask & row.use) list.emplace_back(row.many);
    return list.empty() ? "no names" : enumerated(list);
}

bool is_limit(std::string_view name) {
    return std::ranges::any_of(format_limits(), [&](const LimitRow& row) { return row.name == name; });
}

template <class List>
bool has_name(const List* list, std::string_view name) {
    return list && std::ranges::any_of(*list, [&](const auto& item) { return item.name == name; });
}

void collect_leaves(const ExpressionNode& node, std::vector<const ExpressionNode*>& out) {
    if (node.kind != NodeKind::conditional) {
        out.push_back(&node);
        return;
    }
    collect_leaves(*node.children[1], out);
    collect_leaves(*node.children[2], out);
}

/// The first node for which `wanted` is true.
template <class Wanted>
const ExpressionNode* first_node(const ExpressionNode* node, const Wanted& wanted) {
    if (node == nullptr || wanted(*node)) return node;
    for (const auto& child : node->children)
        if (const ExpressionNode* found = first_node(child.get(), wanted)) return found;
    return nullptr;
}

}  // namespace

std::vector<const ExpressionNode*> leaves_of(const Expression& expression) {
    std::vector<const ExpressionNode*> out;
    if (expression.node()) collect_leaves(*expression.node(), out);
    return out;
}

void Names::refuse(Use use, const Node& node, const std::string& message) const {
    // Fields, lets and parameters are named by their key, the others by a value.
    if (use == use_field || use == use_let || use == use_parameter) document_->fail_key(node, message);
    document_->fail(node, message);
}

void Names::check_free(Use use, const std::string& name, const Node& node) const {
    const auto taken_by = [&](std::string_view what) {
        refuse(use, node, fmt::format("{} cannot be called '{}': that is {}", one(use), name, what));
    };
    if (std::ranges::any_of(format_functions(), [&](const FunctionRow& row) { return row.name == name; }))
        taken_by("a function of expressions");
    if (is_limit(name) || name == "blocks_per_sm") taken_by("a limit of the device");
    for (const std::string_view word : {"and", "or", "not", "in", "true", "false"})
        if (name == word) taken_by("a word of expressions");
    if (use == use_parameter && name == "variant") taken_by("what results call the kernel of a config");
    const auto taken = global_.find(name);
    if (taken != global_.end() && !(use == use_tensor && taken->second == use_field))
        refuse(use, node, fmt::format("'{}' is {} already; each name stands for one thing", name, one(taken->second)));
    if (tensors_.contains(name) && use != use_field)
        refuse(use, node, fmt::format("'{}' is a tensor already; each name stands for one thing", name));
}

void Names::declare(Use use, const std::string& name, const Node* node) {
    if (node) check_free(use, name, *node);
    if (use == use_tensor)
        tensors_.insert(name);
    else
        global_[name] = use;
    if (use == use_field) fields_.push_back(name);
}

void Names::declare_local(Use use, const std::string& name, const Node& node, std::map<std::string, Use>& local) const {
    check_free(use, name, node);
    if (const auto [taken, fresh] = local.emplace(name, use); !fresh)
        refuse(use, node, fmt::format("'{}' is {} already; each name stands for one thing", name, one(taken->second)));
}

void Names::declare_let(const std::string& name, Expression expression, const Node* node) {
    declare(use_let, name, node);
    let_order_.push_back(name);
    lets_[name] = Let{.expression = std::move(expression), .node = node, .parameters = {}};
}

bool Names::known(const std::string& name) const { return global_.contains(name) || is_limit(name); }

std::vector<std::pair<std::string, Expression>> Names::sorted_lets(const std::set<std::string>& any_parameters) {
    std::vector<std::pair<std::string, Expression>> sorted;
    std::vector<std::string> path;
    for (const std::string& name : let_order_) walk(name, any_parameters, path, sorted);
    return sorted;
}

void Names::walk(const std::string& name, const std::set<std::string>& any_parameters, std::vector<std::string>& path,
                 std::vector<std::pair<std::string, Expression>>& sorted) {
    Let& let = lets_.at(name);
    if (let.state == 2) return;
    if (let.state == 1) {
        path.push_back(name);
        path.erase(path.begin(), std::ranges::find(path, name));
        std::string ring;
        for (const std::string& step : path) ring += (ring.empty() ? "'" : ", which uses '") + step + "'";
        document_->fail_key(*let.node, fmt::format("[let] goes in a circle: {}", ring));
    }
    let.state = 1;
    path.push_back(name);
    const Place place{.what = "[let]", .uses = use_field | use_let | use_limit | use_parameter | use_align};
    for (const std::string& used : let.expression.names()) {
        if (any_parameters.contains(used)) {
            let.uses |= use_parameter;
            let.parameters.insert(used);
            continue;
        }
        if (let.node) check_name(used, let.expression, *let.node, place);
        if (is_limit(used)) let.uses |= use_limit;
        if (!lets_.contains(used)) continue;
        walk(used, any_parameters, path, sorted);
        const Let& other = lets_.at(used);
        let.uses |= other.uses;
        let.parameters.insert(other.parameters.begin(), other.parameters.end());
    }
    if (!let.expression.tensors().empty()) let.uses |= use_align;
    if (let.node) {
        check_tensor_calls(let.expression, *let.node, place);
        check_words(let.expression, *let.node, place);
    }
    let.state = 2;
    path.pop_back();
    sorted.emplace_back(name, let.expression);
}

std::optional<Use> Names::meaning(const std::string& name, const Place& place) const {
    if ((place.uses & use_tensor) && tensors_.contains(name)) return use_tensor;
    if (has_name(place.scratch, name)) return use_scratch;
    if (has_name(place.parameters, name)) return use_parameter;
    if (const auto found = global_.find(name); found != global_.end()) return found->second;
    if (is_limit(name)) return use_limit;
    if (name == "blocks_per_sm") return use_blocks;
    if (strides_.contains(name)) return use_stride;
    if (tensors_.contains(name)) return use_tensor;
    return std::nullopt;
}

void Names::check(const Expression& expression, const Node& node, const Place& place) const {
    for (const std::string& name : expression.names()) check_name(name, expression, node, place);
    check_tensor_calls(expression, node, place);
    check_words(expression, node, place);
}

void Names::check_name(const std::string& name, const Expression& expression, const Node& node,
                       const Place& place) const {
    const std::optional<Use> use = meaning(name, place);
    if (!use) unknown(name, expression, node, place);
    const std::size_t at = expression.offset_of(name);
    if (*use == use_blocks && !(place.uses & use_blocks))
        document_->fail_inside(node, at, name.size(), "'blocks_per_sm' is a name in a grid only");
    if (!(place.uses & *use))
        document_->fail_inside(node, at, name.size(),
                               fmt::format("'{}' is {}, which {} cannot use; it takes {}", name, one(*use), place.what,
                                           allowed(place.uses)));
    if (*use == use_field) {
        const auto order = static_cast<std::size_t>(std::ranges::find(fields_, name) - fields_.begin());
        if (order >= place.fields)
            document_->fail_inside(
                node, at, name.size(),
                fmt::format("field '{}' stands further down; {} takes earlier fields only", name, place.what));
    }
    if (*use == use_let) check_let(name, expression, node, place);
}

void Names::check_let(const std::string& name, const Expression& expression, const Node& node,
                      const Place& place) const {
    const Let& let = lets_.at(name);
    const std::size_t at = expression.offset_of(name);
    for (const UseRow& row : uses)
        if ((let.uses & row.use) && !(place.uses & row.use))
            document_->fail_inside(
                node, at, name.size(),
                fmt::format("'{}' uses {}, which {} cannot use; it takes {}", name,
                            row.use == use_parameter ? fmt::format("the parameter '{}'", *let.parameters.begin())
                                                     : std::string{row.one},
                            place.what, allowed(place.uses)));
    if (place.parameters == nullptr) return;
    for (const std::string& parameter : let.parameters)
        if (!has_name(place.parameters, parameter))
            document_->fail_inside(
                node, at, name.size(),
                fmt::format("'{}' uses the parameter '{}', which this variant does not have", name, parameter));
}

void Names::check_tensor_calls(const Expression& expression, const Node& node, const Place& place) const {
    const ExpressionNode* bad = first_node(expression.node(), [&](const ExpressionNode& call) {
        if (call.kind != NodeKind::tensor_fact) return false;
        return !tensors_.contains(call.name) || !(place.uses & (call.function == Function::sum ? use_sum : use_align));
    });
    if (bad == nullptr) return;
    const std::vector<std::string> known{tensors_.begin(), tensors_.end()};
    if (!tensors_.contains(bad->name)) {
        std::string meant = did_you_mean(bad->name, known);
        if (meant.empty()) meant = fmt::format("; the tensors are {}", enumerated(known));
        document_->fail_inside(node, bad->offset, bad->piece.size(),
                               fmt::format("there is no tensor '{}'{}", bad->name, meant));
    }
    document_->fail_inside(
        node, bad->offset, bad->piece.size(),
        fmt::format("'{}' is {}, which {} cannot use; it takes {}", bad->piece,
                    one(bad->function == Function::sum ? use_sum : use_align), place.what, allowed(place.uses)));
}

const std::vector<Value>* Names::choices_of(const std::string& name, const Place& place) const {
    if (place.parameters)
        for (const Parameter& parameter : *place.parameters)
            if (parameter.name == name && std::holds_alternative<std::string>(parameter.values.front()))
                return &parameter.values;
    const auto found = choices_.find(name);
    return found == choices_.end() ? nullptr : &found->second;
}

void Names::check_words(const Expression& expression, const Node& node, const Place& place) const {
    const auto check_word = [&](const ExpressionNode& name, const ExpressionNode& word) {
        if (name.kind != NodeKind::name || word.kind != NodeKind::constant) return;
        const auto* text = std::get_if<std::string>(&word.value);
        const std::vector<Value>* choices = choices_of(name.name, place);
        if (text == nullptr || choices == nullptr || std::ranges::find(*choices, word.value) != choices->end()) return;
        std::vector<std::string> words;
        for (const Value& choice : *choices) words.push_back(to_text(choice));
        std::string meant = did_you_mean(*text, words);
        if (meant.empty()) meant = fmt::format("; the choices are {}", enumerated(words));
        document_->fail_inside(node, word.offset, word.piece.size(),
                               fmt::format("'{}' is no choice of '{}'{}", *text, name.name, meant));
    };
    first_node(expression.node(), [&](const ExpressionNode& compare) {
        if (compare.kind != NodeKind::compare) return false;
        for (std::size_t i = 0; i + 1 < compare.children.size(); ++i) {
            const ExpressionNode &left = *compare.children[i], &right = *compare.children[i + 1];
            check_word(left, right);
            check_word(right, left);
            if (right.kind == NodeKind::list)
                for (const auto& element : right.children) check_word(left, *element);
        }
        return false;
    });
}

void Names::unknown(const std::string& name, const Expression& expression, const Node& node, const Place& place) const {
    std::vector<std::string> all{place.words};
    std::string lists;
    if (!all.empty()) lists = fmt::format("the words are {}", enumerated(all));
    const auto add = [&](unsigned use, std::string_view called, const std::vector<std::string>& names) {
        if (!(place.uses & use) || names.empty()) return;
        all.insert(all.end(), names.begin(), names.end());
        lists += fmt::format("{}the {} {} {}", lists.empty() ? "" : ", ", called, names.size() == 1 ? "is" : "are",
                             enumerated(names));
    };
    const auto of = [&](Use use) {
        std::vector<std::string> names;
        for (const auto& [other, meant] : global_)
            if (meant == use) names.push_back(other);
        return names;
    };
    std::vector<std::string> parameters, scratch, limits;
    if (place.parameters)
        for (const Parameter& parameter : *place.parameters) parameters.push_back(parameter.name);
    if (place.scratch)
        for (const Scratch& buffer : *place.scratch) scratch.push_back(buffer.name);
    for (const LimitRow& row : format_limits()) limits.emplace_back(row.name);
    add(use_parameter, parameters.size() == 1 ? "parameter" : "parameters", parameters);
    add(use_tensor, tensors_.size() == 1 ? "tensor" : "tensors", {tensors_.begin(), tensors_.end()});
    add(use_scratch, "scratch", scratch);
    add(use_scalar, of(use_scalar).size() == 1 ? "scalar" : "scalars", of(use_scalar));
    add(use_stride, strides_.size() == 1 ? "free stride" : "free strides", {strides_.begin(), strides_.end()});
    const std::vector<std::string> fields{
        fields_.begin(), fields_.begin() + static_cast<std::ptrdiff_t>(std::min(fields_.size(), place.fields))};
    add(use_field, fields.size() == 1 ? "field" : "fields", fields);
    add(use_let, of(use_let).size() == 1 ? "[let] name" : "[let] names", of(use_let));
    if (place.uses & use_limit) all.insert(all.end(), limits.begin(), limits.end());
    std::string meant = did_you_mean(name, all);
    if (meant.empty()) meant = lists.empty() ? "; there are no names here" : "; " + lists;
    document_->fail_inside(node, expression.offset_of(name), name.size(),
                           fmt::format("unknown name '{}' in {}{}", name, place.what, meant));
}

}  // namespace autotune
