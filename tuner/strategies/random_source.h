#ifndef AUTOTUNE_STRATEGIES_RANDOM_SOURCE_H
#define AUTOTUNE_STRATEGIES_RANDOM_SOURCE_H

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace autotune {

/// Random numbers that are the same on every machine: the standard's distributions are not.
class RandomSource {
public:
    explicit RandomSource(std::uint64_t seed) : engine_{seed} {}

    /// Uniform over 0 .. count - 1; count at least 1.
    std::size_t below(std::size_t count) {
        const std::uint64_t limit = engine_.max() - engine_.max() % count;
        std::uint64_t draw = engine_();
        while (draw >= limit) draw = engine_();
        return static_cast<std::size_t>(draw % count);
    }

    template <class T>
    void shuffle(std::vector<T>& list) {
        for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
    }

private:
    std::mt19937_64 engine_;
};

}  // namespace autotune
#endif
