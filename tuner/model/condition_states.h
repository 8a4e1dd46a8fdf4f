#ifndef AUTOTUNE_MODEL_CONDITION_STATES_H
#define AUTOTUNE_MODEL_CONDITION_STATES_H

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tuner/model/bound_expression.h"
#include "tuner/model/op.h"
#include "tuner/model/range.h"

namespace autotune {

/// A condition as a machine that reads its parameters' values one by one: what it still asks of the rest is its state,
/// and values that leave the same to ask lead to the same state. One over few combinations is tabulated at once, so
/// that it fails at the first value after which nothing can save it. One over many folds its expression value by value
/// when it is asked, and takes what the ranges of the open parameters decide: of far fewer values where many leave the
/// same to ask, and dearer than a table by far where none do.
class ConditionStates {
public:
    static constexpr std::uint32_t fails = 0, holds = 1;
    /// Combinations in a table: what takes a millisecond, and what takes a second.
    static constexpr std::size_t few = std::size_t{1} << 15, many = std::size_t{1} << 22;
    static constexpr std::uint64_t table_steps_at_most = std::uint64_t{1} << 26;

    /// What a table of the condition takes, in look-ups of one; nullopt: it has more combinations than that, or takes
    /// more than `table_steps_at_most`.
    static std::optional<std::uint64_t> table_steps(const BoundExpression& condition,
                                                    std::span<const Parameter> parameters,
                                                    std::size_t tabulated_at_most);

    /// parameters         of the variant, by slot
    /// order              the slots the condition uses, in the order in which their values come; at least one
    /// tabulated_at_most  combinations, `few` or `many`: see table_steps()
    ConditionStates(const BoundExpression& condition, std::span<const Parameter> parameters,
                    std::vector<std::size_t> order, std::size_t tabulated_at_most);

    const std::vector<std::size_t>& order() const noexcept { return order_; }
    std::uint32_t start() const noexcept { return start_; }
    /// After the value of order()[level], by its index; `state` is what the value before led to, and not an end.
    std::uint32_t next(std::size_t level, std::uint32_t state, std::size_t value);
    /// What folding and tabulating took so far, in look-ups of a table. What is kept takes some eight bytes for each.
    std::uint64_t fold_steps() const noexcept { return fold_steps_; }

private:
    /// What can be left to ask before the value of one level.
    struct Level {
        std::size_t values = 0;
        std::vector<std::uint32_t> next;     ///< a state's rows one after another; the first two are the ends'
        std::vector<BoundExpression> asked;  ///< of each state, where the condition is folded
        std::map<std::string, std::uint32_t> known;
    };

    void tabulate(const BoundExpression& condition);
    std::uint32_t folded(std::size_t level, const BoundExpression& asked);

    std::span<const Parameter> parameters_;
    std::vector<std::size_t> order_;
    std::vector<Level> levels_;
    std::vector<Range> ranges_;  ///< by slot
    std::uint32_t start_ = fails;
    std::uint64_t fold_steps_ = 0;
};

}  // namespace autotune
#endif
