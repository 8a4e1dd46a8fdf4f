#ifndef AUTOTUNE_MODEL_ARGUMENT_H
#define AUTOTUNE_MODEL_ARGUMENT_H

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "device/launch.h"
#include "tuner/model/op.h"

namespace autotune {

/// A value as a launch argument of the given type: rounded to nearest even, out-of-range halves become infinite.
/// Throws EvaluationError for a word, and for a number that an integer type does not hold.
ValueArgument value_argument(const Value& value, DType dtype);

/// Why an expression can be no argument of a launch, and the piece of its text that is at fault.
struct ArgumentObjection {
    std::string reason;
    std::size_t offset = 0, length = 0;
};

/// An argument is the name of a tensor, a scratch buffer or a scalar, a number with its size said as i32(), i64() or
/// f32(), or a choice among these: `c ? a : b`. nullopt: it is one. The loader asks for every argument of a file, and
/// whoever makes launches asks again: an op need not come from a file.
/// scratch: what the variant has; empty for the launches of the device reference.
std::optional<ArgumentObjection> argument_objection(const Op& op, std::span<const Scratch> scratch,
                                                    const Expression& argument);

}  // namespace autotune
#endif
