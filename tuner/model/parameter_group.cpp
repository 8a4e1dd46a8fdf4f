#include "tuner/model/parameter_group.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tuner/model/condition_states.h"
#include "tuner/model/tuple_numbers.h"

namespace autotune {
namespace {

std::uint64_t bit_of(std::size_t slot) { return std::uint64_t{1} << slot; }

constexpr std::size_t nowhere = ~std::size_t{0};

/// A condition on its way through the layers.
struct Running {
    std::size_t claim = 0;
    ConditionStates states;
    std::vector<std::size_t> layers;  ///< where its parameters stand
};

/// What one layer's value does to one condition. A node is the states of the conditions that have begun and not ended.
struct Move {
    std::size_t condition = 0, level = 0;
    std::size_t from = nowhere;  ///< its place in the node before; nowhere: it begins here
    std::size_t to = nowhere;    ///< its place in the node behind; nowhere: it ends here
};

struct LayerPlan {
    std::vector<Move> asked;    ///< conditions over this layer's parameter
    std::vector<Move> carried;  ///< others
    std::size_t width = 0;      ///< of the nodes behind it
};

std::vector<LayerPlan> plans_of(std::span<const Running> conditions, std::size_t layers) {
    std::vector<LayerPlan> plans(layers);
    std::vector<std::size_t> before(conditions.size(), nowhere);
    for (std::size_t l = 0; l < layers; ++l)
        for (std::size_t c = 0; c < conditions.size(); ++c) {
            const auto& mine = conditions[c].layers;
            const auto found = std::ranges::find(mine, l);
            if (found == mine.end() && before[c] == nowhere) continue;
            Move move{.condition = c, .from = before[c]};
            if (l < mine.back()) move.to = plans[l].width++;
            before[c] = move.to;
            if (found == mine.end()) {
                plans[l].carried.push_back(move);
            } else {
                move.level = static_cast<std::size_t>(found - mine.begin());
                plans[l].asked.push_back(move);
            }
        }
    return plans;
}

class GroupBuilder {
public:
    GroupBuilder(ParameterGroup& group, std::span<const Parameter> parameters, const GroupLimits& limits)
        : group_{group}, parameters_{parameters}, limits_{limits} {}

    /// False when the limits end it.
    bool add(const Condition& condition) {
        std::vector<std::size_t> slots, layers;
        for (std::size_t l = 0; l < group_.order.size(); ++l)
            if (condition.holds.used() & bit_of(group_.order[l])) {
                slots.push_back(group_.order[l]);
                layers.push_back(l);
            }
        ConditionStates states{condition.holds, parameters_, std::move(slots), limits_.tabulated};
        steps_ += states.fold_steps();
        if (states.start() == ConditionStates::fails && !broken_) broken_ = condition.claim;
        if (states.start() != ConditionStates::holds)
            conditions_.push_back({condition.claim, std::move(states), std::move(layers)});
        return steps_ <= limits_.steps;
    }

    /// False when the limits end it.
    bool run() {
        const std::size_t layers = group_.order.size();
        std::vector<Diagram::Layer> built(layers);
        if (broken_) {
            group_.rejected[*broken_] += group_.raw;
            built[0].first = {0};
            built.resize(1);
            group_.diagram = Diagram{built};
            return true;
        }
        plans_ = plans_of(conditions_, layers);
        TupleNumbers nodes{0};
        nodes.number({});
        std::vector<double> paths{1.0};
        for (std::size_t l = 0; l < layers; ++l) {
            TupleNumbers behind{plans_[l].width};
            if (!walk(l, nodes, paths, behind, built[l])) return false;
            nodes = std::move(behind);
            paths = std::move(paths_behind_);
        }
        group_.diagram = Diagram{built};
        return true;
    }

private:
    bool walk(std::size_t layer, const TupleNumbers& nodes, const std::vector<double>& paths, TupleNumbers& behind,
              Diagram::Layer& out) {
        const LayerPlan& plan = plans_[layer];
        const std::size_t values = parameters_[group_.order[layer]].values.size();
        const double below = raw_below(layer + 1);
        // Each value is asked of some conditions, and the states of all make the node behind it.
        const std::uint64_t each = 1 + (plan.asked.size() + plan.width) / 16;
        std::vector<std::uint32_t> tuple(plan.width);
        paths_behind_.clear();
        for (std::size_t n = 0; n < nodes.size(); ++n) {
            steps_ += values * each;
            if (steps_ > limits_.steps || edges_ + out.steps.size() > limits_.edges ||
                behind.size() * plan.width > limits_.words)
                return false;
            out.first.push_back(out.steps.size());
            const auto node = nodes[n];
            for (const Move& move : plan.carried) tuple[move.to] = node[move.from];
            for (std::size_t value = 0; value < values; ++value) {
                const auto broken = moved(plan, node, value, tuple);
                if (steps_ > limits_.steps) return false;  // a state may keep a row of 65,535 values
                if (broken) {
                    group_.rejected[*broken] += paths[n] * below;
                    continue;
                }
                const std::uint32_t target = behind.number(tuple);
                if (target == paths_behind_.size()) paths_behind_.push_back(0.0);
                paths_behind_[target] += paths[n];
                out.steps.push_back({target, static_cast<std::uint16_t>(value)});
            }
        }
        edges_ += out.steps.size();
        return true;
    }

    /// The claim that fails with this value, or none and the states behind it.
    std::optional<std::size_t> moved(const LayerPlan& plan, std::span<const std::uint32_t> node, std::size_t value,
                                     std::span<std::uint32_t> tuple) {
        for (const Move& move : plan.asked) {
            Running& condition = conditions_[move.condition];
            std::uint32_t state = move.from == nowhere ? condition.states.start() : node[move.from];
            if (state != ConditionStates::holds) {
                const std::uint64_t before = condition.states.fold_steps();
                state = condition.states.next(move.level, state, value);
                steps_ += condition.states.fold_steps() - before;
            }
            if (state == ConditionStates::fails) return condition.claim;
            if (move.to != nowhere) tuple[move.to] = state;
        }
        return std::nullopt;
    }

    double raw_below(std::size_t layer) const {
        double out = 1;
        for (std::size_t l = layer; l < group_.order.size(); ++l)
            out *= static_cast<double>(parameters_[group_.order[l]].values.size());
        return out;
    }

    ParameterGroup& group_;
    std::span<const Parameter> parameters_;
    const GroupLimits& limits_;
    std::optional<std::size_t> broken_;
    std::vector<Running> conditions_;
    std::vector<LayerPlan> plans_;
    std::vector<double> paths_behind_;  ///< raw ways to each node of the next layer
    std::uint64_t steps_ = 0;
    std::size_t edges_ = 0;
};

}  // namespace

std::vector<std::vector<std::size_t>> connected(std::size_t parameters, std::span<const Condition> conditions) {
    std::vector<std::uint64_t> masks;
    for (std::size_t slot = 0; slot < parameters; ++slot) masks.push_back(bit_of(slot));
    for (const Condition& condition : conditions) {
        std::uint64_t joined = condition.holds.used();
        if (joined == 0) continue;
        std::erase_if(masks, [&](std::uint64_t mask) {
            const bool mine = (mask & condition.holds.used()) != 0;
            if (mine) joined |= mask;
            return mine;
        });
        masks.push_back(joined);
    }
    std::vector<std::vector<std::size_t>> out;
    for (const std::uint64_t mask : masks) {
        out.emplace_back();
        for (std::size_t slot = 0; slot < parameters; ++slot)
            if (mask & bit_of(slot)) out.back().push_back(slot);
    }
    std::ranges::sort(out);
    return out;
}

std::vector<std::size_t> closing_order(std::vector<std::size_t> slots, std::span<const Parameter> parameters,
                                       std::span<const Condition> conditions) {
    std::vector<std::size_t> order;
    std::uint64_t placed = 0;
    const auto waiting = [&](std::uint64_t chosen) {
        std::uint64_t open = 0;
        for (const Condition& condition : conditions)
            if ((condition.holds.used() & ~chosen) != 0) open |= condition.holds.used() & chosen;
        double out = 0;
        for (std::size_t slot = 0; slot < parameters.size(); ++slot)
            if (open & bit_of(slot)) out += std::log2(static_cast<double>(parameters[slot].values.size()));
        return out;
    };
    while (!slots.empty()) {
        std::size_t best = 0;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < slots.size(); ++i)
            if (const double cost = waiting(placed | bit_of(slots[i])); cost < least) {
                least = cost;
                best = i;
            }
        placed |= bit_of(slots[best]);
        order.push_back(slots[best]);
        slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(best));
    }
    return order;
}

std::optional<ParameterGroup> build_group(std::vector<std::size_t> order, std::span<const Parameter> parameters,
                                          std::span<const Condition> conditions, std::size_t claims,
                                          const GroupLimits& limits) {
    ParameterGroup group{.order = std::move(order)};
    for (const std::size_t slot : group.order) group.raw *= static_cast<double>(parameters[slot].values.size());
    group.rejected.assign(claims, 0.0);
    GroupBuilder builder{group, parameters, limits};
    for (const Condition& condition : conditions)
        if (!builder.add(condition)) return std::nullopt;
    if (!builder.run()) return std::nullopt;
    return group;
}

}  // namespace autotune
