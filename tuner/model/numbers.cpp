// How an instance's outputs are judged and its inputs are filled, as numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/model/instance_data.h"

namespace autotune {
namespace {

constexpr double mma_step = 16;  // products that one tensor-core instruction sums along k

const Tolerance* tolerance_of(const Op& op, std::string_view tensor) {
    const auto found = std::ranges::find(op.tolerances, tensor, &Tolerance::tensor);
    return found == op.tolerances.end() ? nullptr : &*found;
}

const BoundTensor& tensor_named(const Instance::Data& data, std::string_view name) {
    if (const BoundTensor* tensor = data.tensor(name)) return *tensor;
    throw Error{Error::Kind::usage, fmt::format("there is no tensor '{}' in '{}'", name, data.op->name)};
}

/// Kernels round once an operation: 2 sqrt(n) u is what random signs of rounding give, n u the worst case. Tensor cores
/// cut off instead of rounding, so their errors are one-sided and grow with the number of steps.
double accumulation(double terms, const std::string& how, DType dtype) {
    terms = std::max(terms, 1.0);
    if (how == "mma") return std::ceil(terms / mma_step) * 0x1p-23;
    if (how == "fma") return std::min(2 * std::sqrt(terms), terms) * (dtype == DType::f64 ? 0x1p-53 : 0x1p-24);
    throw EvaluationError{fmt::format("'{}' is no way to accumulate: there are fma and mma", how)};
}

FillSpec::Kind fill_kind(const std::string& name) {
    static constexpr std::pair<std::string_view, FillSpec::Kind> kinds[] = {
        {"normal", FillSpec::Kind::normal},     {"uniform", FillSpec::Kind::uniform},
        {"constant", FillSpec::Kind::constant}, {"int", FillSpec::Kind::integers},
        {"integers", FillSpec::Kind::integers}, {"permutation", FillSpec::Kind::permutation},
        {"sorted", FillSpec::Kind::sorted},     {"lengths", FillSpec::Kind::lengths},
        {"special", FillSpec::Kind::special},   {"zero", FillSpec::Kind::zero}};
    for (const auto& [word, kind] : kinds)
        if (word == name) return kind;
    throw EvaluationError{fmt::format("'{}' is no kind of fill", name)};
}

bool is_unsigned(DType dtype) { return dtype == DType::u8 || dtype == DType::u32 || dtype == DType::boolean; }

/// Integers keep small by default, so that sums of them are exact.
void integer_bounds(FillSpec& spec, DType dtype) {
    spec.high = dtype == DType::boolean ? 1 : 8;
    spec.low = is_unsigned(dtype) ? 0 : -8;
}

void lengths(FillSpec& spec, const std::string& like, bool zeros) {
    spec.low = zeros ? 0 : 1;
    if (like == "full") {
        spec.kind = FillSpec::Kind::constant;
        spec.low = spec.high;
    } else if (like == "skewed") {
        spec.modulus = 1;
    } else if (like != "uniform") {
        throw EvaluationError{fmt::format("lengths are like full, uniform or skewed, not '{}'", like)};
    }
}

}  // namespace

FillSpec fill_numbers(const Instance::Data& data, const BoundTensor& tensor) {
    const Fill& fill = tensor.spec->fill;
    const InstanceScope scope{data};
    return valued(*data.op, "the fill of '" + tensor.name + "'", [&] {
        FillSpec spec;
        spec.kind = fill_kind(fill.kind);
        if (spec.kind == FillSpec::Kind::normal && !info(tensor.dtype).floating) spec.kind = FillSpec::Kind::integers;
        if (!info(tensor.dtype).floating) integer_bounds(spec, tensor.dtype);
        std::string like = "uniform";
        bool zeros = false;
        for (const auto& [name, argument] : fill.arguments) {
            if (name == "low" || name == "value" || name == "min")
                spec.low = argument.evaluate_double(scope);
            else if (name == "high" || name == "max")
                spec.high = argument.evaluate_double(scope);
            else if (name == "of")
                spec.modulus = static_cast<std::uint64_t>(argument.evaluate_integer(scope));
            else if (name == "like")
                like = argument.evaluate_text(scope);
            else if (name == "zeros")
                zeros = argument.evaluate_bool(scope);
            else
                throw EvaluationError{fmt::format("a fill takes no '{}'", name)};
        }
        if (spec.kind == FillSpec::Kind::constant) spec.high = spec.low;
        if (spec.kind == FillSpec::Kind::lengths) lengths(spec, like, zeros);
        return spec;
    });
}

FillSpec Instance::fill_of(const BoundTensor& tensor, std::uint64_t seed) const {
    FillSpec spec = fill_numbers(*data_, tensor);
    spec.seed = seed;
    spec.stream = static_cast<std::uint64_t>(tensor.spec - op().tensors.data());
    return spec;
}

bool Instance::exact(std::string_view name) const {
    const BoundTensor& tensor = tensor_named(*data_, name);
    const Tolerance* tolerance = tolerance_of(op(), name);
    return tolerance ? tolerance->exact : !info(tensor.dtype).floating;
}

Bound Instance::bound_of(std::string_view name) const {
    if (exact(name)) return {};
    const DType dtype = tensor_named(*data_, name).dtype;
    Bound bound{.of_value = info(dtype).unit_roundoff, .of_magnitude = 0, .absolute = info(dtype).smallest_subnormal};
    const Tolerance* tolerance = tolerance_of(op(), name);
    const InstanceScope scope{*data_};
    return valued(op(), fmt::format("the tolerance of '{}'", name), [&] {
        if (tolerance == nullptr) {
            bound.of_magnitude = accumulation(1, "fma", dtype);
            return bound;
        }
        if (!tolerance->terms.empty()) {
            const std::string how = tolerance->accumulate.empty() ? "fma" : word_of(tolerance->accumulate, scope);
            bound.of_magnitude = accumulation(tolerance->terms.evaluate_double(scope), how, dtype);
        }
        if (!tolerance->intermediate.empty())
            bound.of_magnitude += info(dtype_of(tolerance->intermediate, scope)).unit_roundoff;
        if (!tolerance->relative.empty()) bound.of_value += tolerance->relative.evaluate_double(scope);
        if (!tolerance->absolute.empty()) bound.absolute += tolerance->absolute.evaluate_double(scope);
        return bound;
    });
}

}  // namespace autotune
