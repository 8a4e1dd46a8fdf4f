#include "tuner/model/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>

#include "autotune/error.h"
#include "tuner/model/instance_data.h"
#include "tuner/model/parameter_group.h"

namespace autotune {
namespace {

constexpr std::size_t parameters_at_most = 64;
constexpr std::size_t values_at_most = 65535;
constexpr std::size_t edges_at_most = std::size_t{1} << 23;
constexpr std::size_t words_at_most = std::size_t{1} << 25;
/// What file order may take before another is tried: what a person does not notice.
constexpr GroupLimits in_file_order{
    .steps = std::uint64_t{1} << 24, .edges = std::size_t{1} << 20, .words = words_at_most};

/// Why `needs` leaves a variant out; empty when it does not.
std::string unmet(const Instance& instance, const Variant& variant) {
    if (variant.needs.empty()) return {};
    const InstanceScope scope{instance.data()};
    return broken_claim(Constraint{"needs", variant.needs}, scope).value_or("");
}

double raw_of(const Variant& variant) {
    double out = 1;
    for (const Parameter& parameter : variant.parameters) out *= static_cast<double>(parameter.values.size());
    return out;
}

/// The index of each value; nullopt when the config is none of the variant.
std::optional<Space::Row> row_of(const Variant& variant, const Config& config) {
    if (config.values.size() != variant.parameters.size()) return std::nullopt;
    Space::Row row{variant.parameters.size()};
    for (std::size_t i = 0; i < row.size(); ++i) {
        const Parameter& parameter = variant.parameters[i];
        const Value* value = find_value(config.values, parameter.name);
        if (value == nullptr) return std::nullopt;
        const auto found = std::ranges::find(parameter.values, *value);
        if (found == parameter.values.end()) return std::nullopt;
        row[i] = static_cast<std::uint16_t>(found - parameter.values.begin());
    }
    return row;
}

/// All parameters in one group, by the rows there are.
ParameterGroup group_of_rows(const Variant& variant, std::span<const std::uint16_t> rows) {
    ParameterGroup out{.order = {}, .diagram = Diagram::of_rows(rows, variant.parameters.size())};
    for (std::size_t i = 0; i < variant.parameters.size(); ++i) out.order.push_back(i);
    return out;
}

/// Builds the groups of one variant.
class VariantBuilder {
public:
    VariantBuilder(const Instance& instance, const Variant& variant, std::size_t at_most, std::uint64_t steps_at_most)
        : instance_{instance},
          variant_{variant},
          at_most_{at_most},
          whole_limits_{.steps = steps_at_most, .edges = edges_at_most, .words = words_at_most},
          claims_{claims_of(variant)} {
        if (variant.parameters.size() > parameters_at_most)
            refuse(fmt::format("has more than {} parameters", parameters_at_most));
        for (const Parameter& parameter : variant.parameters)
            if (parameter.values.size() > values_at_most)
                refuse(fmt::format("has more than {} values of {}", values_at_most, parameter.name));
        rejected_.assign(claims_.size(), 0.0);
    }

    std::vector<ParameterGroup> groups() {
        if (raw_of(variant_) == 0) return {};
        const std::vector<Condition> conditions = conditions_of(instance_, variant_, claims_);
        for (const Condition& condition : conditions)
            if (condition.holds.used() == 0) {
                const Cell cell = condition.holds.evaluate({});
                if (cell.numeric() && cell.truth()) continue;
                rejected_[condition.claim] += raw_of(variant_);
                return {};
            }
        std::vector<ParameterGroup> out;
        for (const std::vector<std::size_t>& slots : connected(variant_.parameters.size(), conditions))
            out.push_back(group(slots, conditions));
        count(out);
        return out;
    }

    std::size_t count() const noexcept { return count_; }

    std::vector<Space::Rejection> rejections() const {
        std::vector<Space::Rejection> out;
        for (std::size_t i = 0; i < claims_.size(); ++i) {
            if (rejected_[i] == 0) continue;
            const auto same = std::ranges::find(out, claims_[i].text, &Space::Rejection::claim);
            if (same != out.end())
                same->raw_configs += rejected_[i];
            else
                out.push_back({claims_[i].text, rejected_[i]});
        }
        return out;
    }

private:
    [[noreturn]] void refuse(const std::string& what) const {
        const std::string problem = instance_.problem().text();
        throw Error{Error::Kind::usage,
                    fmt::format("variant '{}' of '{}' {}{}: give it tighter constraints or fewer values", variant_.name,
                                instance_.op().name, what, problem.empty() ? "" : " for " + problem)};
    }

    ParameterGroup group(const std::vector<std::size_t>& slots, std::span<const Condition> all) {
        std::vector<Condition> conditions;
        std::ranges::copy_if(all, std::back_inserter(conditions), [&](const Condition& condition) {
            return std::ranges::any_of(slots, [&](std::size_t slot) { return condition.holds.used() >> slot & 1; });
        });
        const auto built = [&](const std::vector<std::size_t>& order, const GroupLimits& limits) {
            GroupLimits own = limits;
            own.steps = std::min(limits.steps, whole_limits_.steps);
            return build_group(order, variant_.parameters, conditions, claims_.size(), own);
        };
        const std::vector<std::size_t> closing = closing_order(slots, variant_.parameters, conditions);
        const bool large_table =
            std::ranges::any_of(conditions, [&](const Condition& c) { return fills_large_table(c); });
        const bool another_way = closing != slots || large_table;
        if (auto out = built(slots, another_way ? in_file_order : whole_limits_)) return std::move(*out);
        if (large_table) {
            GroupLimits tabulating = whole_limits_;
            tabulating.tabulated = ConditionStates::many;
            if (auto out = built(closing, tabulating)) return std::move(*out);
        }
        if (another_way)
            if (auto out = built(closing, whole_limits_)) return std::move(*out);
        refuse(fmt::format("takes more than {} steps to enumerate, or {} MiB", whole_limits_.steps,
                           whole_limits_.words >> 18));
    }

    /// Whether a condition that is folded otherwise can be tabulated, too.
    bool fills_large_table(const Condition& condition) const {
        return !ConditionStates::table_steps(condition.holds, variant_.parameters, ConditionStates::few) &&
               ConditionStates::table_steps(condition.holds, variant_.parameters, ConditionStates::many);
    }

    /// Groups know nothing of each other: what one rejects is not asked of the next.
    void count(const std::vector<ParameterGroup>& groups) {
        count_ = 1;
        double valid = 1, raw = raw_of(variant_);
        bool none = false;
        for (const ParameterGroup& group : groups) {
            raw /= group.raw;
            for (std::size_t i = 0; i < rejected_.size(); ++i) rejected_[i] += valid * group.rejected[i] * raw;
            valid *= static_cast<double>(group.diagram.rows());
            none = none || group.diagram.rows() == 0;
        }
        if (none) {
            count_ = 0;
            return;
        }
        for (const ParameterGroup& group : groups)
            if (__builtin_mul_overflow(count_, group.diagram.rows(), &count_) || count_ > at_most_)
                refuse(fmt::format("has more than {} valid configs", at_most_));
    }

    const Instance& instance_;
    const Variant& variant_;
    std::size_t at_most_;
    GroupLimits whole_limits_;
    std::vector<Claim> claims_;
    std::vector<double> rejected_;
    std::size_t count_ = 0;
};

}  // namespace

/// A way into a part: what is fixed so far, how many configs go on from there and how many come before them.
class Space::Cursor {
public:
    Cursor(const VariantSpace& variant, const Part& part) : part_{part}, open_{variant.count} {}

    const Diagram& diagram(std::size_t place) const { return part_.groups[part_.group_of[place]]; }
    std::uint32_t node(std::size_t place) const { return nodes_[part_.group_of[place]]; }
    /// Configs that go on alike once this place's group is taken out.
    std::uint64_t apart(std::size_t place) const { return open_ / diagram(place).rows(node(place)); }
    void take(std::size_t place, const Diagram::Edge& edge) {
        const std::uint64_t others = apart(place);
        before_ += edge.before * others;
        open_ = others * diagram(place).rows(edge.node);
        nodes_[part_.group_of[place]] = edge.node;
    }
    std::uint64_t before() const noexcept { return before_; }

private:
    const Part& part_;
    std::array<std::uint32_t, parameters_at_most> nodes_{};
    std::uint64_t open_ = 0, before_ = 0;
};

/// Walks the valid configs whose values lie within a window each.
class Space::Surroundings {
public:
    struct Window {
        std::uint16_t low = 0, high = 0;
    };

    Surroundings(const VariantSpace& variant, const Part& part, std::vector<Window> windows, std::size_t at_most)
        : variant_{variant}, windows_{std::move(windows)}, at_most_{at_most}, steps_at_most_{64 * at_most} {
        walk(0, Cursor{variant, part});
    }

    std::vector<std::size_t> numbers() && { return std::move(numbers_); }

private:
    void walk(std::size_t place, const Cursor& cursor) {
        if (place == windows_.size()) {
            numbers_.push_back(variant_.first + cursor.before());
            return;
        }
        for (const Diagram::Edge& edge : cursor.diagram(place).edges(cursor.node(place))) {
            if (edge.value < windows_[place].low) continue;
            if (edge.value > windows_[place].high || numbers_.size() == at_most_ || ++steps_ > steps_at_most_) return;
            Cursor next = cursor;
            next.take(place, edge);
            walk(place + 1, next);
        }
    }

    const VariantSpace& variant_;
    std::vector<Window> windows_;
    std::size_t at_most_, steps_at_most_, steps_ = 0;
    std::vector<std::size_t> numbers_;
};

Space Space::make(const Instance& instance, std::size_t at_most, std::uint64_t steps_at_most) {
    Space space;
    for (const Variant& variant : instance.op().variants) {
        VariantSpace made{.variant = &variant, .raw = raw_of(variant), .unmet = unmet(instance, variant)};
        std::vector<ParameterGroup> groups;
        if (made.unmet.empty()) {
            VariantBuilder builder{instance, variant, at_most, steps_at_most};
            groups = builder.groups();
            made.count = builder.count();
            made.rejections = builder.rejections();
        }
        space.add(std::move(made), std::move(groups));
    }
    space.set_default(instance);
    return space;
}

Space Space::of(const Instance& instance, std::span<const Config> configs) {
    for (const Config& config : configs)
        if (const auto objection = instance.objection(config))
            throw Error{Error::Kind::usage, fmt::format("the config '{}' is not valid: {}", config.text(), *objection)};
    Space space;
    for (const Variant& variant : instance.op().variants) {
        std::vector<std::vector<std::uint16_t>> rows;
        for (const Config& config : configs)
            if (config.variant == variant.name) {
                const Row row = *row_of(variant, config);
                rows.emplace_back(row.begin(), row.end());
            }
        std::ranges::sort(rows);
        rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
        std::vector<std::uint16_t> flat;
        for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
        std::vector<ParameterGroup> groups;
        if (!rows.empty()) groups.push_back(group_of_rows(variant, flat));
        space.add(
            {.variant = &variant, .raw = raw_of(variant), .count = rows.size(), .unmet = unmet(instance, variant)},
            std::move(groups));
    }
    space.set_default(instance);
    return space;
}

Space Space::of_rows(const Instance& instance, std::span<const std::uint16_t> rows) {
    const Variant& variant = instance.op().variants.front();
    ParameterGroup group = group_of_rows(variant, rows);
    Space space;
    std::vector<ParameterGroup> groups;
    VariantSpace made{.variant = &variant, .raw = raw_of(variant), .count = group.diagram.rows()};
    groups.push_back(std::move(group));
    space.add(std::move(made), std::move(groups));
    space.set_default(instance);
    return space;
}

/// A group's parameters take the places that are theirs in file order, in its own order.
void Space::add(VariantSpace variant, std::vector<ParameterGroup> groups) {
    variant.first = size();
    variant.order.resize(variant.variant->parameters.size());
    Part part;
    part.group_of.resize(variant.order.size());
    for (std::size_t i = 0; i < variant.order.size(); ++i) variant.order[i] = i;
    for (ParameterGroup& group : groups) {
        std::vector<std::size_t> places = group.order;
        std::ranges::sort(places);
        for (std::size_t i = 0; i < places.size(); ++i) {
            variant.order[places[i]] = group.order[i];
            part.group_of[places[i]] = part.groups.size();
        }
        part.groups.push_back(std::move(group.diagram));
    }
    variants_.push_back(std::move(variant));
    parts_.push_back(std::move(part));
}

void Space::set_default(const Instance& instance) {
    try {
        default_ = find(instance.default_config()).value_or(0);
    } catch (const Error& error) {
        // Who looks at a space may want to see why nothing is valid; who tunes asks for the default and is told.
        if (error.kind() != Error::Kind::nothing_found) throw;
    }
}

std::size_t Space::size() const noexcept {
    return variants_.empty() ? 0 : variants_.back().first + variants_.back().count;
}

double Space::raw_size() const noexcept {
    double out = 0;
    for (const VariantSpace& part : variants_) out += part.raw;
    return out;
}

std::size_t Space::variant_of(std::size_t number) const noexcept {
    std::size_t i = 0;
    while (i + 1 < variants_.size() && number >= variants_[i].first + variants_[i].count) ++i;
    return i;
}

Space::Row Space::row(std::size_t number) const noexcept {
    const std::size_t v = variant_of(number);
    const VariantSpace& variant = variants_[v];
    Row out{variant.order.size()};
    Cursor cursor{variant, parts_[v]};
    for (std::size_t place = 0; place < out.size(); ++place) {
        const std::uint64_t left = number - variant.first - cursor.before();
        const Diagram::Edge& edge = cursor.diagram(place).holding(cursor.node(place), left / cursor.apart(place));
        out[variant.order[place]] = edge.value;
        cursor.take(place, edge);
    }
    return out;
}

std::optional<std::size_t> Space::number_of(std::size_t variant, const Row& row) const noexcept {
    const VariantSpace& part = variants_[variant];
    if (part.count == 0 || row.size() != part.order.size()) return std::nullopt;
    Cursor cursor{part, parts_[variant]};
    for (std::size_t place = 0; place < part.order.size(); ++place) {
        const Diagram::Edge* edge = cursor.diagram(place).find(cursor.node(place), row[part.order[place]]);
        if (edge == nullptr) return std::nullopt;
        cursor.take(place, *edge);
    }
    return part.first + cursor.before();
}

Config Space::config(std::size_t number) const {
    if (number >= size())
        throw Error{Error::Kind::internal, fmt::format("config {} was asked for of {}", number, size())};
    const Variant& variant = *variants_[variant_of(number)].variant;
    Config out{.variant = variant.name, .values = {}};
    const Row indices = row(number);
    for (std::size_t i = 0; i < indices.size(); ++i)
        out.values.emplace_back(variant.parameters[i].name, variant.parameters[i].values[indices[i]]);
    return out;
}

std::optional<std::size_t> Space::find(const Config& config) const {
    for (std::size_t i = 0; i < variants_.size(); ++i)
        if (variants_[i].variant->name == config.variant)
            if (const auto wanted = row_of(*variants_[i].variant, config)) return number_of(i, *wanted);
    return std::nullopt;
}

std::vector<std::size_t> Space::neighbours(std::size_t number, Neighbourhood kind, std::size_t at_most) const {
    const std::size_t v = variant_of(number);
    const VariantSpace& variant = variants_[v];
    const Row own = row(number);
    if (kind == Neighbourhood::hamming) {
        std::vector<std::size_t> out;
        Row changed = own;
        for (std::size_t i = 0; i < own.size(); ++i) {
            const std::size_t values = variant.variant->parameters[i].values.size();
            for (std::size_t value = 0; value < values; ++value) {
                changed[i] = static_cast<std::uint16_t>(value);
                if (value == own[i]) continue;
                if (const auto found = number_of(v, changed)) out.push_back(*found);
            }
            changed[i] = own[i];
        }
        return out;
    }
    std::vector<Surroundings::Window> windows(own.size());
    for (std::size_t g = 0; g < parts_[v].groups.size(); ++g)
        for (std::size_t place = 0, inside = 0; place < own.size(); ++place) {
            if (parts_[v].group_of[place] != g) continue;
            const std::uint16_t value = own[variant.order[place]];
            const std::vector<std::uint16_t>& occurring = parts_[v].groups[g].values(inside++);
            const auto at = std::ranges::lower_bound(occurring, value);
            windows[place] = {at == occurring.begin() ? value : *std::prev(at),
                              std::next(at) == occurring.end() ? value : *std::next(at)};
            if (kind == Neighbourhood::strictly_adjacent)
                windows[place] = {static_cast<std::uint16_t>(value > 0 ? value - 1 : 0),
                                  static_cast<std::uint16_t>(value + 1)};
        }
    std::vector<std::size_t> out = Surroundings{variant, parts_[v], std::move(windows), at_most + 1}.numbers();
    std::erase(out, number);
    if (out.size() > at_most) out.pop_back();
    return out;
}

}  // namespace autotune
