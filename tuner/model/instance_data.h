#ifndef AUTOTUNE_MODEL_INSTANCE_DATA_H
#define AUTOTUNE_MODEL_INSTANCE_DATA_H

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autotune/error.h"
#include "tuner/model/instance.h"

// Inside of tuner/model: what an Instance holds, and the scope over it.

namespace autotune {

using NamedValues = std::vector<std::pair<std::string, Value>>;

struct Instance::Data {
    const Op* op = nullptr;
    DeviceLimits device;
    NamedValues device_values;  ///< as expressions name them
    Binding binding;
    Problem problem;
    NamedValues scalars;
    NamedValues strides;  ///< free stride names, resolved
    std::vector<BoundTensor> tensors;
    double flops = 0, bytes = 0;
    std::vector<std::byte> key;

    const BoundTensor* tensor(std::string_view name) const noexcept;
};

/// Every name of an instance, with a config's parameters and blocks_per_sm where they are given. It works on data still
/// being built, and evaluates a let when it is first asked for: a let that has no value says so only where it is used.
class InstanceScope : public Scope {
public:
    explicit InstanceScope(const Instance::Data& data, const Config* config = nullptr,
                           std::optional<int> blocks_per_sm = std::nullopt);
    const Value* find(std::string_view name) const override;
    std::optional<std::int64_t> tensor_align(std::string_view name) const override;
    std::optional<bool> tensor_contiguous(std::string_view name) const override;
    /// Of an integer input: its sum as the fill makes it on average.
    std::optional<std::int64_t> tensor_sum(std::string_view name) const override;

private:
    const Value* let_value(std::size_t number) const;

    struct Let {
        enum class State { untouched, running, known } state = State::untouched;
        Value value;
    };
    const Instance::Data& data_;
    const Config* config_;
    std::optional<Value> blocks_per_sm_;
    mutable std::vector<Let> lets_;
    mutable std::size_t lets_running_ = 0;
};

const Value* find_value(const NamedValues& values, std::string_view name) noexcept;

/// The fill of a tensor as numbers, whatever the seed.
FillSpec fill_numbers(const Instance::Data& data, const BoundTensor& tensor);

/// Runs `body`, which evaluates an expression of the op; an EvaluationError becomes Error{usage} about `what`.
template <class Body>
auto valued(const Op& op, std::string_view what, Body&& body) {
    try {
        return body();
    } catch (const EvaluationError& error) {
        throw Error{Error::Kind::usage, std::string{what} + " of '" + op.name + "' has no value: " + error.what()};
    }
}

/// The word an expression means: what it evaluates to, or, for a bare name that stands for nothing, that name itself
/// (the loader makes constants of declared words, hands may not). Throws EvaluationError.
std::string word_of(const Expression& expression, const Scope& scope);

/// The type an expression names by a word. Throws EvaluationError.
DType dtype_of(const Expression& expression, const Scope& scope);

/// ` (m=4096, align(a)=8)`: what an expression's names stand for, for the end of a message; empty when it has none.
std::string numbers_of(const Expression& expression, const Scope& scope);

}  // namespace autotune
#endif
