#ifndef AUTOTUNE_MODEL_EXPRESSION_H
#define AUTOTUNE_MODEL_EXPRESSION_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/value.h"

namespace autotune {

/// Why a text is no expression; `offset` is the byte where it went wrong.
class ParseError : public std::runtime_error {
public:
    ParseError(const std::string& message, std::size_t offset) : std::runtime_error{message}, offset_{offset} {}
    std::size_t offset() const noexcept { return offset_; }

private:
    std::size_t offset_;
};

/// Why an expression has no value here: overflow, division by zero, a wrong type, an unknown name. A config whose
/// constraint ends so is not valid, with this as the reason; it never passes.
class EvaluationError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// What names stand for while an expression is evaluated.
class Scope {
public:
    virtual ~Scope() = default;
    /// nullptr: the name is not known (yet).
    virtual const Value* find(std::string_view name) const = 0;
    /// Facts of a tensor, for align(x), contiguous(x) and sum(x); nullopt: no such tensor, or not known.
    virtual std::optional<std::int64_t> tensor_align(std::string_view) const { return std::nullopt; }
    virtual std::optional<bool> tensor_contiguous(std::string_view) const { return std::nullopt; }
    virtual std::optional<std::int64_t> tensor_sum(std::string_view) const { return std::nullopt; }
};

struct ExpressionNode;
struct ExpressionTree;

/// A parsed expression of an op file. Immutable; copies share the tree. The grammar and its meaning are in
/// docs/op-format.md. The one evaluator: loader, spaces, importer and dispatcher all use it.
///
/// From loosest to tightest: `c ? a : b` (to the right), `or`, `and`, `not`, comparisons (chains; `in` and `not in`
/// with a list end one), `+ -`, `* / // %`, unary `-` and `+`, `**` (to the right, tighter than a minus before it).
/// - `/` of two integers is an integer where it is exact, else a double; `//` and `%` floor.
/// - 64-bit overflow, division by zero and results that are not finite have no value. A scalar that is NaN equals
///   nothing and has no order.
/// - Booleans count as 0 and 1 in arithmetic; numbers count as true when not 0; words only compare with words, by `==`,
///   `!=` and `in`.
/// - `pow2(x)` is the smallest power of two that is at least x; `log2` of a power of two is an integer;
///   `sizeof('f32')` and `sizeof(f32)` both mean the type, `sizeof(dtype)` the one the field names.
class Expression {
public:
    Expression() = default;
    /// Throws ParseError. Depth and length are limited (100 levels, 4 KiB).
    static Expression parse(std::string_view text);
    /// Its text parses back to the value; a word comes in quotes.
    static Expression constant(Value value);

    bool empty() const noexcept { return tree_ == nullptr; }
    const std::string& text() const noexcept;
    /// The plain names it uses, each once, in order of appearance; tensors inside align(), contiguous() and sum()
    /// are in tensors() instead.
    const std::vector<std::string>& names() const noexcept;
    const std::vector<std::string>& tensors() const noexcept;
    bool uses(std::string_view name) const noexcept;
    /// Where a name first stands in the text: for carets. 0 when it does not.
    std::size_t offset_of(std::string_view name) const noexcept;
    /// Set when the expression is one bare name.
    std::optional<std::string> bare_name() const;
    /// Set when it names nothing and has a value.
    std::optional<Value> constant_value() const;

    /// Throws EvaluationError; all of these do, also when the expression is empty.
    Value evaluate(const Scope& scope) const;
    bool evaluate_bool(const Scope& scope) const;             ///< numbers count as true when not 0
    std::int64_t evaluate_integer(const Scope& scope) const;  ///< a double must be whole
    double evaluate_double(const Scope& scope) const;
    std::string evaluate_text(const Scope& scope) const;  ///< a word; a number is none

    /// The root; nullptr when empty. See tuner/model/evaluator.h.
    const ExpressionNode* node() const noexcept;

private:
    std::shared_ptr<const ExpressionTree> tree_;
};

}  // namespace autotune
#endif
