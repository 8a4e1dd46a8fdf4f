#include "tuner/worker/ragged.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "autotune/error.h"

namespace autotune {
namespace {

using Fields = GivenFields;

void set_field(Fields& fields, const std::string& name, const Value& value) {
    for (auto& [have, old] : fields)
        if (have == name) old = value;
}

struct Variation {
    Fields fields;
    Fields instead;  ///< where the problem of the fields is not legal; may be empty
};

/// Every variation of one dimension, then the op's list.
std::vector<Variation> variations(const Instance& instance) {
    std::vector<Variation> all;
    const Fields given = given_fields(instance);
    for (const auto& [name, value] : given) {
        const Field* field = instance.op().field(name);
        const auto* extent = std::get_if<std::int64_t>(&value);
        if (!field || field->kind != Field::Kind::dim || !extent) continue;
        for (const std::int64_t other : {prime_below(*extent / 3), *extent - 1, *extent + 1, std::int64_t{1}}) {
            if (other < 1 || other == *extent) continue;
            all.push_back({given, with_followers(instance, name, other)});
            set_field(all.back().fields, name, other);
        }
    }
    for (const auto& check : instance.op().check_problems) {
        Fields fields = given;
        for (const auto& [name, value] : check) set_field(fields, name, value);
        all.push_back({std::move(fields), {}});
    }
    return all;
}

double work_of(const Instance& instance) {
    double elements = 0;
    for (const BoundTensor& tensor : instance.tensors())
        if (tensor.present) elements += static_cast<double>(tensor.elements);
    return std::max(instance.flops(), elements);
}

}  // namespace

std::int64_t prime_below(std::int64_t n) {
    for (std::int64_t candidate = n; candidate > 2; --candidate) {
        bool prime = candidate % 2 != 0;
        for (std::int64_t d = 3; prime && d * d <= candidate; d += 2) prime = candidate % d != 0;
        if (prime) return candidate;
    }
    return 2;
}

GivenFields given_fields(const Instance& instance) {
    Fields fields;
    for (const auto& [name, value] : instance.problem().fields) {
        const Field* field = instance.op().field(name);
        if (field && field->from.empty() && !field->from_inputs) fields.emplace_back(name, value);
    }
    return fields;
}

GivenFields with_followers(const Instance& instance, const std::string& name, std::int64_t extent) {
    Fields fields = given_fields(instance);
    const auto changed = std::ranges::find(fields, name, &Fields::value_type::first);
    if (changed == fields.end()) return {};
    const Value was = std::exchange(changed->second, extent);
    const std::size_t followers = std::erase_if(fields, [&](const auto& given) {
        return given.second == was && instance.op().field(given.first)->fallback.bare_name() == name;
    });
    return followers ? fields : Fields{};
}

std::vector<Instance> ragged_problems(const Instance& instance, const Config& config, double most_work) {
    std::vector<Instance> found;
    std::set<std::string> seen{instance.problem().text()};
    const auto made = [&](const Fields& fields) -> std::optional<Instance> {
        try {
            return Instance::make(instance.op(), fields, instance.limits(),
                                  {.scalars = instance.binding().scalars, .align = instance.binding().align});
        } catch (const Error&) {  // no legal problem
            return std::nullopt;
        }
    };
    for (const Variation& variation : variations(instance)) {
        std::optional<Instance> other = made(variation.fields);
        if (!other && !variation.instead.empty()) other = made(variation.instead);
        if (!other || work_of(*other) > most_work * work_of(instance) || other->objection(config)) continue;
        if (seen.insert(other->problem().text()).second) found.push_back(std::move(*other));
    }
    return found;
}

}  // namespace autotune
