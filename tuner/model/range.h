#ifndef AUTOTUNE_MODEL_RANGE_H
#define AUTOTUNE_MODEL_RANGE_H

#include <limits>
#include <optional>
#include <span>

#include "tuner/model/evaluator.h"

// Inside of tuner/model: what an expression can come to while some of its slots are open, from the least and the
// greatest value of each. Sound, and content with "anything" for what it does not follow.

namespace autotune {

struct Range {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool whole = false;    ///< integers or booleans only
    bool may_fail = true;  ///< it may have no value
    bool nothing = false;  ///< it has none for sure

    static Range of(double low, double high, bool whole, bool may_fail = false) noexcept {
        return {low, high, whole, may_fail, false};
    }
    /// Of a list of values; anything when there is a word among them.
    static Range of(std::span<const Value> values) noexcept;
};

/// slots: one a slot; those that do not stand in the tree may be anything
Range range_of(const ExpressionNode& node, std::span<const Range> slots) noexcept;

/// Whether a condition holds: true or false whatever the open slots become, where "has no value" counts as false.
std::optional<bool> decided(const ExpressionNode& node, std::span<const Range> slots) noexcept;

}  // namespace autotune
#endif
