#ifndef AUTOTUNE_MODEL_CLAIMS_H
#define AUTOTUNE_MODEL_CLAIMS_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tuner/model/bound_expression.h"
#include "tuner/model/instance.h"

// Inside of tuner/model: what must hold of a config, in one list for objections and spaces: the variant's constraints
// in file order, then the device's limits on each launch.

namespace autotune {

inline constexpr std::int64_t block_z_at_most = 64;
inline constexpr std::int64_t cluster_at_most = 8;  // what every device with clusters takes without a special attribute
inline constexpr std::int64_t scratch_elements_at_most = std::int64_t{1} << 58;

/// pieces: for `declared` the constraint; else the numbers that are looked at: block or grid dimensions, bytes of
/// shared memory, cluster then grid dimensions (`split` says how many are the cluster's), a scratch buffer's shape.
struct Claim {
    enum class Kind { declared, threads, grid, shared, cluster, scratch };
    Kind kind = Kind::declared;
    std::string text;
    const Expression* when = nullptr;  ///< the launch or buffer is there only where this holds; nullptr: always
    std::vector<const Expression*> pieces;
    std::size_t split = 0;
    std::string subject;  ///< of a launch its entry, of scratch its name
};

std::vector<Claim> claims_of(const Variant& variant);

/// The same claims ready for a space: each is one or more conditions over the variant's parameters as slots, in their
/// order, and holds where all of its conditions do.
struct Condition {
    std::size_t claim = 0;  ///< its place in claims_of()
    BoundExpression holds;
};
std::vector<Condition> conditions_of(const Instance& instance, const Variant& variant, std::span<const Claim> claims);

/// Why the claim does not hold, with its numbers; nullopt: it holds.
std::optional<std::string> broken_claim(const Claim& claim, const Scope& scope, const DeviceLimits& limits);
std::optional<std::string> broken_claim(const Constraint& constraint, const Scope& scope);

}  // namespace autotune
#endif
