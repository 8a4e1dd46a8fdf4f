#ifndef AUTOTUNE_INTERCHANGE_PYTHON_TEXT_H
#define AUTOTUNE_INTERCHANGE_PYTHON_TEXT_H

#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/expression.h"

namespace autotune {

// What other tuners write in Python inside of their files. It is read, never run: each form that occurs becomes one of
// our own expressions, and what is none of them is an error that says where.

/// A condition: `a if c else b`, True and False, int() and float(), pow(), math.ceil() and math.floor(), p["NAME"],
/// and the && || ! of other languages, besides what our expressions share with Python. Throws ParseError, also where
/// `and` or `or` stand for one of their operands instead of true or false.
Expression expression_from_python(std::string_view text);

/// A list of values, each once, in order: `[16, 32, 64]`, a tuple, `list(range(32, 1025, 32))`,
/// `[2**i for i in range(5) if i != 2]`, and sums of lists. Throws ParseError, also above 65,535 values.
std::vector<Value> values_from_python(std::string_view text);

}  // namespace autotune
#endif
