#include "tuner/model/range.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace autotune {
namespace {

/// Integers up to here, their quotients and floors are exact as doubles.
constexpr double exact_at_most = 0x1p52;

bool bounded(const Range& range) noexcept {
    return std::abs(range.low) <= exact_at_most && std::abs(range.high) <= exact_at_most;
}

Range truth(bool may_be_false, bool may_be_true, bool may_fail) noexcept {
    return Range::of(may_be_false ? 0.0 : 1.0, may_be_true ? 1.0 : 0.0, true, may_fail);
}

bool surely_false(const Range& range) noexcept { return range.nothing || (range.low == 0.0 && range.high == 0.0); }
bool never_zero(const Range& range) noexcept { return !range.nothing && (range.low > 0.0 || range.high < 0.0); }

/// The hull of what an operation gives at the corners, where it is monotone in each operand between them. Beyond exact
/// integers there may be overflow and rounding, and nothing is claimed.
Range hull(std::initializer_list<double> corners, const Range& a, const Range& b, bool whole) noexcept {
    const auto [low, high] = std::minmax(corners);
    const Range out = Range::of(low, high, whole, a.may_fail || b.may_fail);
    return bounded(out) ? out : Range{};
}

Range arithmetic_range(NodeKind kind, const Range& a, const Range& b) noexcept {
    if (a.nothing || b.nothing) return {.nothing = true};
    if (!bounded(a) || !bounded(b)) return {};
    const bool whole = a.whole && b.whole;
    switch (kind) {
        case NodeKind::add:
            return hull({a.low + b.low, a.high + b.high}, a, b, whole);
        case NodeKind::subtract:
            return hull({a.low - b.high, a.high - b.low}, a, b, whole);
        case NodeKind::multiply:
            return hull({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high}, a, b, whole);
        default:
            break;
    }
    if (b.low <= 0.0 && b.high >= 0.0) return {};
    const auto quotients = [&](auto&& rounded, bool whole_quotient) {
        return hull(
            {rounded(a.low / b.low), rounded(a.low / b.high), rounded(a.high / b.low), rounded(a.high / b.high)}, a, b,
            whole_quotient);
    };
    switch (kind) {
        case NodeKind::divide:
            return quotients([](double x) { return x; }, false);
        case NodeKind::floor_divide:
            return whole ? quotients([](double x) { return std::floor(x); }, true) : Range{};
        case NodeKind::modulo:
            if (!whole || b.low < 0.0) return {};
            if (a.low >= 0.0 && a.high < b.low) return Range::of(a.low, a.high, true, a.may_fail || b.may_fail);
            return Range::of(0.0, a.low >= 0.0 ? std::min(a.high, b.high - 1) : b.high - 1, true,
                             a.may_fail || b.may_fail);
        default:
            return {};  // a power
    }
}

Range relation_range(Relation relation, const Range& a, const Range& b) noexcept {
    const bool may_fail = a.may_fail || b.may_fail;
    const bool less = a.low < b.high, equal = a.low <= b.high && b.low <= a.high, greater = a.high > b.low;
    const auto of = [&](bool may_be_true, bool may_be_false) { return truth(may_be_false, may_be_true, may_fail); };
    const bool same = a.low == a.high && b.low == b.high && a.low == b.low;
    switch (relation) {
        case Relation::equal:
            return of(equal, !same);
        case Relation::not_equal:
            return of(!same, equal);
        case Relation::less:
            return of(less, a.high >= b.low);
        case Relation::less_equal:
            return of(a.low <= b.high, greater);
        case Relation::greater:
            return of(greater, a.low <= b.high);
        case Relation::greater_equal:
            return of(a.high >= b.low, less);
        default:
            return truth(true, true, true);  // in a list
    }
}

Range chain_range(const ExpressionNode& node, std::span<const Range> slots) noexcept {
    bool may_fail = false, may_be_false = false;
    Range left = range_of(*node.children[0], slots);
    if (left.nothing) return left;
    for (std::size_t i = 0; i < node.relations.size(); ++i) {
        const bool list = node.relations[i] == Relation::in || node.relations[i] == Relation::not_in;
        const Range right = list ? Range{} : range_of(*node.children[i + 1], slots);
        const Range holds = relation_range(node.relations[i], left, right);
        may_fail = may_fail || holds.may_fail;
        // What follows a link that never holds is not looked at, nor what follows one that has no value.
        if (right.nothing || surely_false(holds)) return truth(true, false, may_fail);
        may_be_false = may_be_false || holds.low == 0.0;
        left = right;
    }
    return truth(may_be_false, true, may_fail);
}

Range logical_range(const ExpressionNode& node, std::span<const Range> slots) noexcept {
    const bool all = node.kind == NodeKind::logical_and;
    bool may_fail = false, open = false;
    for (const auto& child : node.children) {
        const Range operand = range_of(*child, slots);
        may_fail = may_fail || operand.may_fail;
        if (all && surely_false(operand)) return truth(true, false, may_fail);
        if (!all && never_zero(operand)) return truth(false, true, may_fail);
        open = open || operand.nothing || !(all ? never_zero(operand) : surely_false(operand));
    }
    return all ? truth(open, true, may_fail) : truth(true, open, may_fail);
}

Range conditional_range(const ExpressionNode& node, std::span<const Range> slots) noexcept {
    const Range condition = range_of(*node.children[0], slots);
    if (condition.nothing) return condition;
    const Range yes = range_of(*node.children[1], slots), no = range_of(*node.children[2], slots);
    Range out = never_zero(condition)       ? yes
                : surely_false(condition)   ? no
                : yes.nothing || no.nothing ? Range{}
                                            : Range::of(std::min(yes.low, no.low), std::max(yes.high, no.high),
                                                        yes.whole && no.whole, yes.may_fail || no.may_fail);
    out.may_fail = out.may_fail || condition.may_fail;
    return out;
}

Range pair_range(Function function, const Range& a, const Range& b) noexcept {
    const bool may_fail = a.may_fail || b.may_fail, whole = a.whole && b.whole;
    const auto blocks = [&](double x, double y) { return std::ceil(x / y); };
    switch (function) {
        case Function::minimum:
            return Range::of(std::min(a.low, b.low), std::min(a.high, b.high), whole, may_fail);
        case Function::maximum:
            return Range::of(std::max(a.low, b.low), std::max(a.high, b.high), whole, may_fail);
        case Function::ceil_div:
            if (!whole || !bounded(a) || !bounded(b) || a.low < 0.0 || b.low <= 0.0) return {};
            return hull({blocks(a.low, b.high), blocks(a.high, b.low)}, a, b, true);
        case Function::round_up:
            if (!whole || !bounded(a) || !bounded(b) || a.low < 0.0 || b.low <= 0.0) return {};
            return hull({a.low, a.high + b.high - 1}, a, b, true);
        default:
            return {};
    }
}

Range call_range(const ExpressionNode& node, std::span<const Range> slots) noexcept {
    Range out = range_of(*node.children[0], slots);
    if (out.nothing) return out;
    for (std::size_t i = 1; i < node.children.size(); ++i) {
        const Range next = range_of(*node.children[i], slots);
        if (next.nothing) return next;
        out = pair_range(node.function, out, next);
    }
    if (node.children.size() > 1) return out;
    switch (node.function) {
        case Function::minimum:
        case Function::maximum:
            return out;
        case Function::absolute:
            if (!bounded(out)) return {};
            return Range::of(out.low > 0.0    ? out.low
                             : out.high < 0.0 ? -out.high
                                              : 0.0,
                             std::max(std::abs(out.low), std::abs(out.high)), out.whole, out.may_fail);
        case Function::i64:
            return out.whole ? out : Range{};
        case Function::i32:
            return out.whole && out.low >= -0x1p31 && out.high < 0x1p31 ? out : Range{};
        default:
            return {};
    }
}

}  // namespace

Range Range::of(std::span<const Value> values) noexcept {
    Range out{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), true, false, false};
    for (const Value& value : values) {
        const Cell cell = Cell::of(value);
        if (!cell.numeric() || std::isnan(cell.number()) || std::abs(cell.number()) > exact_at_most) return {};
        out.low = std::min(out.low, cell.number());
        out.high = std::max(out.high, cell.number());
        out.whole = out.whole && cell.whole();
    }
    return out;
}

Range range_of(const ExpressionNode& node, std::span<const Range> slots) noexcept {
    switch (node.kind) {
        case NodeKind::constant:
            return Range::of(std::span{&node.value, 1});
        case NodeKind::slot:
            return slots[node.slot];
        case NodeKind::failure:
            return {.nothing = true};
        case NodeKind::negate: {
            const Range a = range_of(*node.children[0], slots);
            return arithmetic_range(NodeKind::subtract, Range::of(0.0, 0.0, true), a);
        }
        case NodeKind::logical_not: {
            const Range a = range_of(*node.children[0], slots);
            if (a.nothing) return a;
            return truth(!surely_false(a), !never_zero(a), a.may_fail);
        }
        case NodeKind::logical_and:
        case NodeKind::logical_or:
            return logical_range(node, slots);
        case NodeKind::conditional:
            return conditional_range(node, slots);
        case NodeKind::compare:
            return chain_range(node, slots);
        case NodeKind::call:
            return call_range(node, slots);
        case NodeKind::add:
        case NodeKind::subtract:
        case NodeKind::multiply:
        case NodeKind::divide:
        case NodeKind::floor_divide:
        case NodeKind::modulo:
            return arithmetic_range(node.kind, range_of(*node.children[0], slots), range_of(*node.children[1], slots));
        default:
            return {};
    }
}

std::optional<bool> decided(const ExpressionNode& node, std::span<const Range> slots) noexcept {
    const Range range = range_of(node, slots);
    if (surely_false(range)) return false;
    if (!range.may_fail && never_zero(range)) return true;
    return std::nullopt;
}

}  // namespace autotune
