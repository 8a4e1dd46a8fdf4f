#include "tuner/model/call.h"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/model/evaluator.h"
#include "tuner/model/instance_data.h"
#include "tuner/model/suggest.h"

namespace autotune {
namespace {

[[noreturn]] void refuse_call(const std::string& message) { throw Error{Error::Kind::usage, message}; }

const ObservedTensor* observed_named(std::span<const ObservedTensor> tensors, std::string_view name) {
    const auto found = std::ranges::find(tensors, name, &ObservedTensor::name);
    return found == tensors.end() ? nullptr : &*found;
}

/// What is known while a call is being solved: given and solved fields, scalars, and lets over these.
class KnownScope final : public Scope {
public:
    KnownScope(const Op& op, const NamedValues& fields, const NamedValues& scalars)
        : op_{op}, fields_{fields}, scalars_{scalars} {}

    const Value* find(std::string_view name) const override {
        for (const NamedValues* values : {&fields_, &defaults_, &scalars_, &lets_})
            if (const Value* value = find_value(*values, name)) return value;
        const auto scalar = std::ranges::find(op_.scalars, name, &Scalar::name);
        return scalar == op_.scalars.end() ? nullptr : &scalar->fallback;
    }

    /// Lets whose names have all become known.
    void refresh_lets() {
        lets_.clear();
        lets_.reserve(op_.lets.size());
        for (const auto& [name, expression] : op_.lets) {
            try {
                lets_.emplace_back(name, expression.evaluate(*this));
            } catch (const EvaluationError&) {  // not yet, or for a config only
            }
        }
    }

    void assume(std::string name, Value value) { defaults_.emplace_back(std::move(name), std::move(value)); }

private:
    const Op& op_;
    const NamedValues& fields_;
    const NamedValues& scalars_;
    NamedValues defaults_, lets_;
};

class Solver {
public:
    Solver(const Op& op, std::span<const ObservedTensor> tensors, const NamedValues& given, const NamedValues& scalars)
        : op_{op}, tensors_{tensors}, known_{op, out_.fields, out_.binding.scalars} {
        out_.fields = given;
        out_.binding.scalars = scalars;
    }

    SolvedCall solve() {
        refuse_unknown();
        follow_scalars();
        for (const Tensor& spec : op_.tensors) {
            const ObservedTensor* observed = observed_named(tensors_, spec.name);
            presence(spec, observed != nullptr);
            if (observed) look_at(spec, *observed);
        }
        settle();
        assume_defaults();
        settle();
        return std::move(out_);
    }

private:
    /// A number of the call beside the expression that the op has for it.
    struct Pending {
        const Tensor* spec;
        const ExpressionNode* node;
        std::int64_t observed;
        bool stride;
    };

    void refuse_unknown() const {
        std::vector<std::string> names;
        for (const Tensor& spec : op_.tensors) names.push_back(spec.name);
        for (const ObservedTensor& tensor : tensors_) {
            if (!op_.tensor(tensor.name))
                refuse_call(fmt::format("there is no tensor '{}' in '{}'{}", tensor.name, op_.name,
                                        remedy(tensor.name, names, "tensors")));
            if (observed_named(tensors_, tensor.name) != &tensor)
                refuse_call(fmt::format("tensor '{}' of '{}' is given twice", tensor.name, op_.name));
        }
    }

    void follow_scalars() {
        for (const Field& field : op_.fields) {
            if (field.from.empty() || find_value(out_.fields, field.name)) continue;
            try {
                assign(field.name, field.from.evaluate(known_), "its scalar");
            } catch (const EvaluationError&) {  // it needs a field that is not solved yet: Instance::make() does it
            }
        }
    }

    void presence(const Tensor& spec, bool present) {
        const auto flag = spec.when.bare_name();
        if (flag && op_.field(*flag)) assign(*flag, present, "tensor '" + spec.name + "'");
        if (!present && spec.when.empty())
            refuse_call(fmt::format("tensor '{}' of '{}' is missing", spec.name, op_.name));
    }

    void look_at(const Tensor& spec, const ObservedTensor& observed) {
        if (observed.shape.size() != spec.shape.size())
            refuse_call(fmt::format("tensor '{}' of '{}' has {} dimensions and is given {}: [{}]", spec.name, op_.name,
                                    spec.shape.size(), observed.shape.size(), fmt::join(observed.shape, ", ")));
        if (!observed.strides.empty() && observed.strides.size() != observed.shape.size())
            refuse_call(fmt::format("tensor '{}' of '{}' is given {} extents and {} strides", spec.name, op_.name,
                                    observed.shape.size(), observed.strides.size()));
        if (const auto dtype = spec.dtype.bare_name(); dtype && op_.field(*dtype))
            assign(*dtype, std::string{name_of(observed.dtype)}, "tensor '" + spec.name + "'");
        for (std::size_t i = 0; i < spec.shape.size(); ++i)
            pending_.push_back({&spec, spec.shape[i].node(), observed.shape[i], false});
        if (!observed.strides.empty())
            for (std::size_t i = 0; i < spec.strides.size(); ++i)
                pending_.push_back({&spec, spec.strides[i].node(), observed.strides[i], true});
        if (observed.address != 0) {
            const std::uint64_t lowest = observed.address & (~observed.address + 1);
            out_.binding.align.emplace_back(spec.name, static_cast<int>(std::min<std::uint64_t>(16, lowest)));
        }
    }

    /// Until nothing more follows: one solved dim may decide the condition of another.
    void settle() {
        for (bool progress = true; progress;) {
            known_.refresh_lets();
            progress = std::erase_if(pending_, [&](const Pending& item) { return settled(item); }) > 0;
        }
    }

    bool settled(const Pending& item) {
        const ExpressionNode* node = item.node;
        while (node->kind == NodeKind::conditional) {
            const auto decided = truth_of(*node->children[0]);
            if (!decided) return false;
            node = node->children[*decided ? 1 : 2].get();
        }
        if (node->kind != NodeKind::name) return true;  // solves nothing; objection_to() compares it
        const std::string by = "tensor '" + item.spec->name + "'";
        if (op_.field(node->name)) {
            assign(node->name, item.observed, by);
        } else if (item.stride && is_free(node->name)) {
            const auto stride =
                std::ranges::find(out_.binding.strides, node->name, &std::pair<std::string, std::int64_t>::first);
            if (stride == out_.binding.strides.end())
                out_.binding.strides.emplace_back(node->name, item.observed);
            else if (stride->second != item.observed)
                refuse_call(fmt::format("stride '{}' of '{}' is {}, but {} by {}", node->name, op_.name, stride->second,
                                        item.observed, by));
        }
        return true;
    }

    bool is_free(const std::string& name) const {
        return std::ranges::find(op_.scalars, name, &Scalar::name) == op_.scalars.end() &&
               std::ranges::find(op_.lets, name, &std::pair<std::string, Expression>::first) == op_.lets.end();
    }

    std::optional<bool> truth_of(const ExpressionNode& condition) const {
        try {
            const Value value = value_of(condition, known_);
            const Cell truth = evaluator::truth_of(Cell::of(value), condition);
            return truth.failed() ? std::nullopt : std::optional{truth.truth()};
        } catch (const EvaluationError&) {
            return std::nullopt;
        }
    }

    void assign(const std::string& field, const Value& value, const std::string& by) {
        const Value* before = find_value(out_.fields, field);
        if (before == nullptr)
            out_.fields.emplace_back(field, value);
        else if (!same_value(*before, value))
            refuse_call(
                fmt::format("'{}' of '{}' is {}, but {} by {}", field, op_.name, to_text(*before), to_text(value), by));
    }

    /// What a call leaves open is the default, so a condition on it can be decided; dims keep open, a shape tells them.
    void assume_defaults() {
        for (const Field& field : op_.fields) {
            if (field.kind == Field::Kind::dim || find_value(out_.fields, field.name)) continue;
            if (field.fallback.empty() && field.kind == Field::Kind::flag) known_.assume(field.name, false);
            try {
                if (!field.fallback.empty()) known_.assume(field.name, field.fallback.evaluate(known_));
            } catch (const EvaluationError&) {
            }
        }
    }

    const Op& op_;
    std::span<const ObservedTensor> tensors_;
    SolvedCall out_;
    KnownScope known_;
    std::vector<Pending> pending_;
};

std::optional<std::string> objection_to_one(const std::string& op, const BoundTensor& tensor,
                                            const ObservedTensor& observed) {
    if (tensor.dtype != observed.dtype)
        return fmt::format("tensor '{}' of '{}' holds {}, and {} is needed", tensor.name, op, name_of(observed.dtype),
                           name_of(tensor.dtype));
    if (!std::ranges::equal(tensor.shape, observed.shape))
        return fmt::format("tensor '{}' of '{}' has the shape [{}], and [{}] is needed", tensor.name, op,
                           fmt::join(observed.shape, ", "), fmt::join(tensor.shape, ", "));
    std::int64_t packed = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
        const std::int64_t stride = observed.strides.empty() ? packed : observed.strides[i];
        packed *= std::max<std::int64_t>(tensor.shape[i], 1);
        // Of a single element nobody takes the stride, and libraries put there what they like.
        if (tensor.shape[i] > 1 && stride != tensor.strides[i])
            return fmt::format("tensor '{}' of '{}' has a stride of {} in dimension {}, and {} is needed", tensor.name,
                               op, stride, i, tensor.strides[i]);
    }
    if (observed.address % static_cast<std::uint64_t>(tensor.align) != 0)
        return fmt::format("tensor '{}' of '{}' is at an address that is no multiple of {}", tensor.name, op,
                           tensor.align);
    return std::nullopt;
}

}  // namespace

SolvedCall solve_dims(const Op& op, std::span<const ObservedTensor> tensors,
                      const std::vector<std::pair<std::string, Value>>& given,
                      const std::vector<std::pair<std::string, Value>>& scalars) {
    return Solver{op, tensors, given, scalars}.solve();
}

std::optional<std::string> objection_to(const Instance& instance, std::span<const ObservedTensor> tensors) {
    for (const BoundTensor& tensor : instance.tensors()) {
        const ObservedTensor* observed = observed_named(tensors, tensor.name);
        if ((observed != nullptr) != tensor.present)
            return fmt::format("tensor '{}' of '{}' is {}", tensor.name, instance.op().name,
                               observed ? "given, and this problem has none" : "missing");
        if (observed)
            if (auto reason = objection_to_one(instance.op().name, tensor, *observed)) return reason;
    }
    return std::nullopt;
}

Instance instance_of_call(const Op& op, std::span<const ObservedTensor> tensors, const DeviceLimits& limits,
                          const std::vector<std::pair<std::string, Value>>& given,
                          const std::vector<std::pair<std::string, Value>>& scalars) {
    const SolvedCall call = solve_dims(op, tensors, given, scalars);
    Instance instance = Instance::make(op, call.fields, limits, call.binding);
    if (const auto reason = objection_to(instance, tensors)) refuse_call(*reason);
    return instance;
}

}  // namespace autotune
