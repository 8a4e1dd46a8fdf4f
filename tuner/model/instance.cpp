#include "tuner/model/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tuner/model/claims.h"
#include "tuner/model/free_stride.h"
#include "tuner/model/instance_data.h"
#include "tuner/model/problem_key.h"
#include "tuner/model/suggest.h"

namespace autotune {
namespace {

constexpr std::int64_t dim_at_most = std::int64_t{1} << 40;
constexpr std::size_t text_bytes_at_most = 4096;
constexpr std::int64_t tensor_bytes_at_most = std::int64_t{1} << 62;

[[noreturn]] void refuse(const std::string& message, std::string help = {}) {
    throw Error{Error::Kind::usage, message, std::move(help)};
}

NamedValues device_values_of(const DeviceLimits& limits) {
    const std::int64_t values[] = {limits.cc,
                                   limits.sm_count,
                                   limits.warp,
                                   limits.max_threads,
                                   limits.max_shared,
                                   limits.shared_per_sm,
                                   limits.registers_per_sm,
                                   limits.threads_per_sm,
                                   limits.l2_bytes,
                                   limits.memory_bytes};
    NamedValues out;
    for (std::size_t i = 0; i < std::size(values); ++i) out.emplace_back(device_names()[i], values[i]);
    return out;
}

/// The value as a whole number, when it is one.
std::optional<std::int64_t> whole_of(const Value& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
    const auto* real = std::get_if<double>(&value);
    if (real && *real == std::floor(*real) && std::abs(*real) < 0x1p62) return static_cast<std::int64_t>(*real);
    return std::nullopt;
}

Value choice_of(const Op& op, const Field& field, const Value& value) {
    std::vector<std::string> words;
    for (const Value& choice : field.choices) {
        if (same_value(choice, value)) return choice;
        words.push_back(to_text(choice));
    }
    const std::string typed = to_text(value);
    refuse(fmt::format("'{}' is not a choice for '{}' of '{}'{}", typed, field.name, op.name,
                       remedy(typed, words, "choices")));
}

/// A field's value in the field's own type.
Value field_value(const Op& op, const Field& field, const Value& value) {
    switch (field.kind) {
        case Field::Kind::choice:
            return choice_of(op, field, value);
        case Field::Kind::flag:
            for (const bool flag : {false, true})
                if (same_value(value, Value{flag})) return flag;
            refuse(fmt::format("'{}' of '{}' is a flag and is given '{}': it takes true or false", field.name, op.name,
                               to_text(value)));
        case Field::Kind::text: {
            std::string text = to_text(value);
            if (text.size() <= text_bytes_at_most) return text;
            refuse(fmt::format("'{}' of '{}' is a text of {} bytes, beyond the limit of {}", field.name, op.name,
                               text.size(), text_bytes_at_most));
        }
        case Field::Kind::dim:
            break;
    }
    const auto dim = whole_of(value);
    if (dim && *dim >= 1 && *dim <= dim_at_most) return *dim;
    refuse(fmt::format("'{}' of '{}' is a dimension and is given '{}': it takes a whole number from 1 to 2^40",
                       field.name, op.name, to_text(value)));
}

Value scalar_value(const Op& op, const Scalar& scalar, const Value& value) {
    if (std::holds_alternative<std::string>(value))
        refuse(
            fmt::format("scalar '{}' of '{}' is given '{}': it takes a number", scalar.name, op.name, to_text(value)));
    const auto* real = std::get_if<double>(&value);
    if (info(scalar.dtype).floating)
        return real ? *real
                    : std::visit(
                          [](const auto& number) -> double {
                              if constexpr (std::is_arithmetic_v<std::decay_t<decltype(number)>>)
                                  return static_cast<double>(number);
                              else
                                  return 0.0;
                          },
                          value);
    if (same_value(value, true) || same_value(value, false)) return std::int64_t{same_value(value, true)};
    if (const auto whole = whole_of(value)) return *whole;
    refuse(fmt::format("scalar '{}' of '{}' is given '{}': it takes a whole number", scalar.name, op.name,
                       to_text(value)));
}

/// Makes the parts of an instance in the order in which they depend on each other.
class Builder {
public:
    Builder(Instance::Data& data, const NamedValues& given) : data_{data}, op_{*data.op}, given_{given} {}

    void build() {
        refuse_unknown();
        scalars();
        fields();
        constraints(false);
        tensors();
        constraints(true);
        work();
        data_.key = canonical_key(data_);
    }

private:
    void refuse_unknown() const {
        for (std::size_t i = 0; i < given_.size(); ++i) {
            const std::string& name = given_[i].first;
            if (!op_.field(name) && std::ranges::find(op_.scalars, name, &Scalar::name) == op_.scalars.end())
                refuse_field(name);
            for (std::size_t j = 0; j < i; ++j)
                if (given_[j].first == name) refuse(fmt::format("'{}' of '{}' is given twice", name, op_.name));
        }
        for (const auto& [name, align] : data_.binding.align) {
            if (!op_.tensor(name)) refuse(fmt::format("there is no tensor '{}' in '{}'", name, op_.name));
            if (align < 1 || (align & (align - 1)) != 0)
                refuse(fmt::format("the alignment of '{}' is {}: it takes a power of two", name, align));
        }
    }

    [[noreturn]] void refuse_field(const std::string& name) const {
        std::vector<std::string> names;
        for (const Field& field : op_.fields) names.push_back(field.name);
        refuse(fmt::format("there is no field '{}' in '{}'{}", name, op_.name, remedy(name, names, "fields")),
               "autotune ops --show " + op_.name);
    }

    void scalars() {
        for (const auto& entry : data_.binding.scalars)
            if (std::ranges::find(op_.scalars, entry.first, &Scalar::name) == op_.scalars.end())
                refuse(fmt::format("there is no scalar '{}' in '{}'", entry.first, op_.name));
        for (const Scalar& scalar : op_.scalars) {
            const Value* value = find_value(data_.binding.scalars, scalar.name);
            if (value == nullptr) value = find_value(given_, scalar.name);
            if (value) fixed_scalars_.push_back(scalar.name);
            data_.scalars.emplace_back(scalar.name, scalar_value(op_, scalar, value ? *value : scalar.fallback));
        }
    }

    void fields() {
        for (const Field& field : op_.fields) {
            const Value* given = find_value(given_, field.name);
            if (!field.from.empty() && given) lead_scalars_to(field, field_value(op_, field, *given));
            data_.problem.fields.emplace_back(field.name, value_of(field, given));
        }
        // A scalar changed for one field may have undone another.
        for (const Field& field : op_.fields)
            if (const Value* given = find_value(given_, field.name); given && !field.from.empty())
                if (const Value follows = from_value(field); !same_value(follows, field_value(op_, field, *given)))
                    refuse_from(field, *given, follows);
    }

    Value value_of(const Field& field, const Value* given) const {
        if (!field.from.empty()) return from_value(field);
        if (given) return field_value(op_, field, *given);
        if (field.fallback.empty() && field.from_inputs) return std::int64_t{1};
        if (field.fallback.empty()) {
            if (field.kind == Field::Kind::flag) return false;
            refuse(fmt::format("problem field '{}' of '{}' is not given and has no default", field.name, op_.name));
        }
        return field_value(op_, field, evaluated(field.fallback, "the default of '" + field.name + "'"));
    }

    Value from_value(const Field& field) const {
        return field_value(op_, field, evaluated(field.from, "'" + field.name + "'"));
    }

    Value evaluated(const Expression& expression, const std::string& what) const {
        return valued(op_, what, [&] { return expression.evaluate(InstanceScope{data_}); });
    }

    /// Finds a scalar that nobody fixed and a value of it from which the field follows as it was given.
    void lead_scalars_to(const Field& field, const Value& wanted) {
        const Value follows = from_value(field);
        if (same_value(follows, wanted)) return;
        for (const Scalar& scalar : op_.scalars) {
            if (!field.from.uses(scalar.name) || std::ranges::find(fixed_scalars_, scalar.name) != fixed_scalars_.end())
                continue;
            const auto entry = std::ranges::find(data_.scalars, scalar.name, &NamedValues::value_type::first);
            const Value before = entry->second;
            std::vector<Value> candidates = scalar.check;
            for (const double value : {0.0, 1.0, 0.5}) candidates.emplace_back(value);
            for (const Value& candidate : candidates) {
                if (!info(scalar.dtype).floating && !whole_of(candidate)) continue;
                entry->second = scalar_value(op_, scalar, candidate);
                if (same_value(from_value(field), wanted)) return;
            }
            entry->second = before;
        }
        refuse_from(field, wanted, follows);
    }

    [[noreturn]] void refuse_from(const Field& field, const Value& wanted, const Value& follows) const {
        refuse(fmt::format("'{}' of '{}' is given as {}, but it follows from {}, which is {}{}", field.name, op_.name,
                           to_text(wanted), field.from.text(), to_text(follows),
                           numbers_of(field.from, InstanceScope{data_})));
    }

    /// Those about tensors need the tensors; all others come before a shape can go wrong.
    void constraints(bool about_tensors) const {
        const InstanceScope scope{data_};
        for (const Constraint& constraint : op_.constraints) {
            if (constraint.holds.tensors().empty() == about_tensors) continue;
            if (const auto broken = broken_claim(constraint, scope))
                refuse(fmt::format("not a legal problem of '{}': {}", op_.name, *broken));
        }
    }

    void tensors() {
        for (const auto& [name, stride] : data_.binding.strides) data_.strides.emplace_back(name, stride);
        for (const Tensor& tensor : op_.tensors) data_.tensors.push_back(bound(tensor));
        for (const auto& [name, stride] : data_.binding.strides)
            if (std::ranges::find(free_strides_, name) == free_strides_.end())
                refuse(fmt::format("there is no free stride '{}' in '{}'", name, op_.name));
    }

    BoundTensor bound(const Tensor& spec) {
        BoundTensor tensor;
        tensor.name = spec.name;
        tensor.spec = &spec;
        const std::string what = "tensor '" + spec.name + "'";
        valued(op_, what, [&] {
            const InstanceScope scope{data_};
            tensor.dtype = dtype_of(spec.dtype, scope);
            tensor.role = role_of(spec, scope);
            tensor.present = spec.when.empty() || spec.when.evaluate_bool(scope);
            for (const Expression& extent : spec.shape) tensor.shape.push_back(extent.evaluate_integer(scope));
            return true;
        });
        if (std::ranges::any_of(tensor.shape, [](std::int64_t extent) { return extent < 0; }))
            refuse(
                fmt::format("{} of '{}' has a negative extent: [{}]", what, op_.name, fmt::join(tensor.shape, ", ")));
        strides(spec, tensor);
        measure(tensor);
        return tensor;
    }

    Role role_of(const Tensor& spec, const Scope& scope) const {
        static constexpr std::pair<std::string_view, Role> words[] = {
            {"in", Role::in}, {"out", Role::out}, {"inout", Role::inout}, {"scratch", Role::scratch}};
        const std::string word = spec.role.empty() ? "in" : word_of(spec.role, scope);
        for (const auto& [name, role] : words)
            if (name == word) return role;
        throw EvaluationError{"'" + word + "' is no role: there are in, out, inout and scratch"};
    }

    /// From the innermost outwards, so that a free stride's default can be the packed one.
    void strides(const Tensor& spec, BoundTensor& tensor) {
        const std::size_t rank = tensor.shape.size();
        tensor.strides.assign(rank, 1);
        const std::string what = "a stride of tensor '" + spec.name + "'";
        if (!spec.strides.empty() && spec.strides.size() != rank)
            refuse(fmt::format("tensor '{}' of '{}' has {} extents and {} strides", spec.name, op_.name, rank,
                               spec.strides.size()));
        std::int64_t packed = 1;
        for (std::size_t i = rank; i-- > 0;) {
            const std::int64_t stride = spec.strides.empty() ? packed : stride_of(spec.strides[i], packed, what);
            tensor.strides[i] = stride;
            if (stride < 0) refuse(fmt::format("{} of '{}' is negative: {}", what, op_.name, stride));
            // What the dimensions so far span: they may lie in any order (heads inside rows, say).
            std::int64_t span = 0;
            if (__builtin_mul_overflow(std::max<std::int64_t>(tensor.shape[i], 1), std::max<std::int64_t>(stride, 1),
                                       &span))
                too_large(tensor);
            packed = std::max(packed, span);
        }
        if (tensor.role != Role::in && overlaps(tensor))
            refuse(fmt::format("tensor '{}' of '{}' is written and overlaps itself: shape [{}], strides [{}]",
                               spec.name, op_.name, fmt::join(tensor.shape, ", "), fmt::join(tensor.strides, ", ")));
    }

    /// Whether two elements may share a place: no dimension may step into what smaller steps reach. Exact for layouts
    /// that come from slicing (also with a step) and transposing, which is all that is wanted here.
    static bool overlaps(const BoundTensor& tensor) {
        std::vector<std::pair<std::int64_t, std::int64_t>> steps;
        for (std::size_t i = 0; i < tensor.shape.size(); ++i)
            if (tensor.shape[i] > 1) steps.emplace_back(tensor.strides[i], tensor.shape[i]);
        std::ranges::sort(steps);
        std::int64_t reach = 0;
        for (const auto& [stride, extent] : steps) {
            if (stride <= reach) return true;
            // too_large() has seen to each product, and each stride is beyond all that went before it
            if (__builtin_add_overflow(reach, stride * (extent - 1), &reach)) return true;
        }
        return false;
    }

    std::int64_t stride_of(const Expression& expression, std::int64_t packed, const std::string& what) {
        if (const auto free = free_stride(op_, expression)) {
            free_strides_.push_back(*free);
            if (!find_value(data_.strides, *free)) data_.strides.emplace_back(*free, packed);
        }
        return valued(op_, what, [&] { return expression.evaluate_integer(InstanceScope{data_}); });
    }

    [[noreturn]] void too_large(const BoundTensor& tensor) const {
        refuse(fmt::format("tensor '{}' of '{}' with shape [{}] is beyond 2^62 bytes", tensor.name, op_.name,
                           fmt::join(tensor.shape, ", ")));
    }

    void measure(BoundTensor& tensor) const {
        const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
        std::int64_t elements = 1, last = 0, packed = 1;
        for (const std::int64_t extent : tensor.shape)
            if (__builtin_mul_overflow(elements, extent, &elements)) too_large(tensor);
        const auto asked = std::ranges::find(data_.binding.align, tensor.name, &std::pair<std::string, int>::first);
        tensor.align = std::min(16, asked == data_.binding.align.end() ? 16 : asked->second);
        if (tensor.present && tensor.align < std::min<std::int64_t>(16, size))
            refuse(fmt::format("tensor '{}' of '{}' is aligned to {}, and its elements are {} bytes each", tensor.name,
                               op_.name, tensor.align == 1 ? "1 byte" : fmt::format("{} bytes", tensor.align), size));
        for (std::size_t i = tensor.shape.size(); i-- > 0;) {
            if (tensor.shape[i] <= 1) continue;  // its stride is never taken
            std::int64_t step = 0;
            if (__builtin_mul_overflow(tensor.strides[i], tensor.shape[i] - 1, &step) ||
                __builtin_add_overflow(last, step, &last))
                too_large(tensor);
            tensor.contiguous = tensor.contiguous && tensor.strides[i] == packed;
            if (__builtin_mul_overflow(packed, tensor.shape[i], &packed)) too_large(tensor);
            if (i + 1 == tensor.shape.size()) continue;
            // Alignments are powers of two, so what overflows takes nothing away.
            const auto apart = static_cast<std::uint64_t>(tensor.strides[i]) * static_cast<std::uint64_t>(size);
            while (apart % static_cast<std::uint64_t>(tensor.align) != 0) tensor.align /= 2;
        }
        if (last >= tensor_bytes_at_most / size || elements >= tensor_bytes_at_most / size) too_large(tensor);
        tensor.elements = static_cast<std::uint64_t>(elements);
        tensor.bytes = elements == 0 ? 0 : static_cast<std::uint64_t>((last + 1) * size);
    }

    void work() {
        const InstanceScope scope{data_};
        if (!op_.flops.empty())
            data_.flops = valued(op_, "the flops", [&] { return op_.flops.evaluate_double(scope); });
        if (!op_.bytes.empty())
            data_.bytes = valued(op_, "the bytes", [&] { return op_.bytes.evaluate_double(scope); });
    }

    Instance::Data& data_;
    const Op& op_;
    const NamedValues& given_;
    std::vector<std::string> fixed_scalars_, free_strides_;
};

}  // namespace

const Value* Problem::find(std::string_view name) const noexcept { return find_value(fields, name); }

std::string Problem::text() const {
    std::string out;
    for (const auto& [name, value] : fields)
        out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, to_text(value));
    return out;
}

Instance Instance::make(const Op& op, const std::vector<std::pair<std::string, Value>>& given,
                        const DeviceLimits& limits, const Binding& binding) {
    auto data = std::make_shared<Data>();
    data->op = &op;
    data->device = limits;
    data->device_values = device_values_of(limits);
    data->binding = binding;
    Builder{*data, given}.build();
    return Instance{std::move(data)};
}

const Op& Instance::op() const noexcept { return *data_->op; }
const Problem& Instance::problem() const noexcept { return data_->problem; }
const DeviceLimits& Instance::limits() const noexcept { return data_->device; }
const std::vector<BoundTensor>& Instance::tensors() const noexcept { return data_->tensors; }
const std::vector<std::pair<std::string, Value>>& Instance::scalars() const noexcept { return data_->scalars; }
const Binding& Instance::binding() const noexcept { return data_->binding; }
double Instance::flops() const noexcept { return data_->flops; }
double Instance::bytes() const noexcept { return data_->bytes; }
const std::vector<std::byte>& Instance::key() const noexcept { return data_->key; }
std::string Instance::key_json() const { return autotune::key_json(*data_); }

std::unique_ptr<Scope> Instance::scope(const Config* config) const {
    struct OwningScope final : InstanceScope {
        OwningScope(std::shared_ptr<const Data> owned, const Config* with)
            : InstanceScope{*owned, with}, data{std::move(owned)} {}
        std::shared_ptr<const Data> data;  // an instance is copied freely, so its scope may outlive it
    };
    return std::make_unique<OwningScope>(data_, config);
}

}  // namespace autotune
