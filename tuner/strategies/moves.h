#ifndef AUTOTUNE_STRATEGIES_MOVES_H
#define AUTOTUNE_STRATEGIES_MOVES_H

#include <optional>
#include <span>
#include <vector>

#include "tuner/model/space.h"
#include "tuner/strategies/unvisited.h"

namespace autotune {

/// Steps through a space that lead to configs nobody has taken yet. Shared by the strategies that vary what they know.
class Moves {
public:
    Moves(const Space& space, std::uint64_t seed) : space_{space}, random_{seed}, unvisited_{space.size()} {}

    RandomSource& random() noexcept { return random_; }
    /// Uniform over 0 .. 1.
    double chance() { return static_cast<double>(random_.below(chances)) / static_cast<double>(chances); }
    bool take(std::size_t number) { return unvisited_.take(number); }
    std::optional<std::size_t> draw() { return unvisited_.draw(random_); }

    /// One that differs from the config in one parameter; nullopt when all are taken.
    std::optional<std::size_t> beside(std::size_t number, Space::Neighbourhood kind = Space::Neighbourhood::hamming) {
        std::vector<std::size_t> near = space_.neighbours(number, kind);
        std::erase_if(near, [this](std::size_t n) { return !unvisited_.has(n); });
        if (near.empty()) return std::nullopt;
        const std::size_t chosen = near[random_.below(near.size())];
        unvisited_.take(chosen);
        return chosen;
    }

    /// The config with these values, if it is valid and not taken; else the row goes back to `parent` value by value,
    /// in random order, until it is; then one beside the parent, and last any.
    std::optional<std::size_t> towards(Space::Row row, std::size_t parent) {
        const std::size_t variant = space_.variant_of(parent);
        const auto home = space_.row(parent);
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < row.size(); ++i)
            if (row[i] != home[i]) order.push_back(i);
        random_.shuffle(order);
        while (true) {
            if (const auto found = space_.number_of(variant, row); found && unvisited_.take(*found)) return found;
            if (order.empty()) break;
            row[order.back()] = home[order.back()];
            order.pop_back();
        }
        if (const auto found = beside(parent)) return found;
        return draw();
    }

    std::size_t values(std::size_t variant, std::size_t parameter) const {
        return space_.variants()[variant].variant->parameters[parameter].values.size();
    }

private:
    static constexpr std::size_t chances = std::size_t{1} << 53;
    const Space& space_;
    RandomSource random_;
    Unvisited unvisited_;
};

}  // namespace autotune
#endif
