#include "tuner/strategies/features.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <variant>

namespace autotune {
namespace {

constexpr std::size_t expected_levels = 32;
constexpr std::size_t levels_at_most = 1024;  // of the numbers of an axis, and of its words
constexpr std::size_t twos_from = 5;          // values of a parameter: fewer have lengths of their own
constexpr double whole_below = 1e15;          // beyond, a double's last digits are not those of the value
constexpr double beside = 0.5;                // how far off the axis an absent parameter is

std::uint64_t mixed(std::uint64_t x) noexcept {  // the finaliser of SplitMix64
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

std::uint64_t hash_of(std::string_view text) noexcept {  // FNV-1a
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

std::optional<double> as_number(const Value& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value); real && std::isfinite(*real)) return *real;
    return std::nullopt;
}

/// What a parameter can be, over all variants that have it.
struct Axis {
    std::map<double, std::uint16_t> numbers;
    std::map<std::string, std::uint16_t> words;
    bool absent = false;  ///< some variant lacks it

    void add(const Value& value) {
        if (const auto number = as_number(value))
            numbers.emplace(*number, std::uint16_t{0});
        else
            words.emplace(to_text(value), std::uint16_t{0});
    }
    void number_levels() {
        std::size_t n = 0, w = 0;
        for (auto& [number, level] : numbers)
            level = static_cast<std::uint16_t>(n++ * levels_of_numbers() / numbers.size());
        for (auto& [word, level] : words)
            level = static_cast<std::uint16_t>(levels_of_numbers() + w++ % levels_at_most);
    }
    std::size_t levels_of_numbers() const { return std::min(numbers.size(), levels_at_most); }
    std::size_t present() const { return levels_of_numbers() + std::min(words.size(), levels_at_most); }
    std::uint16_t level_of(const Value& value) const {
        if (const auto number = as_number(value)) return numbers.at(*number);
        return words.at(to_text(value));
    }
    std::uint16_t level_of_absence() const { return static_cast<std::uint16_t>(present()); }
};

void set_distances(Features::Column& column, std::size_t numbers, std::size_t present, std::size_t levels) {
    column.levels = levels;
    column.distance.assign(levels * levels, 0);
    const double steps = numbers > 1 ? static_cast<double>(numbers - 1) : 1;
    const auto place = [&](std::size_t level) { return static_cast<double>(level) / std::sqrt(steps); };
    for (std::size_t a = 0; a < levels; ++a)
        for (std::size_t b = 0; b < levels; ++b) {
            double distance = a == b ? 0 : 1;
            if (a < numbers && b < numbers) distance = std::abs(place(a) - place(b));
            if (a != b && std::max(a, b) >= present && std::min(a, b) < numbers)
                distance = std::hypot(place(std::min(a, b)) - std::sqrt(steps) / 2, beside);
            column.distance[a * levels + b] = static_cast<float>(distance);
            column.widest = std::max(column.widest, static_cast<float>(distance));
        }
}

std::map<std::string, Axis> axes_of(const Space& space) {
    std::map<std::string, Axis> axes;
    for (const Space::VariantSpace& part : space.variants())
        for (const Parameter& parameter : part.variant->parameters)
            for (const Value& value : parameter.values) axes[parameter.name].add(value);
    for (auto& [name, axis] : axes) {
        axis.number_levels();
        for (const Space::VariantSpace& part : space.variants())
            axis.absent |=
                std::ranges::find(part.variant->parameters, name, &Parameter::name) == part.variant->parameters.end();
    }
    return axes;
}

/// A parameter of one variant, as the rows of the space hold it.
struct Place {
    std::size_t parameter = 0;
    std::vector<std::uint16_t> level;  ///< of each value's index
    std::vector<std::uint64_t> hash;
};

std::optional<Place> place_of(const std::string& name, const Axis& axis, const Variant& variant) {
    const auto found = std::ranges::find(variant.parameters, name, &Parameter::name);
    if (found == variant.parameters.end()) return std::nullopt;
    Place place{.parameter = static_cast<std::size_t>(found - variant.parameters.begin()), .level = {}, .hash = {}};
    for (const Value& value : found->values) {
        place.level.push_back(axis.level_of(value));
        place.hash.push_back(mixed(hash_of(name) + mixed(hash_of(to_text(value)))));
    }
    return place;
}

Features::Column column_of_variants(const Space& space, std::span<const std::size_t> configs, Features& features) {
    std::set<std::string> names;
    for (const Space::VariantSpace& part : space.variants()) names.insert(part.variant->name);
    std::vector<std::uint16_t> level;
    for (const Space::VariantSpace& part : space.variants())
        level.push_back(static_cast<std::uint16_t>(std::distance(names.begin(), names.find(part.variant->name))));
    Features::Column column;
    for (std::size_t i = 0; i < configs.size(); ++i) {
        const std::size_t part = space.variant_of(configs[i]);
        column.level.push_back(level[part]);
        features.identity[i] = hash_of(space.variants()[part].variant->name);
    }
    set_distances(column, 0, names.size(), names.size());
    return column;
}

Features::Column column_of_expectations(std::span<const double> expected_us) {
    Features::Column column;
    std::vector<double> sorted{expected_us.begin(), expected_us.end()};
    std::ranges::sort(sorted);
    for (const double expected : expected_us) {
        const auto below = std::ranges::lower_bound(sorted, expected) - sorted.begin();
        // By rank, finest at the fast end: half of the levels hold the fastest per cent or so.
        const double share = static_cast<double>(below + 1) / static_cast<double>(sorted.size() + 1);
        const double place = 1 + std::log(share) / std::log(static_cast<double>(sorted.size() + 1));
        column.level.push_back(static_cast<std::uint16_t>(place * (expected_levels - 1)));
    }
    set_distances(column, expected_levels, expected_levels, expected_levels);
    return column;
}

/// How often two divides each number of an axis, as a column beside the axis's own: 48 is between 32 and 64, but 64 has
/// more in common with 32. nullopt: it would say nothing new.
std::optional<Features::Column> column_of_twos(const Axis& axis, const Features::Column& own) {
    if (axis.absent || !axis.words.empty() || axis.numbers.size() < twos_from) return std::nullopt;
    if (axis.numbers.size() > axis.levels_of_numbers()) return std::nullopt;
    std::vector<int> twos;  // of each level
    bool powers = true;
    for (const auto& [number, level] : axis.numbers) {
        if (number != std::floor(number) || number == 0 || std::abs(number) >= whole_below) return std::nullopt;
        const auto whole = static_cast<std::uint64_t>(std::abs(number));
        twos.push_back(std::countr_zero(whole));
        powers = powers && std::has_single_bit(whole);
    }
    const std::set<int> distinct{twos.begin(), twos.end()};
    if (powers || distinct.size() < 2) return std::nullopt;
    Features::Column column{.derived = true};
    for (const std::uint16_t level : own.level)
        column.level.push_back(static_cast<std::uint16_t>(std::distance(distinct.begin(), distinct.find(twos[level]))));
    set_distances(column, distinct.size(), distinct.size(), distinct.size());
    return column;
}

}  // namespace

Features features_of(const Space& space, std::span<const std::size_t> configs, std::span<const double> expected_us) {
    Features features;
    features.identity.assign(configs.size(), 0);
    Features::Column variants = column_of_variants(space, configs, features);
    if (space.variants().size() > 1) features.columns.push_back(std::move(variants));
    const std::map<std::string, Axis> axes = axes_of(space);
    std::vector<Features::Column> columns(axes.size());
    std::vector<std::vector<std::optional<Place>>> places(axes.size());  // of each variant
    std::vector<Features::Column> derived;
    std::size_t c = 0;
    for (const auto& [name, axis] : axes) {
        for (const Space::VariantSpace& part : space.variants())
            places[c].push_back(place_of(name, axis, *part.variant));
        set_distances(columns[c], axis.levels_of_numbers(), axis.present(), axis.present() + (axis.absent ? 1 : 0));
        columns[c++].level.assign(configs.size(), axis.level_of_absence());
    }
    for (std::size_t i = 0; i < configs.size(); ++i) {
        const auto row = space.row(configs[i]);
        const std::size_t variant = space.variant_of(configs[i]);
        for (c = 0; c < columns.size(); ++c) {
            const std::optional<Place>& place = places[c][variant];
            if (!place) continue;
            columns[c].level[i] = place->level[row[place->parameter]];
            features.identity[i] += place->hash[row[place->parameter]];
        }
    }
    c = 0;
    for (const auto& [name, axis] : axes)
        if (auto twos = column_of_twos(axis, columns[c++])) derived.push_back(std::move(*twos));
    std::ranges::move(derived, std::back_inserter(columns));
    for (Features::Column& column : columns)
        if (std::ranges::adjacent_find(column.level, std::ranges::not_equal_to{}) != column.level.end())
            features.columns.push_back(std::move(column));
    if (!expected_us.empty()) features.columns.push_back(column_of_expectations(expected_us));
    return features;
}

std::uint64_t priority_of(std::uint64_t identity, std::uint64_t seed) noexcept {
    return mixed(identity + mixed(seed * 0x9e3779b97f4a7c15u + 1));
}

}  // namespace autotune
