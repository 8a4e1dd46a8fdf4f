#include "tuner/worker/junk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "autotune/error.h"
#include "autotune/reference.hpp"
#include "tuner/worker/compile_pool.h"
#include "tuner/worker/evaluate.h"

namespace autotune {
namespace {

std::vector<std::byte> bytes_of(const TensorTask& tensor) {
    return filled_bytes(tensor, static_cast<int>(usable_threads()));
}

std::int64_t offset_of(const TensorTask& tensor, std::uint64_t element) {
    std::int64_t offset = 0;
    for (std::size_t d = tensor.shape.size(); d-- > 0;) {
        const auto extent = static_cast<std::uint64_t>(tensor.shape[d]);
        offset += static_cast<std::int64_t>(element % extent) * tensor.strides[d];
        element /= extent;
    }
    return offset;
}

/// NaN in every float; in integers a number that no index of a tensor is.
std::uint8_t junk_byte(DType dtype) {
    if (dtype == DType::boolean) return 1;
    return info(dtype).floating ? 0xFF : 0x7F;
}

/// The problem's names, and integer inputs as one element of each.
class RowScope : public Scope {
public:
    explicit RowScope(const Scope& problem) : problem_{problem} {}
    const Value* find(std::string_view name) const override {
        const auto found = elements_.find(name);
        return found == elements_.end() ? problem_.find(name) : &found->second;
    }
    std::optional<std::int64_t> tensor_align(std::string_view name) const override {
        return problem_.tensor_align(name);
    }
    std::optional<bool> tensor_contiguous(std::string_view name) const override {
        return problem_.tensor_contiguous(name);
    }
    std::optional<std::int64_t> tensor_sum(std::string_view name) const override { return problem_.tensor_sum(name); }
    void set(const std::string& name, std::int64_t element) { elements_[name] = element; }

private:
    const Scope& problem_;
    std::map<std::string, Value, std::less<>> elements_;
};

/// An integer input that the expression names.
struct Named {
    const TensorTask* tensor;
    std::vector<std::byte> bytes;
    std::uint64_t rows_each;  ///< rows that share an element
};

std::vector<Named> named_inputs(const Expression& expression, const std::vector<TensorTask>& tensors,
                                const TensorTask& junked, std::uint64_t rows) {
    std::vector<Named> inputs;
    for (const std::string& name : expression.names()) {
        const auto found = std::ranges::find(tensors, name, &TensorTask::name);
        if (found == tensors.end()) continue;
        const bool readable = found->present && (found->role == Role::in || found->role == Role::inout);
        if (!readable || info(found->dtype).floating || found->elements == 0 || rows % found->elements != 0)
            throw Error{Error::Kind::usage,
                        fmt::format("junk_beyond of '{}' names '{}', which is no integer input with an element for "
                                    "each of its {} rows",
                                    junked.name, name, rows)};
        inputs.push_back({&*found, bytes_of(*found), rows / found->elements});
    }
    return inputs;
}

void put_junk(const Instance& instance, const Expression& from, const std::vector<TensorTask>& tensors,
              const TensorTask& tensor, std::span<std::byte> bytes) {
    const auto columns = static_cast<std::uint64_t>(tensor.shape.empty() ? 1 : tensor.shape.back());
    const std::uint64_t rows = tensor.elements / columns;
    const std::size_t size = size_of(tensor.dtype);
    const std::unique_ptr<Scope> scope = instance.scope();
    RowScope row_scope{*scope};
    const std::vector<Named> inputs = named_inputs(from, tensors, tensor, rows);
    for (std::uint64_t row = 0; row < rows; ++row) {
        for (const Named& input : inputs) {
            const std::int64_t at = offset_of(*input.tensor, row / input.rows_each);
            row_scope.set(input.tensor->name, static_cast<std::int64_t>(element_as_double(
                                                  input.bytes.data(), static_cast<int>(input.tensor->dtype), at)));
        }
        const std::int64_t first = std::max<std::int64_t>(from.evaluate_integer(row_scope), 0);
        for (auto column = static_cast<std::uint64_t>(first); column < columns; ++column)
            std::memset(bytes.data() + static_cast<std::size_t>(offset_of(tensor, row * columns + column)) * size,
                        junk_byte(tensor.dtype), size);
    }
}

}  // namespace

std::vector<Fd> junk_contents(const Instance& instance, std::vector<TensorTask>& tensors) {
    std::vector<Fd> contents;
    for (const BoundTensor& bound : instance.tensors()) {
        const bool read = bound.present && (bound.role == Role::in || bound.role == Role::inout);
        if (!read || bound.elements == 0 || bound.spec->fill.junk_beyond.empty()) continue;
        TensorTask& tensor = *std::ranges::find(tensors, bound.name, &TensorTask::name);
        std::vector<std::byte> bytes = bytes_of(tensor);
        try {
            put_junk(instance, bound.spec->fill.junk_beyond, tensors, tensor, bytes);
        } catch (const EvaluationError& e) {
            throw Error{Error::Kind::usage, fmt::format("junk_beyond of '{}' has no value: {}", tensor.name, e.what())};
        }
        tensor.contents = static_cast<int>(contents.size());
        contents.push_back(sealed_memory(bytes));
    }
    return contents;
}

}  // namespace autotune
