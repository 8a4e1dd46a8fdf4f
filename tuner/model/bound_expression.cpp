#include "tuner/model/bound_expression.h"

#include <fmt/format.h>

#include <algorithm>

#include "autotune/error.h"

namespace autotune {
namespace {

using NodePtr = std::shared_ptr<const ExpressionNode>;

/// A let stands wherever it is used, so forty that each use the one before twice would be a million million parts.
constexpr std::size_t parts_at_most = 1 << 20;

struct SlotNames {
    std::span<const Cell> values;
    Cell name(const ExpressionNode& node) const {
        // A plain name is left only by a let that depends on itself.
        return node.kind == NodeKind::slot ? values[node.slot] : Cell::failure(Fault::unknown_name, node);
    }
    Cell tensor_fact(const ExpressionNode& node) const { return Cell::failure(Fault::unknown_tensor, node); }
};

/// A pointer to what somebody else owns.
NodePtr borrowed(const ExpressionNode& node) { return NodePtr{NodePtr{}, &node}; }

bool is_constant(const NodePtr& node) { return node->kind == NodeKind::constant; }
bool is_known(const NodePtr& node) { return is_constant(node) || node->kind == NodeKind::failure; }

NodePtr rebuilt(const ExpressionNode& node, std::vector<NodePtr> children) {
    ExpressionNode out = node;
    out.children = std::move(children);
    for (const NodePtr& child : out.children) out.slots |= child->slots;
    return std::make_shared<const ExpressionNode>(std::move(out));
}

/// The node as the value or the failure that it always is.
NodePtr folded(const ExpressionNode& node, const Cell& cell) {
    ExpressionNode out;
    out.offset = node.offset;
    out.piece = node.piece;
    if (cell.failed()) {
        out.kind = NodeKind::failure;
        out.fault = cell.fault;
        out.piece = cell.where->piece;
        out.name = cell.where->name;
    } else {
        out.value = cell.value();
    }
    return std::make_shared<const ExpressionNode>(std::move(out));
}

template <class Leaf>
NodePtr fold(const NodePtr& node, Leaf& leaf);

/// Known operands at the front are decided now; one behind an unknown operand keeps its turn.
template <class Leaf>
NodePtr fold_logical(const ExpressionNode& node, Leaf& leaf) {
    const bool ends = node.kind == NodeKind::logical_or;
    std::vector<NodePtr> operands;
    for (const auto& child : node.children) {
        NodePtr operand = fold(child, leaf);
        if (operands.empty() && is_known(operand)) {
            const Cell truth = evaluator::truth_of(evaluate(*operand, SlotNames{{}}), *operand);
            if (truth.failed() || truth.truth() == ends) return folded(node, truth);
            continue;
        }
        operands.push_back(std::move(operand));
    }
    if (operands.empty()) return folded(node, Cell::of(!ends));
    return rebuilt(node, std::move(operands));
}

/// Rebuilds a tree and folds what can be. leaf(node) gives what stands in a part's place; nullptr: look inside.
template <class Leaf>
NodePtr fold(const NodePtr& node, Leaf& leaf) {
    if (NodePtr instead = leaf(node)) return instead;
    if (node->kind == NodeKind::logical_and || node->kind == NodeKind::logical_or) return fold_logical(*node, leaf);
    if (node->kind == NodeKind::conditional) {
        const NodePtr condition = fold(node->children[0], leaf);
        if (!is_known(condition))
            return rebuilt(*node, {condition, fold(node->children[1], leaf), fold(node->children[2], leaf)});
        const Cell truth = evaluator::truth_of(evaluate(*condition, SlotNames{{}}), *condition);
        return truth.failed() ? folded(*node, truth) : fold(node->children[truth.truth() ? 1 : 2], leaf);
    }
    std::vector<NodePtr> children;
    for (const auto& child : node->children) children.push_back(fold(child, leaf));
    // A comparison that ends at a false link does not look at the rest, so a failure there must stay unevaluated:
    // evaluating the whole does just that.
    const bool all_known = std::ranges::all_of(children, [](const NodePtr& child) {
        return is_known(child) || (child->kind == NodeKind::list && std::ranges::all_of(child->children, is_known));
    });
    NodePtr out = rebuilt(*node, std::move(children));
    if (!all_known || node->kind == NodeKind::list) return out;
    return folded(*node, evaluate(*out, SlotNames{{}}));
}

/// Puts slots and values where names stand.
class Binder {
public:
    Binder(const Scope& known, std::span<const std::string> slots,
           std::span<const std::pair<std::string, Expression>> lets, std::string_view whole)
        : known_{known}, slots_{slots}, lets_{lets}, whole_{whole} {}

    NodePtr operator()(const NodePtr& node) {
        if (++parts_ > parts_at_most)
            throw Error{Error::Kind::usage,
                        fmt::format("an expression has more than {} parts, once the lets it uses are "
                                    "put in: {}",
                                    parts_at_most, whole_)};
        switch (node->kind) {
            case NodeKind::constant:
            case NodeKind::failure:
                return std::make_shared<const ExpressionNode>(*node);
            case NodeKind::name:
                return bind_name(*node);
            case NodeKind::tensor_fact:
                return bind_tensor_fact(*node);
            default:
                return nullptr;
        }
    }

private:
    NodePtr bind_name(const ExpressionNode& node) {
        const auto slot = std::ranges::find(slots_, node.name);
        if (slot != slots_.end()) {
            ExpressionNode out = node;
            out.kind = NodeKind::slot;
            out.slot = static_cast<std::uint32_t>(slot - slots_.begin());
            out.slots = std::uint64_t{1} << out.slot;
            return std::make_shared<const ExpressionNode>(std::move(out));
        }
        const auto let = std::ranges::find(lets_, node.name, &std::pair<std::string, Expression>::first);
        if (let != lets_.end()) {
            if (std::ranges::find(running_, node.name) != running_.end() || let->second.empty())
                return folded(node, Cell::failure(Fault::unknown_name, node));
            if (running_.size() == lets_deep_at_most) throw Error{Error::Kind::usage, lets_too_deep(node.name)};
            running_.push_back(node.name);
            NodePtr out = fold(borrowed(*let->second.node()), *this);
            running_.pop_back();
            return out;
        }
        const Value* value = known_.find(node.name);
        return folded(node, value ? Cell::of(*value) : Cell::failure(Fault::unknown_name, node));
    }

    NodePtr bind_tensor_fact(const ExpressionNode& node) {
        if (node.function == Function::contiguous) {
            const auto fact = known_.tensor_contiguous(node.name);
            return folded(node, fact ? Cell::of(*fact) : Cell::failure(Fault::unknown_tensor, node));
        }
        const auto fact =
            node.function == Function::align ? known_.tensor_align(node.name) : known_.tensor_sum(node.name);
        return folded(node, fact ? Cell::of(*fact) : Cell::failure(Fault::unknown_tensor, node));
    }

    const Scope& known_;
    std::span<const std::string> slots_;
    std::span<const std::pair<std::string, Expression>> lets_;
    std::string_view whole_;
    std::vector<std::string> running_;
    std::size_t parts_ = 0;
};

}  // namespace

BoundExpression::BoundExpression(const Expression& expression, const Scope& known, std::span<const std::string> slots,
                                 std::span<const std::pair<std::string, Expression>> lets) {
    Binder binder{known, slots, lets, expression.text()};
    root_ = fold(borrowed(*expression.node()), binder);
}

BoundExpression::BoundExpression(const std::shared_ptr<const ExpressionNode>& parts) {
    auto nothing = [](const NodePtr& node) { return is_known(node) || node->kind == NodeKind::slot ? node : nullptr; };
    root_ = fold(parts, nothing);
}

BoundExpression BoundExpression::with(std::size_t slot, const Cell& value) const {
    const std::uint64_t bit = std::uint64_t{1} << slot;
    auto substituted = [&](const NodePtr& node) {
        if ((node->slots & bit) == 0) return node;
        return node->kind == NodeKind::slot ? folded(*node, value) : nullptr;
    };
    BoundExpression out;
    out.root_ = fold(root_, substituted);
    return out;
}

std::vector<BoundExpression> BoundExpression::conjuncts() const {
    if (root_->kind != NodeKind::logical_and) return {*this};
    std::vector<BoundExpression> out;
    for (const auto& operand : root_->children)
        for (BoundExpression& part : BoundExpression{operand}.conjuncts()) out.push_back(std::move(part));
    return out;
}

Cell BoundExpression::evaluate(std::span<const Cell> values) const {
    return autotune::evaluate(*root_, SlotNames{values});
}

}  // namespace autotune
