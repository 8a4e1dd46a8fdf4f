#include "cache/dispatch/plan.h"

namespace autotune {

namespace {

/// Whether a call's number can be handed on as it is; the others are converted where the plan is made.
bool passes_as_is(DType dtype) noexcept {
    return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32 || dtype == DType::i64 ||
           dtype == DType::u32;
}

/// Where scalars are named in an expression.
class ScalarUses {
public:
    explicit ScalarUses(const Op& op) : op_{op}, deciding_(op.scalars.size(), false) {
        for (std::size_t i = 0; i < op.scalars.size(); ++i) deciding_[i] = !passes_as_is(op.scalars[i].dtype);
    }
    void see(const Expression& expression) {
        for (const std::string& name : expression.names())
            for (std::size_t i = 0; i < op_.scalars.size(); ++i)
                if (op_.scalars[i].name == name) deciding_[i] = true;
    }
    void see(const std::vector<Expression>& expressions) {
        for (const Expression& expression : expressions) see(expression);
    }
    void see(const std::vector<Constraint>& constraints) {
        for (const Constraint& constraint : constraints) see(constraint.holds);
    }
    void see(const LaunchSpec& launch) {
        see(launch.when);
        see(launch.repeat);
        see(launch.grid);
        see(launch.block);
        see(launch.cluster);
        see(launch.shared);
        for (const ArgumentSpec& argument : launch.arguments) {
            if (!argument.expression.bare_name()) see(argument.expression);
            see(argument.box);
        }
    }
    void see(const Variant& variant) {
        see(variant.needs);
        see(variant.constraints);
        for (const auto& [macro, expression] : variant.define) see(expression);
        for (const Parameter& parameter : variant.parameters) see(parameter.fallback);
        for (const Scratch& scratch : variant.scratch) {
            see(scratch.dtype);
            see(scratch.shape);
            see(scratch.when);
        }
        for (const LaunchSpec& launch : variant.launches) see(launch);
    }
    std::vector<bool> result() && { return std::move(deciding_); }

private:
    const Op& op_;
    std::vector<bool> deciding_;
};

}  // namespace

std::vector<bool> deciding_scalars(const Op& op) {
    ScalarUses uses{op};
    for (const Field& field : op.fields) {
        uses.see(field.from);
        uses.see(field.fallback);
    }
    for (const auto& [name, expression] : op.lets) uses.see(expression);
    uses.see(op.constraints);
    for (const Tensor& tensor : op.tensors) {
        uses.see(tensor.role);
        uses.see(tensor.dtype);
        uses.see(tensor.shape);
        uses.see(tensor.strides);
        uses.see(tensor.when);
    }
    for (const Variant& variant : op.variants) uses.see(variant);
    return std::move(uses).result();
}

}  // namespace autotune
