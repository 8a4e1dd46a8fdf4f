#ifndef AUTOTUNE_MODEL_BOUND_EXPRESSION_H
#define AUTOTUNE_MODEL_BOUND_EXPRESSION_H

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tuner/model/evaluator.h"
#include "tuner/model/expression.h"

namespace autotune {

/// An expression in which everything is folded but a few names, the slots: a space binds each constraint once and
/// evaluates it by the million. Lets are put in where they stand. Same evaluator, same meaning, no exceptions.
class BoundExpression {
public:
    BoundExpression() = default;
    /// known     what every other name stands for; it must not answer for the lets
    /// slots     names that get their values at each evaluation; at most 64
    /// The expression must outlive this: failures point into its text. Throws Error{usage} where lets are nested more
    /// than lets_deep_at_most, or make it more than a million parts.
    BoundExpression(const Expression& expression, const Scope& known, std::span<const std::string> slots,
                    std::span<const std::pair<std::string, Expression>> lets);

    /// Of parts that are bound already: a claim put together from them. Throws nothing.
    explicit BoundExpression(const std::shared_ptr<const ExpressionNode>& parts);

    /// With one slot fixed, and folded again.
    BoundExpression with(std::size_t slot, const Cell& value) const;
    /// values  one a slot, in the order of the slots; those that are not used may be anything
    Cell evaluate(std::span<const Cell> values) const;
    /// The operands of its outermost `and`, or itself: all of them hold just where it holds, and each may be decided
    /// before the others' slots have values.
    std::vector<BoundExpression> conjuncts() const;
    /// Bit i: the value of slot i matters.
    std::uint64_t used() const noexcept { return root_->slots; }
    const std::shared_ptr<const ExpressionNode>& root() const noexcept { return root_; }

private:
    std::shared_ptr<const ExpressionNode> root_;
};

}  // namespace autotune
#endif
