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

bool is_constant(const NodePtr& node) { return node->kind == NodeKind::constant; }
bool is_known(const NodePtr& node) { return is_constant(node) || node->kind == NodeKind::failure; }

class Binder {
public:
    Binder(const Scope& known, std::span<const std::string> slots,
           std::span<const std::pair<std::string, Expression>> lets, std::string_view whole)
        : known_{known}, slots_{slots}, lets_{lets}, whole_{whole} {}

    NodePtr bind(const ExpressionNode& node) {
        if (++parts_ > parts_at_most)
            throw Error{Error::Kind::usage,
                        fmt::format("an expression has more than {} parts, once the lets it uses are "
                                    "put in: {}",
                                    parts_at_most, whole_)};
        switch (node.kind) {
            case NodeKind::constant:
            case NodeKind::failure:
                return std::make_shared<const ExpressionNode>(node);
            case NodeKind::name:
                return bind_name(node);
            case NodeKind::tensor_fact:
                return bind_tensor_fact(node);
            case NodeKind::conditional: {
                const NodePtr condition = bind(*node.children[0]);
                if (!is_known(condition))
                    return rebuilt(node, {condition, bind(*node.children[1]), bind(*node.children[2])});
                const Cell truth = evaluator::truth_of(evaluate(*condition, SlotNames{{}}), *condition);
                return truth.failed() ? folded(node, truth) : bind(*node.children[truth.truth() ? 1 : 2]);
            }
            case NodeKind::logical_and:
            case NodeKind::logical_or:
                return bind_logical(node);
            default:
                break;
        }
        std::vector<NodePtr> children;
        for (const auto& child : node.children) children.push_back(bind(*child));
        // A comparison that ends at a false link does not look at the rest, so a failure there must stay unevaluated:
        // evaluating the whole does just that.
        const bool all_known = std::ranges::all_of(children, [](const NodePtr& child) {
            return is_known(child) || (child->kind == NodeKind::list && std::ranges::all_of(child->children, is_known));
        });
        NodePtr out = rebuilt(node, std::move(children));
        if (!all_known || node.kind == NodeKind::list) return out;
        return folded(node, evaluate(*out, SlotNames{{}}));
    }

private:
    NodePtr bind_name(const ExpressionNode& node) {
        const auto slot = std::ranges::find(slots_, node.name);
        if (slot != slots_.end()) {
            ExpressionNode out = node;
            out.kind = NodeKind::slot;
            out.slot = static_cast<std::uint32_t>(slot - slots_.begin());
            return std::make_shared<const ExpressionNode>(std::move(out));
        }
        const auto let = std::ranges::find(lets_, node.name, &std::pair<std::string, Expression>::first);
        if (let != lets_.end()) {
            if (std::ranges::find(running_, node.name) != running_.end() || let->second.empty())
                return folded(node, Cell::failure(Fault::unknown_name, node));
            if (running_.size() == lets_deep_at_most) throw Error{Error::Kind::usage, lets_too_deep(node.name)};
            running_.push_back(node.name);
            NodePtr out = bind(*let->second.node());
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

    /// Known operands at the front are decided now; one behind an unknown operand keeps its turn.
    NodePtr bind_logical(const ExpressionNode& node) {
        const bool ends = node.kind == NodeKind::logical_or;
        std::vector<NodePtr> operands;
        for (const auto& child : node.children) {
            NodePtr operand = bind(*child);
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

    static NodePtr rebuilt(const ExpressionNode& node, std::vector<NodePtr> children) {
        ExpressionNode out = node;
        out.children = std::move(children);
        return std::make_shared<const ExpressionNode>(std::move(out));
    }

    /// The node as the value or the failure that it always is.
    static NodePtr folded(const ExpressionNode& node, const Cell& cell) {
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

    const Scope& known_;
    std::span<const std::string> slots_;
    std::span<const std::pair<std::string, Expression>> lets_;
    std::string_view whole_;
    std::vector<std::string> running_;
    std::size_t parts_ = 0;
};

std::uint64_t slots_of(const ExpressionNode& node) {
    std::uint64_t out = node.kind == NodeKind::slot ? std::uint64_t{1} << node.slot : 0;
    for (const auto& child : node.children) out |= slots_of(*child);
    return out;
}

}  // namespace

BoundExpression::BoundExpression(std::shared_ptr<const ExpressionNode> root)
    : root_{std::move(root)}, used_{slots_of(*root_)} {}

BoundExpression::BoundExpression(const Expression& expression, const Scope& known, std::span<const std::string> slots,
                                 std::span<const std::pair<std::string, Expression>> lets)
    : BoundExpression{Binder{known, slots, lets, expression.text()}.bind(*expression.node())} {}

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
