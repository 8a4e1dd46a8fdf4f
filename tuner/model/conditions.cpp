// Claims as conditions: each limit of the device becomes an expression like a declared constraint, so that a space cuts
// off what breaks it as early, and merges what is alike as well.
#include <algorithm>

#include "tuner/model/claims.h"
#include "tuner/model/instance_data.h"

namespace autotune {
namespace {

using Part = std::shared_ptr<const ExpressionNode>;

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

Part part(NodeKind kind, std::vector<Part> children) {
    ExpressionNode node;
    node.kind = kind;
    node.children = std::move(children);
    return std::make_shared<const ExpressionNode>(std::move(node));
}

Part constant_of(std::int64_t value) {
    ExpressionNode node;
    node.value = value;
    return std::make_shared<const ExpressionNode>(std::move(node));
}

Part comparison(Part a, Relation relation, Part b) {
    ExpressionNode node;
    node.kind = NodeKind::compare;
    node.relations = {relation};
    node.children = {std::move(a), std::move(b)};
    return std::make_shared<const ExpressionNode>(std::move(node));
}

/// What a limit looks at is an integer, or has no value.
Part whole_part(Part of) {
    ExpressionNode node;
    node.kind = NodeKind::call;
    node.function = Function::i64;
    node.children = {std::move(of)};
    return std::make_shared<const ExpressionNode>(std::move(node));
}

Part within(const Part& a, std::int64_t least, std::int64_t most) {
    return part(NodeKind::logical_and, {comparison(a, Relation::greater_equal, constant_of(least)),
                                        comparison(a, Relation::less_equal, constant_of(most))});
}

Part product_of(std::span<const Part> factors) {
    Part out = constant_of(1);
    for (const Part& factor : factors) out = part(NodeKind::multiply, {std::move(out), factor});
    return out;
}

/// All of these hold where within_limits() does.
std::vector<Part> limit_conditions(const Claim& claim, std::span<const Part> pieces, const DeviceLimits& limits) {
    std::vector<Part> out;
    const auto each_at_least = [&](std::span<const Part> those, std::int64_t least) {
        for (const Part& piece : those) out.push_back(comparison(piece, Relation::greater_equal, constant_of(least)));
    };
    switch (claim.kind) {
        case Claim::Kind::declared:
            break;
        case Claim::Kind::threads:
            each_at_least(pieces, 1);
            if (pieces.size() > 2)
                out.push_back(comparison(pieces[2], Relation::less_equal, constant_of(block_z_at_most)));
            out.push_back(comparison(product_of(pieces), Relation::less_equal, constant_of(limits.max_threads)));
            break;
        case Claim::Kind::grid: {
            const std::int64_t most[] = {limits.max_grid_x, limits.max_grid_y, limits.max_grid_z};
            for (std::size_t i = 0; i < pieces.size(); ++i) out.push_back(within(pieces[i], 1, i < 3 ? most[i] : 1));
            break;
        }
        case Claim::Kind::shared:
            out.push_back(within(pieces[0], 0, limits.max_shared));
            break;
        case Claim::Kind::cluster: {
            const auto cluster = pieces.first(claim.split), grid = pieces.subspan(claim.split);
            each_at_least(cluster, 1);
            out.push_back(comparison(product_of(cluster), Relation::less_equal,
                                     constant_of(limits.cc < 90 ? 1 : cluster_at_most)));
            for (std::size_t i = 0; i < cluster.size(); ++i)
                out.push_back(
                    comparison(part(NodeKind::modulo, {i < grid.size() ? grid[i] : constant_of(1), cluster[i]}),
                               Relation::equal, constant_of(0)));
            break;
        }
        case Claim::Kind::scratch:
            each_at_least(pieces, 0);
            out.push_back(comparison(product_of(pieces), Relation::less_equal, constant_of(scratch_elements_at_most)));
            break;
    }
    return out;
}

}  // namespace

std::vector<Condition> conditions_of(const Instance& instance, const Variant& variant, std::span<const Claim> claims) {
    const KnownNames known{instance.data()};
    std::vector<std::string> names;
    for (const Parameter& parameter : variant.parameters) names.push_back(parameter.name);
    const auto bound = [&](const Expression& expression) {
        return BoundExpression{expression, known, names, instance.op().lets};
    };
    std::vector<Condition> out;
    for (std::size_t i = 0; i < claims.size(); ++i) {
        const Claim& claim = claims[i];
        if (claim.kind == Claim::Kind::declared) {
            for (BoundExpression& condition : bound(*claim.pieces[0]).conjuncts())
                out.push_back({i, std::move(condition)});
            continue;
        }
        Part absent;
        if (claim.when) absent = part(NodeKind::logical_not, {bound(*claim.when).root()});
        std::vector<Part> pieces;
        for (const Expression* piece : claim.pieces) pieces.push_back(whole_part(bound(*piece).root()));
        for (Part& condition : limit_conditions(claim, pieces, instance.limits()))
            for (BoundExpression& single : BoundExpression{condition}.conjuncts())
                out.push_back({i, absent ? BoundExpression{part(NodeKind::logical_or, {absent, single.root()})}
                                         : std::move(single)});
    }
    return out;
}

}  // namespace autotune
