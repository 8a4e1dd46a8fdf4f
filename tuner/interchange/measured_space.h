#ifndef AUTOTUNE_INTERCHANGE_MEASURED_SPACE_H
#define AUTOTUNE_INTERCHANGE_MEASURED_SPACE_H

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/interchange/measurements.h"
#include "tuner/model/op.h"
#include "tuner/model/space.h"

namespace autotune {

/// The value of what a configuration's variant lacks, in a space of all variants' parameters; even_out() writes it.
inline constexpr std::string_view lacked = "none";

/// An op as op_of_t1() makes it, of the parameters and values that occur in results, and without conditions. Throws
/// Error{usage} where there is no result.
Op op_of_measurements(const Measurements& measurements);

/// Results beside the space they were measured in.
struct MeasuredSpace {
    struct Row {
        std::size_t number = 0;  ///< of the config in the space
        const MeasuredConfig* measured = nullptr;
    };
    std::vector<Row> rows;       ///< timed or failed, by number, each config once
    std::size_t outside = 0;     ///< results of configs that the space does not have, or that their tuner excluded
    std::size_t repeated = 0;    ///< results of configs that an earlier one is of
    std::size_t untimed = 0;     ///< results without an end: neither a time nor a failure
    std::optional<Row> fastest;  ///< of what was measured, else predicted; nullopt: none is timed
};

/// Throws Error{usage} naming a parameter that the results lack; what they have beyond the space's is passed over.
/// space         of an op with one variant; it and the measurements must outlive what is returned
/// measurements  from `file`, for messages
MeasuredSpace measured_space(const Space& space, const Measurements& measurements, const std::string& file);

/// The file that `autotune replay` searches again: the values of each parameter, then a line a config. Throws
/// Error{usage} for a name or value that the format cannot hold: with a blank, a comma or a control character, with a
/// '#' in front, or named as one of its own columns. The kernel and the device become one word.
std::string recorded_text(const Space& space, const MeasuredSpace& measured, const std::string& device);

}  // namespace autotune
#endif
