#include "tuner/model/keyed_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "autotune/error.h"
#include "tuner/model/free_stride.h"
#include "tuner/model/problem_key.h"

namespace autotune {
namespace {

using Json = nlohmann::json;

std::vector<std::pair<std::string, int>> alignments_of(const Op& op, const Json& key) {
    std::vector<std::pair<std::string, int>> align;
    for (const Tensor& tensor : op.tensors)
        if (const auto found = key.find(tensor.name + ".align"); found != key.end() && found->is_number_integer())
            align.emplace_back(tensor.name, std::clamp(found->get<int>(), 1, 16));
    return align;
}

/// Gives free strides values that put tensors into the layouts of a key.
class StrideMaker {
public:
    explicit StrideMaker(const Op& op) : op_{op} {}

    void put(const BoundTensor& packed, std::string_view layout) {
        BoundTensor tensor = packed;
        for (std::vector<std::size_t> order = inner_first(packed); !order.empty(); order = next(std::move(order))) {
            tensor.strides = laid_out(packed, order, layout == "other");
            tensor.contiguous = false;
            if (layout_of(tensor) == layout) break;
        }
        for (std::size_t i = 0; i < tensor.strides.size(); ++i)
            if (const auto name = free_name(packed, i)) made_.emplace(*name, tensor.strides[i]);
    }

    std::vector<std::pair<std::string, std::int64_t>> strides() const { return {made_.begin(), made_.end()}; }

private:
    std::optional<std::string> free_name(const BoundTensor& tensor, std::size_t i) const {
        return tensor.spec->strides.empty() ? std::nullopt : free_stride(op_, tensor.spec->strides[i]);
    }

    /// Dimensions from the innermost outwards; those whose strides are not free lie inside.
    std::vector<std::size_t> inner_first(const BoundTensor& tensor) {
        std::vector<std::size_t> order(tensor.shape.size());
        std::iota(order.rbegin(), order.rend(), std::size_t{0});
        const auto first_free =
            std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return !free_name(tensor, i); });
        fixed_ = first_free - order.begin();
        return order;
    }

    /// The free dimensions in another order, the innermost changed first; empty when all were had.
    std::vector<std::size_t> next(std::vector<std::size_t> order) const {
        if (!std::next_permutation(order.rbegin(), order.rend() - fixed_)) order.clear();
        return order;
    }

    std::vector<std::int64_t> laid_out(const BoundTensor& tensor, const std::vector<std::size_t>& order,
                                       bool pad_innermost) const {
        const auto unit = static_cast<std::int64_t>(std::max<std::size_t>(1, 16 / size_of(tensor.dtype)));
        std::vector<std::int64_t> strides = tensor.strides;
        std::int64_t span = 1;
        for (const std::size_t i : order) {
            if (const auto name = free_name(tensor, i)) {
                const auto made = made_.find(*name);
                const bool pad = pad_innermost || i + 1 < tensor.shape.size();
                strides[i] = made != made_.end() ? made->second : pad ? (span / unit + 1) * unit : span;
            }
            span = std::max(span, strides[i] * std::max<std::int64_t>(tensor.shape[i], 1));
        }
        return strides;
    }

    const Op& op_;
    std::map<std::string, std::int64_t> made_;
    std::ptrdiff_t fixed_ = 0;
};

}  // namespace

Instance instance_of_key(const Op& op, const std::vector<std::pair<std::string, Value>>& fields,
                         std::string_view key_json, std::span<const std::byte> key, const DeviceLimits& limits) {
    std::vector<std::pair<std::string, Value>> known;
    for (const auto& field : fields)
        if (op.field(field.first)) known.push_back(field);
    const Json layouts = Json::parse(key_json, nullptr, false);
    Binding binding;
    if (layouts.is_object()) binding.align = alignments_of(op, layouts);
    Instance instance = Instance::make(op, known, limits, binding);
    if (std::ranges::equal(instance.key(), key)) return instance;

    StrideMaker maker{op};
    for (const BoundTensor& tensor : instance.tensors()) {
        const auto wanted = layouts.is_object() ? layouts.find(tensor.name + ".layout") : layouts.end();
        if (wanted == layouts.end() || !wanted->is_string() || *wanted == layout_of(tensor)) continue;
        maker.put(tensor, wanted->get<std::string>());
    }
    binding.strides = maker.strides();
    instance = Instance::make(op, known, limits, binding);
    if (std::ranges::equal(instance.key(), key)) return instance;
    throw Error{Error::Kind::usage,
                fmt::format("a stored problem of '{}' is none that its files of today have: {}", op.name, key_json),
                fmt::format("autotune ops {}", op.name)};
}

}  // namespace autotune
