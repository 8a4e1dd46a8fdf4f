#include "tuner/model/condition_states.h"

#include <cstring>

#include "tuner/model/tuple_numbers.h"

namespace autotune {
namespace {

constexpr std::uint64_t steps_a_fold = 64;  // and more by what is left: microseconds, where a look-up takes nanoseconds
constexpr std::uint32_t not_asked = ~std::uint32_t{0};

template <class T>
void append(std::string& key, const T& value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    key.append(bytes, sizeof value);
}

/// The same for trees that mean the same by their form, and only for them.
void append_form(std::string& key, const ExpressionNode& node) {
    append(key, node.kind);
    append(key, node.function);
    append(key, node.slot);
    append(key, static_cast<std::uint32_t>(node.children.size()));
    for (const Relation relation : node.relations) append(key, relation);
    if (node.kind == NodeKind::constant) {
        const Cell cell = Cell::of(node.value);
        append(key, cell.kind);
        if (cell.kind == Cell::Kind::text) {
            append(key, cell.text->size());
            key += *cell.text;
        } else {
            append(key, cell.integer);
        }
    }
    for (const auto& child : node.children) append_form(key, *child);
}

std::uint64_t nodes_of(const ExpressionNode& node) {
    std::uint64_t out = 1;
    for (const auto& child : node.children) out += nodes_of(*child);
    return out;
}

bool true_cell(const Cell& cell) noexcept { return cell.numeric() && cell.truth(); }

}  // namespace

std::optional<std::uint64_t> ConditionStates::table_steps(const BoundExpression& condition,
                                                          std::span<const Parameter> parameters,
                                                          std::size_t tabulated_at_most) {
    std::uint64_t combinations = 1;
    for (std::size_t slot = 0; slot < parameters.size(); ++slot) {
        if ((condition.used() >> slot & 1) == 0) continue;
        combinations *= parameters[slot].values.size();
        if (combinations > tabulated_at_most) return std::nullopt;
    }
    const std::uint64_t memory = combinations > few ? 2 * combinations : 0;  // some ten bytes each, which then count
    const std::uint64_t steps = combinations * nodes_of(*condition.root()) / 4 + memory;
    return steps > table_steps_at_most ? std::nullopt : std::optional{steps};
}

ConditionStates::ConditionStates(const BoundExpression& condition, std::span<const Parameter> parameters,
                                 std::vector<std::size_t> order, std::size_t tabulated_at_most)
    : parameters_{parameters}, order_{std::move(order)}, levels_(order_.size()) {
    for (std::size_t i = 0; i < order_.size(); ++i) levels_[i].values = parameters_[order_[i]].values.size();
    if (const auto steps = table_steps(condition, parameters, tabulated_at_most)) {
        fold_steps_ += *steps;
        tabulate(condition);
        return;
    }
    ranges_.resize(parameters_.size());
    for (const std::size_t slot : order_) ranges_[slot] = Range::of(parameters_[slot].values);
    for (Level& level : levels_) {
        level.next.assign(2 * level.values, not_asked);
        level.asked.resize(2);
    }
    start_ = folded(0, condition);
}

std::uint32_t ConditionStates::next(std::size_t level, std::uint32_t state, std::size_t value) {
    const std::size_t place = state * levels_[level].values + value;
    std::uint32_t& known = levels_[level].next[place];
    if (known != not_asked) return known;
    fold_steps_ += steps_a_fold;
    const std::size_t slot = order_[level];
    return known = folded(level + 1, levels_[level].asked[state].with(slot, Cell::of(parameters_[slot].values[value])));
}

/// From the last value backwards: a state is the list of where each value leads.
void ConditionStates::tabulate(const BoundExpression& condition) {
    std::vector<Cell> cells(parameters_.size());
    std::vector<std::size_t> at(order_.size(), 0);
    for (std::size_t i = 0; i < order_.size(); ++i) cells[order_[i]] = Cell::of(parameters_[order_[i]].values[0]);
    std::vector<std::uint32_t> ends;
    for (bool more = true; more;) {
        ends.push_back(true_cell(condition.evaluate(cells)) ? holds : fails);
        more = false;
        for (std::size_t i = order_.size(); i-- > 0 && !more;) {
            more = ++at[i] < levels_[i].values;
            if (!more) at[i] = 0;
            cells[order_[i]] = Cell::of(parameters_[order_[i]].values[at[i]]);
        }
    }
    for (std::size_t i = order_.size(); i-- > 0;) {
        Level& level = levels_[i];
        TupleNumbers states{level.values};
        states.number(std::vector<std::uint32_t>(level.values, fails));
        states.number(std::vector<std::uint32_t>(level.values, holds));
        std::vector<std::uint32_t> before;
        for (std::size_t begin = 0; begin < ends.size(); begin += level.values)
            before.push_back(states.number(std::span{ends}.subspan(begin, level.values)));
        for (std::size_t state = 0; state < states.size(); ++state)
            level.next.insert(level.next.end(), states[state].begin(), states[state].end());
        ends = std::move(before);
    }
    start_ = ends.front();
}

std::uint32_t ConditionStates::folded(std::size_t level, const BoundExpression& asked) {
    const ExpressionNode& node = *asked.root();
    if (node.slots == 0) return true_cell(asked.evaluate({})) ? holds : fails;
    if (const auto already = decided(node, ranges_)) return *already ? holds : fails;
    std::string key;
    append_form(key, node);
    fold_steps_ += key.size() / 2;
    Level& next = levels_[level];
    const auto [found, added] = next.known.emplace(std::move(key), static_cast<std::uint32_t>(next.asked.size()));
    if (added) {
        fold_steps_ += next.values;
        next.asked.push_back(asked);
        next.next.resize(next.next.size() + next.values, not_asked);
    }
    return found->second;
}

}  // namespace autotune
