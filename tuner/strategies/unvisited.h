#ifndef AUTOTUNE_STRATEGIES_UNVISITED_H
#define AUTOTUNE_STRATEGIES_UNVISITED_H

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tuner/strategies/random_source.h"

namespace autotune {

/// The numbers 0 .. size - 1 that nobody has taken yet, drawn uniformly. A bit a number, or what was taken alone where
/// that would be megabytes; a draw costs the same at the end as at the start (Fisher and Yates's shuffle, kept as the
/// difference from the identity).
class Unvisited {
public:
    explicit Unvisited(std::size_t size) : taken_(size <= bits_at_most ? size : 0, false), left_{size} {}

    bool has(std::size_t number) const { return taken_.empty() ? !few_.contains(number) : !taken_[number]; }

    /// False when it was taken before.
    bool take(std::size_t number) {
        if (taken_.empty()) return few_.insert(number).second;
        if (taken_[number]) return false;
        taken_[number] = true;
        return true;
    }

    std::optional<std::size_t> draw(RandomSource& random) {
        while (left_ > 0) {
            const std::size_t place = random.below(left_);
            const std::size_t number = at(place);
            moved_[place] = at(--left_);
            if (take(number)) return number;
        }
        return std::nullopt;
    }

private:
    std::size_t at(std::size_t place) const {
        const auto found = moved_.find(place);
        return found == moved_.end() ? place : found->second;
    }

    static constexpr std::size_t bits_at_most = std::size_t{1} << 26;

    std::vector<bool> taken_;
    std::unordered_set<std::size_t> few_;  ///< what was taken, where there is no bit a number
    std::unordered_map<std::size_t, std::size_t> moved_;
    std::size_t left_;
};

}  // namespace autotune
#endif
