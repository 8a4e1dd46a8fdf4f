#ifndef AUTOTUNE_MODEL_VALUE_H
#define AUTOTUNE_MODEL_VALUE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace autotune {

/// What a field, a scalar, a parameter or an expression is: boolean, 64-bit integer, double, or a word.
using Value = std::variant<bool, std::int64_t, double, std::string>;

/// As people and keys read it: `true`, `4096`, `0.5` (the shortest text that reads back equal), `bf16`.
std::string to_text(const Value& value);

/// The value that a command line means by `text`: a boolean, an integer, a number, else a word.
Value value_from_text(std::string_view text);

/// Whether two values mean the same: 4 and 4.0 do, true and 1 do, a word equals only itself.
bool same_value(const Value& a, const Value& b);

}  // namespace autotune
#endif
