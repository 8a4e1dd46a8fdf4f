// A config's launches, with every expression a number.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tuner/model/argument.h"
#include "tuner/model/evaluator.h"
#include "tuner/model/instance_data.h"
#include "tuner/model/template_text.h"

namespace autotune {
namespace {

constexpr std::int64_t repeat_at_most = 1 << 20;

/// What launch arguments of one sequence can name.
class Launches {
public:
    Launches(const Instance::Data& data, const Variant* variant, const Config* config, const Scope& scope)
        : data_{data}, variant_{variant}, config_{config}, scope_{scope} {}

    LaunchSequence sequence(const std::vector<LaunchSpec>& specs) {
        if (variant_) {
            for (const Scratch& scratch : variant_->scratch) add(scratch);
            for (const Symbol& symbol : variant_->symbols)
                out_.symbols.push_back({.symbol = symbol.name,
                                        .source = variant_->source,
                                        .buffer = index_of(tensor(symbol.from)),
                                        .each_launch = symbol.each_launch});
        } else {
            for (const BoundTensor& output : outputs(data_))
                for (const char* array : {".value", ".magnitude"})
                    out_.scratch.push_back({.name = output.name + array, .bytes = output.elements * sizeof(double)});
        }
        for (const LaunchSpec& spec : specs)
            if (spec.when.empty() || spec.when.evaluate_bool(scope_)) out_.launches.push_back(launch(spec));
        return std::move(out_);
    }

    static std::vector<BoundTensor> outputs(const Instance::Data& data) {
        std::vector<BoundTensor> out;
        for (const BoundTensor& tensor : data.tensors)
            if (tensor.present && (tensor.role == Role::out || tensor.role == Role::inout)) out.push_back(tensor);
        return out;
    }

private:
    void add(const Scratch& scratch) {
        if (!scratch.when.empty() && !scratch.when.evaluate_bool(scope_)) return;
        std::uint64_t bytes = size_of(dtype_of(scratch.dtype, scope_));
        for (const Expression& extent : scratch.shape) {
            const std::int64_t count = extent.evaluate_integer(scope_);
            if (count < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(count), &bytes))
                throw EvaluationError{fmt::format("scratch '{}' has no size", scratch.name)};
        }
        out_.scratch.push_back({.name = scratch.name, .bytes = bytes, .zeroed = scratch.zeroed});
    }

    const BoundTensor& tensor(const std::string& name) const {
        if (const BoundTensor* found = data_.tensor(name)) return *found;
        throw EvaluationError{fmt::format("there is no tensor '{}'", name)};
    }

    std::uint32_t index_of(const BoundTensor& tensor) const {
        return static_cast<std::uint32_t>(&tensor - data_.tensors.data());
    }

    std::uint32_t positive(const Expression& expression, std::int64_t least, std::int64_t most) const {
        const std::int64_t value = expression.evaluate_integer(scope_);
        if (value >= least && value <= most) return static_cast<std::uint32_t>(value);
        throw EvaluationError{fmt::format("'{}' is {}, outside {} to {}", expression.text(), value, least, most)};
    }

    Dim3 dimensions(const std::vector<Expression>& list) const {
        Dim3 out;
        std::uint32_t* const parts[] = {&out.x, &out.y, &out.z};
        for (std::size_t i = 0; i < list.size() && i < 3; ++i)
            *parts[i] = positive(list[i], 1, std::numeric_limits<std::int32_t>::max());
        return out;
    }

    Launch launch(const LaunchSpec& spec) {
        Launch out;
        const std::string& entry = spec.entry.empty() && variant_ ? variant_->entry : spec.entry;
        out.entry = variant_ && config_ ? entry_text(*variant_, entry, *config_) : entry;
        out.source = spec.source.empty() && variant_ ? variant_->source : spec.source;
        if (!spec.repeat.empty()) out.repeat = positive(spec.repeat, 0, repeat_at_most);
        out.grid = dimensions(spec.grid);
        out.block = dimensions(spec.block);
        out.cluster = dimensions(spec.cluster);
        if (!spec.shared.empty()) out.shared_bytes = positive(spec.shared, 0, std::numeric_limits<std::int32_t>::max());
        out.cooperative = spec.cooperative;
        for (const ArgumentSpec& argument : spec.arguments) out.arguments.push_back(argument_of(argument));
        return out;
    }

    Argument argument_of(const ArgumentSpec& spec) const {
        switch (spec.kind) {
            case ArgumentSpec::Kind::tensor_map:
                return tensor_map(spec);
            case ArgumentSpec::Kind::reference_value:
                return scratch_argument(spec.tensor + ".value");
            case ArgumentSpec::Kind::reference_magnitude:
                return scratch_argument(spec.tensor + ".magnitude");
            case ArgumentSpec::Kind::expression:
                break;
        }
        const auto scratch = variant_ ? std::span{variant_->scratch} : std::span<const Scratch>{};
        if (const auto objection = argument_objection(*data_.op, scratch, spec.expression))
            throw EvaluationError{objection->reason};
        return node_argument(*spec.expression.node());
    }

    /// Only forms that argument_objection() lets through.
    Argument node_argument(const ExpressionNode& node) const {
        if (node.kind == NodeKind::conditional) {
            const Value value = value_of(*node.children[0], scope_);
            const Cell condition = evaluator::truth_of(Cell::of(value), *node.children[0]);
            if (condition.failed()) throw EvaluationError{explain(condition)};
            return node_argument(*node.children[condition.truth() ? 1 : 2]);
        }
        if (node.kind == NodeKind::name) return named_argument(node.name);
        const Value value = value_of(node, scope_);
        return value_argument(value, node.function == Function::i32   ? DType::i32
                                     : node.function == Function::i64 ? DType::i64
                                                                      : DType::f32);
    }

    Argument named_argument(const std::string& name) const {
        if (const BoundTensor* found = data_.tensor(name)) {
            if (!found->present) return ValueArgument{};  // a null pointer
            return BufferArgument{index_of(*found)};
        }
        const auto scalar = std::ranges::find(data_.op->scalars, name, &Scalar::name);
        if (scalar != data_.op->scalars.end()) return value_argument(*find_value(data_.scalars, name), scalar->dtype);
        return scratch_argument(name);
    }

    /// A buffer that this config does without is a null pointer.
    Argument scratch_argument(const std::string& name) const {
        const auto found = std::ranges::find(out_.scratch, name, &ScratchBuffer::name);
        if (found == out_.scratch.end()) return ValueArgument{};
        return BufferArgument{static_cast<std::uint32_t>(data_.tensors.size()) +
                              static_cast<std::uint32_t>(found - out_.scratch.begin())};
    }

    Argument tensor_map(const ArgumentSpec& spec) const {
        const BoundTensor& of = tensor(spec.tensor);
        if (!of.present) return ValueArgument{};
        if (spec.box.size() != of.shape.size())
            throw EvaluationError{fmt::format("the tensor map of '{}' has a box of {} extents for {} dimensions",
                                              spec.tensor, spec.box.size(), of.shape.size())};
        TensorMapArgument out{.buffer = index_of(of),
                              .dtype = of.dtype,
                              .extents = {},
                              .strides_bytes = {},
                              .box = {},
                              .swizzle_bytes = static_cast<std::uint32_t>(spec.swizzle)};
        // An op file has the innermost dimension last, the driver has it first.
        for (std::size_t i = of.shape.size(); i-- > 0;) {
            out.extents.push_back(static_cast<std::uint64_t>(of.shape[i]));
            out.box.push_back(positive(spec.box[i], 1, 256));
            if (i + 1 < of.shape.size())
                out.strides_bytes.push_back(static_cast<std::uint64_t>(of.strides[i]) * size_of(of.dtype));
        }
        return out;
    }

    const Instance::Data& data_;
    const Variant* variant_;
    const Config* config_;
    const Scope& scope_;
    LaunchSequence out_;
};

}  // namespace

LaunchSequence Instance::launches(const Config& config, std::optional<int> blocks_per_sm) const {
    const Variant& variant = variant_of(*data_, config);
    return valued(op(), fmt::format("a launch of '{}'", config.text()), [&] {
        const InstanceScope scope{*data_, &config, blocks_per_sm};
        return Launches{*data_, &variant, &config, scope}.sequence(variant.launches);
    });
}

bool Instance::needs_blocks_per_sm(const Config& config) const {
    const Variant& variant = variant_of(*data_, config);
    const InstanceScope scope{*data_, &config};
    return std::ranges::any_of(variant.launches, [&](const LaunchSpec& launch) {
        const bool asks = std::ranges::any_of(launch.grid, [](const auto& part) { return part.uses("blocks_per_sm"); });
        return asks && (launch.when.empty() || launch.when.evaluate_bool(scope));
    });
}

LaunchSequence Instance::reference_launches() const {
    return valued(op(), "a launch of the device reference", [&] {
        const InstanceScope scope{*data_};
        return Launches{*data_, nullptr, nullptr, scope}.sequence(op().reference.launches);
    });
}

}  // namespace autotune
