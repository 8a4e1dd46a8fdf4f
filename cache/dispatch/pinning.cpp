// Configs that the application forces: neither a search nor a database has a say.
#include <fmt/core.h>

#include <algorithm>

#include "autotune/error.h"
#include "cache/dispatch/dispatcher_impl.h"

namespace autotune {
namespace {

bool fits(const Pin& pin, const Instance& instance) {
    return pin.op == &instance.op() && std::ranges::all_of(pin.fields, [&](const auto& field) {
               const Value* value = instance.problem().find(field.first);
               return value && same_value(*value, field.second);
           });
}

/// Each value is one that the variant declares. Whether they go together only a problem tells.
void require_declared(const Op& op, const Config& config) {
    const Variant* variant = op.variant(config.variant);
    if (!variant)
        throw Error{Error::Kind::usage, fmt::format("op '{}' has no variant '{}'", op.name, config.variant),
                    fmt::format("autotune ops {}", op.name)};
    for (const auto& [name, value] : config.values) {
        const auto parameter = std::ranges::find(variant->parameters, name, &Parameter::name);
        const bool declared =
            parameter != variant->parameters.end() &&
            std::ranges::any_of(parameter->values, [&](const Value& one) { return same_value(one, value); });
        if (!declared)
            throw Error{Error::Kind::usage,
                        fmt::format("{}={} is no value of variant '{}' of op '{}'", name, to_text(value), variant->name,
                                    op.name),
                        fmt::format("autotune space {}", op.name)};
    }
}

void refuse_while_frozen(bool frozen) {
    if (frozen) throw Error{Error::Kind::usage, "decisions are frozen; thaw() comes before pins change"};
}

}  // namespace

void Dispatcher::pin(std::string_view op_name, const FieldValues& fields, std::string_view config_text) {
    impl_->refuse_child();
    const std::lock_guard lock{impl_->mutex};
    refuse_while_frozen(impl_->frozen);
    const Op& op = impl_->ops().find(op_name);
    for (const auto& [name, value] : fields) refuse_unknown_field(op, name, value);
    Pin pin{.op = &op, .fields = fields, .config = config_from_text(config_text)};
    require_declared(op, pin.config);
    std::string about;
    for (const auto& [name, value] : fields) about += fmt::format(" {}={}", name, to_text(value));
    impl_->log(fmt::format("'{}'{} is pinned to {}", op.name, about, pin.config.text()));
    impl_->pins.insert(impl_->pins.begin(), std::move(pin));
    impl_->forget_plans();
}

bool Dispatcher::unpin(std::string_view op_name) {
    impl_->refuse_child();
    const std::lock_guard lock{impl_->mutex};
    refuse_while_frozen(impl_->frozen);
    const Op& op = impl_->ops().find(op_name);
    if (std::erase_if(impl_->pins, [&](const Pin& pin) { return pin.op == &op; }) == 0) return false;
    impl_->forget_plans();
    return true;
}

std::optional<LadderStep> Dispatcher::Impl::pinned_step(const Instance& instance, const OpKnowledge& knows) const {
    const auto pin = std::ranges::find_if(pins, [&](const Pin& one) { return fits(one, instance); });
    if (pin == pins.end()) return std::nullopt;
    LadderStep step{.rung = Rung::exact,
                    .config = pin->config,
                    .layer = Layer::pinned,
                    .why = "pinned by the application",
                    .compilers = knows.compilers};
    try {
        step.config = instance.resolve(step.config);  // what it leaves out has its default, which a problem may decide
    } catch (const Error& error) {
        step.refused = error.what();
        return step;
    }
    judge(step, instance, knows);
    return step;
}

void Dispatcher::Impl::put_pinned_first(std::vector<LadderStep>& steps, const Instance& instance,
                                        const OpKnowledge& knows) {
    std::optional<LadderStep> step = pinned_step(instance, knows);
    if (!step) return;
    if (!step->refused.empty()) {
        log(fmt::format("the config that '{}' is pinned to is not used for {}: {}", instance.op().name,
                        instance.problem().text(), step->refused));
        return;
    }
    std::erase_if(steps, [&](const LadderStep& other) { return other.name == step->name; });
    steps.insert(steps.begin(), std::move(*step));
}

}  // namespace autotune
