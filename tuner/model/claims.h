#ifndef AUTOTUNE_MODEL_CLAIMS_H
#define AUTOTUNE_MODEL_CLAIMS_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/model/evaluator.h"
#include "tuner/model/instance.h"

// Inside of tuner/model: what must hold of a config, in one list for objections and spaces: the variant's constraints
// in file order, then the device's limits on each launch.

namespace autotune {

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

/// Whether the numbers of a limit are within it. `numbers` are the pieces' values.
bool within_limits(const Claim& claim, std::span<const std::int64_t> numbers, const DeviceLimits& limits) noexcept;

/// Judges a claim without throwing: true, false or the failure of an evaluation. evaluate_when() and evaluate_piece(i)
/// give cells; the former is asked only where the claim has a `when`.
template <class When, class Piece>
Cell judge(const Claim& claim, const DeviceLimits& limits, When&& evaluate_when, Piece&& evaluate_piece) {
    if (claim.when) {
        const Cell there = evaluator::truth_of(evaluate_when(), *claim.when->node());
        if (there.failed()) return there;
        if (!there.truth()) return Cell::of(true);
    }
    if (claim.kind == Claim::Kind::declared) return evaluator::truth_of(evaluate_piece(0), *claim.pieces[0]->node());
    std::array<std::int64_t, 16> numbers{};
    const std::size_t count = std::min(claim.pieces.size(), numbers.size());
    for (std::size_t i = 0; i < count; ++i) {
        const Cell number = as_integer(evaluate_piece(i), *claim.pieces[i]->node());
        if (number.failed()) return number;
        numbers[i] = number.integer;
    }
    return Cell::of(within_limits(claim, {numbers.data(), count}, limits));
}

/// Why the claim does not hold, with its numbers; nullopt: it holds.
std::optional<std::string> broken_claim(const Claim& claim, const Scope& scope, const DeviceLimits& limits);
std::optional<std::string> broken_claim(const Constraint& constraint, const Scope& scope);

}  // namespace autotune
#endif
