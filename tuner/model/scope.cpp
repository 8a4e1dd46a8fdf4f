#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tuner/model/evaluator.h"
#include "tuner/model/instance_data.h"

namespace autotune {
namespace {

constexpr std::array<std::string_view, 10> device_name_table{
    "cc", "sm_count", "warp", "max_threads", "max_shared", "shared_per_sm", "registers_per_sm", "threads_per_sm",
    "l2", "memory"};

/// The mean element that a fill makes of an integer tensor.
double mean_of(const FillSpec& fill) {
    switch (fill.kind) {
        case FillSpec::Kind::constant:
            return fill.low;
        case FillSpec::Kind::permutation:
            return fill.modulus ? static_cast<double>(fill.modulus - 1) / 2 : 0.0;
        case FillSpec::Kind::zero:
            return 0.0;
        default:
            return (fill.low + fill.high) / 2;
    }
}

}  // namespace

std::span<const std::string_view> device_names() noexcept { return device_name_table; }

const Value* find_value(const NamedValues& values, std::string_view name) noexcept {
    const auto found = std::ranges::find(values, name, &NamedValues::value_type::first);
    return found == values.end() ? nullptr : &found->second;
}

const BoundTensor* Instance::Data::tensor(std::string_view name) const noexcept {
    const auto found = std::ranges::find(tensors, name, &BoundTensor::name);
    return found == tensors.end() ? nullptr : &*found;
}

InstanceScope::InstanceScope(const Instance::Data& data, const Config* config, std::optional<int> blocks_per_sm)
    : data_{data}, config_{config}, lets_(data.op->lets.size()) {
    if (blocks_per_sm) blocks_per_sm_ = std::int64_t{*blocks_per_sm};
}

const Value* InstanceScope::find(std::string_view name) const {
    if (config_)
        if (const Value* value = find_value(config_->values, name)) return value;
    if (const Value* value = data_.problem.find(name)) return value;
    for (const NamedValues* values : {&data_.scalars, &data_.strides})
        if (const Value* value = find_value(*values, name)) return value;
    const auto& lets = data_.op->lets;
    const auto let = std::ranges::find(lets, name, &std::pair<std::string, Expression>::first);
    if (let != lets.end()) return let_value(static_cast<std::size_t>(let - lets.begin()));
    if (name == "blocks_per_sm") return blocks_per_sm_ ? &*blocks_per_sm_ : nullptr;
    return find_value(data_.device_values, name);
}

const Value* InstanceScope::let_value(std::size_t number) const {
    Let& let = lets_[number];
    if (let.state == Let::State::running)
        throw EvaluationError{fmt::format("'{}' depends on itself", data_.op->lets[number].first)};
    if (let.state == Let::State::untouched) {
        if (lets_running_ == lets_deep_at_most) throw EvaluationError{lets_too_deep(data_.op->lets[number].first)};
        let.state = Let::State::running;
        ++lets_running_;
        try {
            let.value = data_.op->lets[number].second.evaluate(*this);
        } catch (...) {
            let.state = Let::State::untouched;
            --lets_running_;
            throw;
        }
        --lets_running_;
        let.state = Let::State::known;
    }
    return &let.value;
}

std::optional<std::int64_t> InstanceScope::tensor_align(std::string_view name) const {
    const BoundTensor* tensor = data_.tensor(name);
    return tensor ? std::optional<std::int64_t>{tensor->align} : std::nullopt;
}

std::optional<bool> InstanceScope::tensor_contiguous(std::string_view name) const {
    const BoundTensor* tensor = data_.tensor(name);
    return tensor ? std::optional{tensor->contiguous} : std::nullopt;
}

std::optional<std::int64_t> InstanceScope::tensor_sum(std::string_view name) const {
    const BoundTensor* tensor = data_.tensor(name);
    if (tensor == nullptr || info(tensor->dtype).floating) return std::nullopt;
    if (!tensor->present) return 0;
    const double sum = mean_of(fill_numbers(data_, *tensor)) * static_cast<double>(tensor->elements);
    if (!(std::abs(sum) < 0x1p62)) return std::nullopt;
    return std::llround(sum);
}

std::string word_of(const Expression& expression, const Scope& scope) {
    const auto bare = expression.bare_name();
    return bare && !scope.find(*bare) ? *bare : expression.evaluate_text(scope);
}

DType dtype_of(const Expression& expression, const Scope& scope) {
    const std::string word = word_of(expression, scope);
    const auto dtype = dtype_named(word);
    if (!dtype) throw EvaluationError{fmt::format("'{}' is no element type", word)};
    return *dtype;
}

std::string numbers_of(const Expression& expression, const Scope& scope) {
    std::string out;
    const auto add = [&](const std::string& name, const std::string& value) {
        out += fmt::format("{}{}={}", out.empty() ? " (" : ", ", name, value);
    };
    for (const std::string& name : expression.names()) {
        try {
            if (const Value* value = scope.find(name)) add(name, to_text(*value));
        } catch (const EvaluationError&) {  // a let without a value: the message says so by itself
        }
    }
    for (const std::string& name : expression.tensors())
        if (const auto align = scope.tensor_align(name)) {
            if (expression.text().find("align") != std::string::npos)
                add("align(" + name + ")", fmt::format("{}", *align));
            if (expression.text().find("contiguous") != std::string::npos)
                add("contiguous(" + name + ")", to_text(Value{scope.tensor_contiguous(name).value_or(false)}));
        }
    return out.empty() ? out : out + ")";
}

}  // namespace autotune
