#ifndef AUTOTUNE_MODEL_PARAMETER_GROUP_H
#define AUTOTUNE_MODEL_PARAMETER_GROUP_H

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tuner/model/claims.h"
#include "tuner/model/condition_states.h"
#include "tuner/model/diagram.h"

namespace autotune {

/// Parameters of a variant that conditions connect, with all that is valid of them: groups know nothing of each other,
/// so a variant's valid configs are the products of its groups' rows.
struct ParameterGroup {
    std::vector<std::size_t> order;  ///< its parameters, by slot, in the order of the rows' values
    Diagram diagram = {};
    double raw = 1;                     ///< product of the value counts
    std::vector<double> rejected = {};  ///< raw rows a claim cut off, by claim
};

/// What building a group may take before it is given up.
struct GroupLimits {
    std::uint64_t steps = 0;  ///< values tried after a node; one that folds an expression counts as some hundred
    std::size_t edges = 0;    ///< memory: 24 bytes each
    std::size_t words = 0;    ///< memory of the states of one layer's nodes: 4 bytes each
    /// Combinations of a condition that are tabulated: ConditionStates::few or many.
    std::size_t tabulated = ConditionStates::few;
};

/// The parameters of conditions that share some, and each free one alone; each in file order, by their first.
std::vector<std::vector<std::size_t>> connected(std::size_t parameters, std::span<const Condition> conditions);

/// The order in which the fewest parameters wait for others, chosen one by one.
std::vector<std::size_t> closing_order(std::vector<std::size_t> slots, std::span<const Parameter> parameters,
                                       std::span<const Condition> conditions);

/// Walks all nodes of a layer at once, value by value, and merges those whose conditions ask the same of the rest.
/// conditions  those over the slots of `order`, in the order of their claims
/// returns     nullopt when it takes more than the limits allow
std::optional<ParameterGroup> build_group(std::vector<std::size_t> order, std::span<const Parameter> parameters,
                                          std::span<const Condition> conditions, std::size_t claims,
                                          const GroupLimits& limits);

}  // namespace autotune
#endif
