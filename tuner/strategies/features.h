#ifndef AUTOTUNE_STRATEGIES_FEATURES_H
#define AUTOTUNE_STRATEGIES_FEATURES_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tuner/model/space.h"

namespace autotune {

/// Configs as a model sees them: of each parameter the level of its value. Parameters stand in the order of their names
/// and levels of numbers ascend, so that nothing depends on how an op file lists them.
/// A model looks at each two levels, so an axis of more than a thousand values is seen in so many steps.
struct Features {
    struct Column {
        std::vector<std::uint16_t> level;  ///< of each config
        std::vector<float> distance;       ///< level x level; see features_of()
        std::size_t levels = 0;
        bool derived = false;  ///< of a parameter that has a column already
        float widest = 0;      ///< the largest distance
    };
    std::vector<Column> columns;
    std::vector<std::uint64_t> identity;  ///< of each config: a hash of what it is, whatever its number

    std::size_t size() const noexcept { return identity.size(); }
};

/// Of some configs, in this order. Numbers are apart by the steps between them over the root of all steps, so that an
/// axis of many values is longer, but not by as much; words and variants by 1. Hardware counts in powers of two, so a
/// parameter of five or more whole numbers has a second column: how often two divides each. Where variants lack a
/// parameter, its absence is off the axis, beside the middle. Parameters that take one value only have no column.
/// expected_us: what is expected of each of the configs, in any unit; becomes a column of its own where it is given.
Features features_of(const Space& space, std::span<const std::size_t> configs,
                     std::span<const double> expected_us = {});

/// A number that looks random and is the same for equal configs and seeds, whatever the config's number: what ties are
/// broken by.
std::uint64_t priority_of(std::uint64_t identity, std::uint64_t seed) noexcept;

}  // namespace autotune
#endif
