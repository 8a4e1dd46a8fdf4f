#ifndef AUTOTUNE_MODEL_EVALUATOR_H
#define AUTOTUNE_MODEL_EVALUATOR_H

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/value.h"

// Inside of tuner/model: the tree of an expression and the one evaluator that walks it. `Expression` walks it with a
// Scope (names by text), `BoundExpression` with slots (names by number, everything else folded); spaces evaluate
// millions of constraints, so the core moves 16-byte cells, allocates nothing and throws nothing.

namespace autotune {

enum class NodeKind : std::uint8_t {
    constant,
    name,
    slot,
    failure,
    list,
    negate,
    logical_not,
    logical_and,
    logical_or,
    add,
    subtract,
    multiply,
    divide,
    floor_divide,
    modulo,
    power,
    compare,
    conditional,
    call,
    tensor_fact
};

enum class Relation : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

enum class Function : std::uint8_t {
    minimum,
    maximum,
    absolute,
    ceil_div,
    round_up,
    log2,
    pow2,
    size_of,
    i32,
    i64,
    f32,
    align,
    contiguous,
    sum,
    // Of elements, in chains only (tuner/chains/chain.h); the evaluator has no value for them.
    f16,
    bf16,
    exp,
    log,
    sqrt,
    rsqrt,
    tanh,
    sigmoid,
    relu,
    gelu,
    gelu_tanh,
    silu,
    dropout,
    scalar
};

struct FunctionInfo {
    Function function;
    std::string_view name;
    std::size_t least, most;  ///< how many arguments it takes
};
/// One row a function of op files, in enum order.
std::span<const FunctionInfo> functions() noexcept;

/// Why an expression has no value.
enum class Fault : std::uint8_t {
    none,
    unknown_name,
    unknown_tensor,
    overflow,
    division_by_zero,
    not_finite,
    word_as_number,
    number_as_word,
    word_order,
    not_whole,
    not_positive,
    not_a_dtype,
    beyond_32_bits
};

struct ExpressionNode {
    NodeKind kind = NodeKind::constant;
    Function function = Function::minimum;  ///< of a call and a tensor_fact
    Fault fault = Fault::none;              ///< of a failure
    std::uint32_t slot = 0;
    std::uint32_t depth = 1;
    std::uint64_t slots = 0;  ///< bit i: slot i stands somewhere in it
    std::size_t offset = 0;
    std::string_view piece;           ///< the part of the expression's text that it stands for
    Value value;                      ///< of a constant
    std::string name;                 ///< of a name and a tensor_fact
    std::vector<Relation> relations;  ///< of a compare: one between each two children
    std::vector<std::shared_ptr<const ExpressionNode>> children;
};

/// A value on its way through the evaluator; texts and nodes are borrowed.
struct Cell {
    enum class Kind : std::uint8_t { boolean, integer, real, text, failed };
    Kind kind = Kind::boolean;
    Fault fault = Fault::none;
    union {
        std::int64_t integer = 0;  ///< also of a boolean
        double real;
        const std::string* text;
        const ExpressionNode* where;  ///< of a failure
    };

    static Cell of(bool value) noexcept { return with_integer(Kind::boolean, value ? 1 : 0); }
    static Cell of(std::int64_t value) noexcept { return with_integer(Kind::integer, value); }
    static Cell of(double value) noexcept {
        Cell cell;
        cell.kind = Kind::real;
        cell.real = value;
        return cell;
    }
    static Cell of(const Value& value) noexcept;
    static Cell failure(Fault fault, const ExpressionNode& where) noexcept {
        Cell cell;
        cell.kind = Kind::failed;
        cell.fault = fault;
        cell.where = &where;
        return cell;
    }
    bool failed() const noexcept { return kind == Kind::failed; }
    bool whole() const noexcept { return kind == Kind::integer || kind == Kind::boolean; }
    bool numeric() const noexcept { return kind != Kind::text && kind != Kind::failed; }
    double number() const noexcept { return kind == Kind::real ? real : static_cast<double>(integer); }
    /// Whether a numeric cell counts as true.
    bool truth() const noexcept { return kind == Kind::real ? real != 0.0 : integer != 0; }
    Value value() const;

private:
    static Cell with_integer(Kind kind, std::int64_t value) noexcept {
        Cell cell;
        cell.kind = kind;
        cell.integer = value;
        return cell;
    }
};

/// The sentence for a failed cell.
std::string explain(const Cell& failed);

/// A failed cell's integer, or the cell: a double must be whole.
Cell as_integer(const Cell& cell, const ExpressionNode& where) noexcept;

namespace evaluator {

Cell arithmetic(NodeKind kind, const Cell& a, const Cell& b, const ExpressionNode& where) noexcept;
Cell negated(const Cell& a, const ExpressionNode& where) noexcept;
Cell related(Relation relation, const Cell& a, const Cell& b, const ExpressionNode& where) noexcept;
Cell called(const ExpressionNode& call, std::span<const Cell> arguments) noexcept;

/// As true or false; a word and a failure stay failures.
inline Cell truth_of(const Cell& cell, const ExpressionNode& where) noexcept {
    if (cell.failed()) return cell;
    if (!cell.numeric()) return Cell::failure(Fault::word_as_number, where);
    return Cell::of(cell.truth());
}

}  // namespace evaluator

template <class Names>
Cell evaluate_chain(const ExpressionNode& node, const Names& names);
template <class Names>
Cell evaluate_call(const ExpressionNode& node, const Names& names);

/// Evaluates a tree. Names answers `Cell name(const ExpressionNode&)` for names and slots and
/// `Cell tensor_fact(const ExpressionNode&)`. Sides not taken are not looked at, so they may name unknown things.
template <class Names>
Cell evaluate(const ExpressionNode& node, const Names& names) {
    const auto child = [&](std::size_t i) { return evaluate(*node.children[i], names); };
    switch (node.kind) {
        case NodeKind::constant:
            return Cell::of(node.value);
        case NodeKind::failure:
            return Cell::failure(node.fault, node);
        case NodeKind::name:
        case NodeKind::slot:
            return names.name(node);
        case NodeKind::tensor_fact:
            return names.tensor_fact(node);
        case NodeKind::list:
            return Cell::failure(Fault::word_as_number, node);  // only ever beside `in`
        case NodeKind::negate:
            return evaluator::negated(child(0), node);
        case NodeKind::logical_not: {
            const Cell value = evaluator::truth_of(child(0), *node.children[0]);
            return value.failed() ? value : Cell::of(!value.truth());
        }
        case NodeKind::logical_and:
        case NodeKind::logical_or: {
            const bool ends = node.kind == NodeKind::logical_or;
            for (const auto& operand : node.children) {
                const Cell value = evaluator::truth_of(evaluate(*operand, names), *operand);
                if (value.failed() || value.truth() == ends) return value;
            }
            return Cell::of(!ends);
        }
        case NodeKind::conditional: {
            const Cell condition = evaluator::truth_of(child(0), *node.children[0]);
            if (condition.failed()) return condition;
            return child(condition.truth() ? 1 : 2);
        }
        case NodeKind::compare:
            return evaluate_chain(node, names);
        case NodeKind::call:
            return evaluate_call(node, names);
        default: {
            const Cell a = child(0);
            if (a.failed()) return a;
            return evaluator::arithmetic(node.kind, a, child(1), node);
        }
    }
}

/// `a < b <= c`; a list ends its chain: the parser sees to it.
template <class Names>
Cell evaluate_chain(const ExpressionNode& node, const Names& names) {
    Cell left = evaluate(*node.children[0], names);
    if (left.failed()) return left;
    for (std::size_t i = 0; i < node.relations.size(); ++i) {
        const ExpressionNode& operand = *node.children[i + 1];
        const Relation relation = node.relations[i];
        if (relation == Relation::in || relation == Relation::not_in) {
            bool found = false;
            for (const auto& element : operand.children) {
                const Cell same = evaluator::related(Relation::equal, left, evaluate(*element, names), node);
                if (same.failed()) return same;
                found = found || same.truth();
            }
            if (found != (relation == Relation::in)) return Cell::of(false);
            continue;
        }
        const Cell right = evaluate(operand, names);
        const Cell holds = evaluator::related(relation, left, right, node);
        if (holds.failed() || !holds.truth()) return holds;
        left = right;
    }
    return Cell::of(true);
}

/// Two arguments are folded at a time, so that min and max of any number need no array.
template <class Names>
Cell evaluate_call(const ExpressionNode& node, const Names& names) {
    const Cell first = evaluate(*node.children[0], names);
    if (first.failed()) return first;
    if (node.children.size() == 1) return evaluator::called(node, std::span{&first, 1});
    Cell pair[2] = {first, Cell{}};
    for (std::size_t i = 1; i < node.children.size(); ++i) {
        pair[1] = evaluate(*node.children[i], names);
        if (pair[1].failed()) return pair[1];
        pair[0] = evaluator::called(node, pair);
        if (pair[0].failed()) return pair[0];
    }
    return pair[0];
}

/// How many lets may use each other in a row: each is a level of recursion more, with an expression's own on top.
inline constexpr std::size_t lets_deep_at_most = 64;
std::string lets_too_deep(std::string_view let);

class Scope;
/// Of a part of an expression, with names by text. Throws EvaluationError.
Value value_of(const ExpressionNode& node, const Scope& scope);

}  // namespace autotune
#endif
