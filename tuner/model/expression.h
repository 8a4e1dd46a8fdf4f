#ifndef AUTOTUNE_MODEL_EXPRESSION_H
#define AUTOTUNE_MODEL_EXPRESSION_H

#include <cstddef>
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

/// A parsed expression of an op file. Immutable; copies share the tree. The grammar and its meaning are in
/// docs/op-format.md. The one evaluator: loader, spaces, importer and dispatcher all use it.
class Expression {
public:
    Expression() = default;
    /// Throws ParseError. Depth and length are limited (100 levels, 4 KiB).
    static Expression parse(std::string_view text);
    static Expression constant(Value value);

    bool empty() const noexcept { return node_ == nullptr; }
    const std::string& text() const noexcept { return text_; }
    /// The plain names it uses, each once, in order of appearance; tensors inside align(), contiguous() and sum()
    /// are in tensors() instead.
    const std::vector<std::string>& names() const noexcept { return names_; }
    const std::vector<std::string>& tensors() const noexcept { return tensors_; }
    /// Where a name first stands in the text: for carets.
    std::size_t offset_of(std::string_view name) const noexcept;
    /// Set when the expression is one bare name.
    std::optional<std::string> bare_name() const;
    std::optional<Value> constant_value() const;

    /// Throws EvaluationError.
    Value evaluate(const Scope& scope) const;
    bool evaluate_bool(const Scope& scope) const;          ///< numbers count as true when not 0
    std::int64_t evaluate_integer(const Scope& scope) const;  ///< a double must be whole
    double evaluate_double(const Scope& scope) const;
    std::string evaluate_text(const Scope& scope) const;

    const ExpressionNode* node() const noexcept { return node_.get(); }

private:
    std::shared_ptr<const ExpressionNode> node_;
    std::string text_;
    std::vector<std::string> names_, tensors_;
};

}  // namespace autotune
#endif
