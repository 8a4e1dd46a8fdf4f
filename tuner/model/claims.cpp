#include "tuner/model/claims.h"

#include <fmt/format.h>

#include "tuner/model/instance_data.h"

namespace autotune {
namespace {

std::vector<const Expression*> addresses(const std::vector<Expression>& list) {
    std::vector<const Expression*> out;
    for (const Expression& expression : list) out.push_back(&expression);
    return out;
}

Claim limit_of(Claim::Kind kind, std::string text, const LaunchSpec& launch, const Variant& variant,
               std::vector<const Expression*> pieces, std::size_t split = 0) {
    return {.kind = kind,
            .text = std::move(text),
            .when = launch.when.empty() ? nullptr : &launch.when,
            .pieces = std::move(pieces),
            .split = split,
            .subject = launch.entry.empty() ? variant.entry : launch.entry};
}

/// Their product, or nothing when one is below `least` or the product goes beyond `most`.
std::optional<std::int64_t> product(std::span<const std::int64_t> numbers, std::int64_t least,
                                    std::int64_t most) noexcept {
    std::int64_t out = 1;
    for (const std::int64_t number : numbers)
        if (number < least || __builtin_mul_overflow(out, number, &out)) return std::nullopt;
    return out <= most ? std::optional{out} : std::nullopt;
}

bool cluster_fits(const Claim& claim, std::span<const std::int64_t> numbers, const DeviceLimits& limits) noexcept {
    const auto cluster = numbers.first(claim.split);
    const auto grid = numbers.subspan(claim.split);
    const auto blocks = product(cluster, 1, cluster_at_most);
    if (!blocks || (*blocks > 1 && limits.cc < 90)) return false;
    for (std::size_t i = 0; i < cluster.size(); ++i)
        if ((i < grid.size() ? grid[i] : 1) % cluster[i] != 0) return false;
    return true;
}

/// Whether the numbers of a limit, its pieces' values, are within it. `limit_conditions` says the same of open ones.
bool within_limits(const Claim& claim, std::span<const std::int64_t> numbers, const DeviceLimits& limits) noexcept {
    switch (claim.kind) {
        case Claim::Kind::threads:
            return product(numbers, 1, limits.max_threads) && (numbers.size() < 3 || numbers[2] <= block_z_at_most);
        case Claim::Kind::grid: {
            const std::int64_t most[] = {limits.max_grid_x, limits.max_grid_y, limits.max_grid_z};
            for (std::size_t i = 0; i < numbers.size(); ++i)
                if (numbers[i] < 1 || numbers[i] > (i < 3 ? most[i] : 1)) return false;
            return true;
        }
        case Claim::Kind::shared:
            return numbers[0] >= 0 && numbers[0] <= limits.max_shared;
        case Claim::Kind::cluster:
            return cluster_fits(claim, numbers, limits);
        case Claim::Kind::scratch:
            return product(numbers, 0, scratch_elements_at_most).has_value();
        case Claim::Kind::declared:
            break;
    }
    return true;
}

std::string limit_words(const Claim& claim, std::span<const std::int64_t> numbers, const DeviceLimits& limits) {
    switch (claim.kind) {
        case Claim::Kind::threads:
            return fmt::format("a block of {} threads in '{}', the limit is {}", fmt::join(numbers, " x "),
                               claim.subject, limits.max_threads);
        case Claim::Kind::grid:
            return fmt::format("a grid of {} blocks in '{}', the limits are {} x {} x {}", fmt::join(numbers, " x "),
                               claim.subject, limits.max_grid_x, limits.max_grid_y, limits.max_grid_z);
        case Claim::Kind::shared:
            return fmt::format("{} bytes a block in '{}', the limit is {}", numbers[0], claim.subject,
                               limits.max_shared);
        case Claim::Kind::cluster:
            return fmt::format("clusters of {} blocks in a grid of {} in '{}' on capability {}, the limit is {}",
                               fmt::join(numbers.first(claim.split), " x "),
                               fmt::join(numbers.subspan(claim.split), " x "), claim.subject, limits.cc,
                               limits.cc < 90 ? 1 : cluster_at_most);
        default:
            return fmt::format("'{}' has the shape [{}]", claim.subject, fmt::join(numbers, ", "));
    }
}

std::string_view measure_of(const Claim& claim) {
    switch (claim.kind) {
        case Claim::Kind::threads:
            return "the block";
        case Claim::Kind::grid:
            return "the grid";
        case Claim::Kind::shared:
            return "the shared memory";
        case Claim::Kind::cluster:
            return "the cluster";
        default:
            return "the size";
    }
}

}  // namespace

std::vector<Claim> claims_of(const Variant& variant) {
    std::vector<Claim> claims;
    for (const Constraint& constraint : variant.constraints)
        claims.push_back({.kind = Claim::Kind::declared,
                          .text = constraint.claim,
                          .when = nullptr,
                          .pieces = {&constraint.holds},
                          .split = 0,
                          .subject = {}});
    for (const LaunchSpec& launch : variant.launches) {
        claims.push_back(limit_of(Claim::Kind::threads, "threads a block within the limit", launch, variant,
                                  addresses(launch.block)));
        claims.push_back(limit_of(Claim::Kind::grid, "grid within the limit", launch, variant, addresses(launch.grid)));
        if (!launch.shared.empty())
            claims.push_back(limit_of(Claim::Kind::shared, "shared memory fits", launch, variant, {&launch.shared}));
        if (launch.cluster.empty()) continue;
        auto pieces = addresses(launch.cluster);
        for (const Expression* piece : addresses(launch.grid)) pieces.push_back(piece);
        claims.push_back(limit_of(Claim::Kind::cluster, "the cluster fits", launch, variant, std::move(pieces),
                                  launch.cluster.size()));
    }
    for (const Scratch& scratch : variant.scratch)
        claims.push_back({.kind = Claim::Kind::scratch,
                          .text = "scratch memory has a size",
                          .when = scratch.when.empty() ? nullptr : &scratch.when,
                          .pieces = addresses(scratch.shape),
                          .split = 0,
                          .subject = scratch.name});
    return claims;
}

std::optional<std::string> broken_claim(const Claim& claim, const Scope& scope, const DeviceLimits& limits) {
    if (claim.kind == Claim::Kind::declared) return broken_claim(Constraint{claim.text, *claim.pieces[0]}, scope);
    try {
        std::vector<std::int64_t> numbers;
        if (claim.when && !claim.when->evaluate_bool(scope)) return std::nullopt;
        for (const Expression* piece : claim.pieces) numbers.push_back(piece->evaluate_integer(scope));
        if (within_limits(claim, numbers, limits)) return std::nullopt;
        return fmt::format("{}: {}", claim.text, limit_words(claim, numbers, limits));
    } catch (const EvaluationError& error) {
        return fmt::format("{} of '{}' cannot be computed: {}", measure_of(claim), claim.subject, error.what());
    }
}

std::optional<std::string> broken_claim(const Constraint& constraint, const Scope& scope) {
    try {
        if (constraint.holds.evaluate_bool(scope)) return std::nullopt;
        return fmt::format("{}: {} does not hold{}", constraint.claim, constraint.holds.text(),
                           numbers_of(constraint.holds, scope));
    } catch (const EvaluationError& error) {
        return fmt::format("{}: {}{}", constraint.claim, error.what(), numbers_of(constraint.holds, scope));
    }
}

}  // namespace autotune
