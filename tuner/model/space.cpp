#include "tuner/model/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <compare>

#include "autotune/error.h"
#include "tuner/model/bound_expression.h"
#include "tuner/model/claims.h"
#include "tuner/model/instance_data.h"

namespace autotune {
namespace {

constexpr std::size_t table_entries_at_most = std::size_t{1} << 20;
constexpr std::size_t parameters_at_most = 64;
constexpr std::size_t values_at_most = 65535;

/// Names of an instance without its lets, which a BoundExpression puts in by itself.
class KnownNames final : public Scope {
public:
    explicit KnownNames(const Instance::Data& data) : all_{data, nullptr, 1}, lets_{data.op->lets} {}
    const Value* find(std::string_view name) const override {
        const auto let = std::ranges::find(lets_, name, &std::pair<std::string, Expression>::first);
        return let == lets_.end() ? all_.find(name) : nullptr;
    }
    std::optional<std::int64_t> tensor_align(std::string_view name) const override { return all_.tensor_align(name); }
    std::optional<bool> tensor_contiguous(std::string_view name) const override { return all_.tensor_contiguous(name); }
    std::optional<std::int64_t> tensor_sum(std::string_view name) const override { return all_.tensor_sum(name); }

private:
    InstanceScope all_;
    std::span<const std::pair<std::string, Expression>> lets_;
};

std::vector<std::string> parameter_names(const Variant& variant) {
    std::vector<std::string> names;
    for (const Parameter& parameter : variant.parameters) names.push_back(parameter.name);
    return names;
}

/// A claim of a variant, or one operand of its outermost `and`, ready to be judged at the depth where the last of its
/// parameters gets its value. Most look at two or three parameters: their verdicts go into a table, so that each
/// combination is evaluated once however often the walk meets it.
class Check {
public:
    /// when: empty where the claim has none
    Check(const Claim& claim, const Instance& instance, const Variant& variant, std::optional<BoundExpression> when,
          std::vector<BoundExpression> pieces)
        : claim_{claim}, limits_{instance.limits()}, when_{std::move(when)}, pieces_{std::move(pieces)} {
        std::uint64_t used = when_ ? when_->used() : 0;
        for (const BoundExpression& piece : pieces_) used |= piece.used();
        depth_ = static_cast<std::size_t>(std::bit_width(used));
        std::size_t entries = 1;
        strides_.assign(variant.parameters.size(), 0);
        for (std::size_t i = 0; i < variant.parameters.size() && entries <= table_entries_at_most; ++i) {
            if ((used >> i & 1) == 0) continue;
            strides_[i] = entries;
            entries *= variant.parameters[i].values.size();
        }
        if (entries <= table_entries_at_most) table_.assign(entries, Verdict::unknown);
    }

    /// All that must hold for the claim to hold.
    static std::vector<Check> of(const Claim& claim, const Instance& instance, const Variant& variant,
                                 const KnownNames& known) {
        const auto names = parameter_names(variant);
        const auto bound = [&](const Expression& expression) {
            return BoundExpression{expression, known, names, instance.op().lets};
        };
        std::vector<Check> out;
        if (claim.kind == Claim::Kind::declared) {
            for (BoundExpression& part : bound(*claim.pieces[0]).conjuncts())
                out.push_back(Check{claim, instance, variant, std::nullopt, {std::move(part)}});
            return out;
        }
        std::vector<BoundExpression> pieces;
        for (const Expression* piece : claim.pieces) pieces.push_back(bound(*piece));
        out.push_back(Check{claim, instance, variant, claim.when ? std::optional{bound(*claim.when)} : std::nullopt,
                            std::move(pieces)});
        return out;
    }

    bool has_table() const noexcept { return !table_.empty(); }
    std::size_t depth() const noexcept { return depth_; }

    /// Where in the table the values before the last one lead.
    std::size_t base(std::span<const std::uint16_t> row) const noexcept {
        std::size_t out = 0;
        for (std::size_t i = 0; i + 1 < depth_; ++i) out += row[i] * strides_[i];
        return out;
    }

    /// base: of the row; last: the index of the value at depth() - 1
    bool holds(std::size_t base, std::size_t last, std::span<const Cell> values) {
        if (table_.empty()) return judged(values);
        Verdict& verdict = table_[base + (depth_ ? last * strides_[depth_ - 1] : 0)];
        if (verdict == Verdict::unknown) verdict = judged(values) ? Verdict::holds : Verdict::fails;
        return verdict == Verdict::holds;
    }

private:
    enum class Verdict : std::uint8_t { unknown, holds, fails };

    bool judged(std::span<const Cell> values) const {
        const Cell cell = judge(
            claim_, limits_, [&] { return when_->evaluate(values); },
            [&](std::size_t piece) { return pieces_[piece].evaluate(values); });
        return !cell.failed() && cell.truth();
    }

    const Claim& claim_;
    const DeviceLimits& limits_;
    std::optional<BoundExpression> when_;
    std::vector<BoundExpression> pieces_;
    std::size_t depth_ = 0;
    std::vector<std::size_t> strides_;
    std::vector<Verdict> table_;
};

/// Walks the values of one variant, parameter by parameter, and keeps the rows where every claim holds.
class Walk {
public:
    Walk(const Instance& instance, const Variant& variant, std::size_t at_most, std::uint64_t steps_at_most)
        : instance_{instance},
          variant_{variant},
          at_most_{at_most},
          steps_at_most_{steps_at_most},
          claims_{claims_of(variant)} {
        const std::size_t depth = variant.parameters.size();
        if (depth > parameters_at_most) refuse(fmt::format("has more than {} parameters", parameters_at_most));
        below_.assign(depth + 1, 1.0);
        for (std::size_t i = depth; i-- > 0;) {
            const std::size_t count = variant.parameters[i].values.size();
            if (count > values_at_most)
                refuse(fmt::format("has more than {} values of {}", values_at_most, variant.parameters[i].name));
            below_[i] = below_[i + 1] * static_cast<double>(count);
        }
        row_.assign(depth, 0);
        cells_.assign(depth, Cell{});
        rejected_.assign(claims_.size(), 0.0);
    }

    void run() {
        const KnownNames known{instance_.data()};
        at_depth_.resize(row_.size() + 1);
        for (const bool tables : {true, false})  // the cheap ones of a depth come first
            for (std::size_t i = 0; i < claims_.size(); ++i)
                for (Check& check : Check::of(claims_[i], instance_, variant_, known))
                    if (check.has_table() == tables) at_depth_[check.depth()].push_back({i, std::move(check), 0});
        for (Placed& placed : at_depth_[0])
            if (!placed.check.holds(0, 0, cells_)) {
                rejected_[placed.claim] += below_[0];
                return;
            }
        descend(0);
    }

    double raw() const noexcept { return below_[0]; }
    std::size_t count() const noexcept { return count_; }
    std::vector<std::uint16_t> rows() && noexcept { return std::move(rows_); }

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
    struct Placed {
        std::size_t claim;
        Check check;
        std::size_t base;
    };

    [[noreturn]] void refuse(const std::string& what) const {
        throw Error{Error::Kind::usage,
                    fmt::format("variant '{}' of '{}' {} for {}: give it tighter constraints or fewer values",
                                variant_.name, instance_.op().name, what, instance_.problem().text())};
    }

    void descend(std::size_t depth) {
        if (depth == row_.size()) return keep();
        std::vector<Placed>& checks = at_depth_[depth + 1];
        for (Placed& placed : checks) placed.base = placed.check.base(row_);
        const std::vector<Value>& values = variant_.parameters[depth].values;
        steps_ += values.size();
        if (steps_ > steps_at_most_) refuse(fmt::format("takes more than {} steps to enumerate", steps_at_most_));
        for (std::size_t i = 0; i < values.size(); ++i) {
            row_[depth] = static_cast<std::uint16_t>(i);
            cells_[depth] = Cell::of(values[i]);
            const auto broken =
                std::ranges::find_if(checks, [&](Placed& p) { return !p.check.holds(p.base, i, cells_); });
            if (broken == checks.end())
                descend(depth + 1);
            else
                rejected_[broken->claim] += below_[depth + 1];
        }
    }

    void keep() {
        if (++count_ > at_most_) refuse(fmt::format("has more than {} valid configs", at_most_));
        rows_.insert(rows_.end(), row_.begin(), row_.end());
    }

    const Instance& instance_;
    const Variant& variant_;
    std::size_t at_most_;
    std::uint64_t steps_at_most_;
    std::vector<Claim> claims_;
    std::vector<double> below_;  ///< raw configs under a node of each depth
    std::vector<std::vector<Placed>> at_depth_;
    std::vector<std::uint16_t> row_;
    std::vector<Cell> cells_;
    std::vector<double> rejected_;
    std::uint64_t steps_ = 0;
    std::size_t count_ = 0;
    std::vector<std::uint16_t> rows_;
};

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
std::optional<std::vector<std::uint16_t>> row_of(const Variant& variant, const Config& config) {
    if (config.values.size() != variant.parameters.size()) return std::nullopt;
    std::vector<std::uint16_t> row;
    for (const Parameter& parameter : variant.parameters) {
        const Value* value = find_value(config.values, parameter.name);
        if (value == nullptr) return std::nullopt;
        const auto found = std::ranges::find(parameter.values, *value);
        if (found == parameter.values.end()) return std::nullopt;
        row.push_back(static_cast<std::uint16_t>(found - parameter.values.begin()));
    }
    return row;
}

}  // namespace

Space Space::make(const Instance& instance, std::size_t at_most, std::uint64_t steps_at_most) {
    Space space;
    for (const Variant& variant : instance.op().variants) {
        VariantSpace part{
            .variant = &variant, .raw = raw_of(variant), .first = space.size(), .unmet = unmet(instance, variant)};
        std::vector<std::uint16_t> rows;
        if (part.unmet.empty()) {
            Walk walk{instance, variant, at_most, steps_at_most};
            walk.run();
            part.count = walk.count();
            part.rejections = walk.rejections();
            rows = std::move(walk).rows();
        }
        space.variants_.push_back(std::move(part));
        space.rows_.push_back(std::move(rows));
    }
    space.set_default(instance);
    return space;
}

Space Space::of(const Instance& instance, std::span<const Config> configs) {
    Space space;
    for (const Variant& variant : instance.op().variants) {
        VariantSpace part{
            .variant = &variant, .raw = raw_of(variant), .first = space.size(), .unmet = unmet(instance, variant)};
        std::vector<std::vector<std::uint16_t>> rows;
        for (const Config& config : configs)
            if (config.variant == variant.name && !instance.objection(config)) rows.push_back(*row_of(variant, config));
        std::ranges::sort(rows);
        rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
        part.count = rows.size();
        space.variants_.push_back(std::move(part));
        std::vector<std::uint16_t>& flat = space.rows_.emplace_back();
        for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
    }
    for (const Config& config : configs)
        if (const auto objection = instance.objection(config))
            throw Error{Error::Kind::usage, fmt::format("the config '{}' is not valid: {}", config.text(), *objection)};
    space.set_default(instance);
    return space;
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

std::span<const std::uint16_t> Space::row(std::size_t number) const noexcept {
    const std::size_t part = variant_of(number);
    const std::size_t width = variants_[part].variant->parameters.size();
    return std::span{rows_[part]}.subspan((number - variants_[part].first) * width, width);
}

Config Space::config(std::size_t number) const {
    if (number >= size())
        throw Error{Error::Kind::internal, fmt::format("config {} was asked for of {}", number, size())};
    const Variant& variant = *variants_[variant_of(number)].variant;
    Config out{.variant = variant.name, .values = {}};
    const auto indices = row(number);
    for (std::size_t i = 0; i < indices.size(); ++i)
        out.values.emplace_back(variant.parameters[i].name, variant.parameters[i].values[indices[i]]);
    return out;
}

std::optional<std::size_t> Space::find_row(std::size_t part, std::span<const std::uint16_t> wanted) const noexcept {
    // Rows stand in lexicographic order, so looking one up needs no index of its own.
    std::size_t low = 0, high = variants_[part].count;
    const auto at = [&](std::size_t i) { return std::span{rows_[part]}.subspan(i * wanted.size(), wanted.size()); };
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        const auto found = at(middle);
        if (std::ranges::lexicographical_compare(found, wanted))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == variants_[part].count || !std::ranges::equal(at(low), wanted)) return std::nullopt;
    return variants_[part].first + low;
}

std::optional<std::size_t> Space::find(const Config& config) const {
    for (std::size_t i = 0; i < variants_.size(); ++i)
        if (variants_[i].variant->name == config.variant)
            if (const auto wanted = row_of(*variants_[i].variant, config)) return find_row(i, *wanted);
    return std::nullopt;
}

std::vector<std::size_t> Space::neighbours(std::size_t number, Neighbourhood kind) const {
    std::vector<std::size_t> out;
    const std::size_t part = variant_of(number);
    const auto own = row(number);
    std::vector<std::uint16_t> changed{own.begin(), own.end()};
    for (std::size_t i = 0; i < changed.size(); ++i) {
        const std::size_t values = variants_[part].variant->parameters[i].values.size();
        for (std::size_t value = 0; value < values; ++value) {
            const std::size_t steps = value > own[i] ? value - own[i] : own[i] - value;
            if (steps == 0 || (kind == Neighbourhood::adjacent && steps > 1)) continue;
            changed[i] = static_cast<std::uint16_t>(value);
            if (const auto found = find_row(part, changed)) out.push_back(*found);
        }
        changed[i] = own[i];
    }
    return out;
}

}  // namespace autotune
