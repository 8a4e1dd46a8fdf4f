#include "tuner/model/expression.h"

#include <algorithm>

#include "tuner/model/evaluator.h"
#include "tuner/model/parser.h"

namespace autotune {
namespace {

const std::string no_text;
const std::vector<std::string> no_names;

/// Names of a Scope, for the evaluator.
struct ScopeNames {
    const Scope& scope;

    Cell name(const ExpressionNode& node) const {
        const Value* value = scope.find(node.name);
        return value ? Cell::of(*value) : Cell::failure(Fault::unknown_name, node);
    }
    Cell tensor_fact(const ExpressionNode& node) const {
        if (node.function == Function::contiguous) {
            const auto contiguous = scope.tensor_contiguous(node.name);
            return contiguous ? Cell::of(*contiguous) : Cell::failure(Fault::unknown_tensor, node);
        }
        const auto number =
            node.function == Function::align ? scope.tensor_align(node.name) : scope.tensor_sum(node.name);
        return number ? Cell::of(*number) : Cell::failure(Fault::unknown_tensor, node);
    }
};

struct NoNames final : Scope {
    const Value* find(std::string_view) const override { return nullptr; }
};

/// Where the name itself stands: inside align(x) that is x.
std::optional<std::size_t> found_at(const ExpressionNode& node, std::string_view name) {
    if (node.name == name) return node.offset + node.piece.find(name, node.piece.find('(') + 1);
    for (const auto& child : node.children)
        if (const auto found = found_at(*child, name)) return found;
    return std::nullopt;
}

Cell cell_of(const ExpressionNode* root, const Scope& scope) {
    if (root == nullptr) throw EvaluationError{"nothing is given where an expression is needed"};
    const Cell cell = evaluate(*root, ScopeNames{scope});
    if (cell.failed()) throw EvaluationError{explain(cell)};
    return cell;
}

/// The cell as a number; throws for a word.
Cell number_of(const ExpressionNode* root, const Scope& scope) {
    const Cell cell = cell_of(root, scope);
    if (!cell.numeric()) throw EvaluationError{explain(Cell::failure(Fault::word_as_number, *root))};
    return cell;
}

}  // namespace

Value value_of(const ExpressionNode& node, const Scope& scope) { return cell_of(&node, scope).value(); }

Expression Expression::parse(std::string_view text) {
    Expression expression;
    expression.tree_ = parse_tree(text);
    return expression;
}

Expression Expression::constant(Value value) {
    Expression expression;
    expression.tree_ = constant_tree(std::move(value));
    return expression;
}

const std::string& Expression::text() const noexcept { return tree_ ? tree_->text : no_text; }
const std::vector<std::string>& Expression::names() const noexcept { return tree_ ? tree_->names : no_names; }
const std::vector<std::string>& Expression::tensors() const noexcept { return tree_ ? tree_->tensors : no_names; }
const ExpressionNode* Expression::node() const noexcept { return tree_ ? tree_->root.get() : nullptr; }

bool Expression::uses(std::string_view name) const noexcept {
    return std::ranges::find(names(), name) != names().end();
}

std::size_t Expression::offset_of(std::string_view name) const noexcept {
    return tree_ ? found_at(*tree_->root, name).value_or(0) : 0;
}

std::optional<std::string> Expression::bare_name() const {
    if (tree_ && tree_->root->kind == NodeKind::name) return tree_->root->name;
    return std::nullopt;
}

std::optional<Value> Expression::constant_value() const {
    if (!tree_ || !tree_->names.empty() || !tree_->tensors.empty()) return std::nullopt;
    const Cell cell = autotune::evaluate(*tree_->root, ScopeNames{NoNames{}});
    if (cell.failed()) return std::nullopt;
    return cell.value();
}

Value Expression::evaluate(const Scope& scope) const { return cell_of(node(), scope).value(); }
bool Expression::evaluate_bool(const Scope& scope) const { return number_of(node(), scope).truth(); }
double Expression::evaluate_double(const Scope& scope) const { return number_of(node(), scope).number(); }

std::int64_t Expression::evaluate_integer(const Scope& scope) const {
    const Cell whole = as_integer(number_of(node(), scope), *node());
    if (whole.failed()) throw EvaluationError{explain(whole)};
    return whole.integer;
}

std::string Expression::evaluate_text(const Scope& scope) const {
    const Cell cell = cell_of(node(), scope);
    if (cell.kind != Cell::Kind::text) throw EvaluationError{"'" + text() + "' is a number where a word is needed"};
    return *cell.text;
}

}  // namespace autotune
