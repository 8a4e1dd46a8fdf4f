#ifndef AUTOTUNE_MODEL_ARGUMENT_H
#define AUTOTUNE_MODEL_ARGUMENT_H

#include <optional>
#include <string>

#include "device/launch.h"
#include "tuner/model/op.h"

namespace autotune {

/// A value as a launch argument of the given type: rounded to nearest even, out-of-range halves become infinite.
/// Throws EvaluationError for a word, and for a number that an integer type does not hold.
ValueArgument value_argument(const Value& value, DType dtype);

/// Why an expression can be no argument of a launch; nullopt: it can. An argument is the name of a tensor, a scratch
/// buffer or a scalar, a number with its size said as i32(), i64() or f32(), or a choice among these: `c ? a : b`.
/// variant: whose scratch buffers may be named; nullptr for the launches of the device reference.
std::optional<std::string> argument_objection(const Op& op, const Variant* variant, const Expression& argument);

}  // namespace autotune
#endif
