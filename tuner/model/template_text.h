#ifndef AUTOTUNE_MODEL_TEMPLATE_TEXT_H
#define AUTOTUNE_MODEL_TEMPLATE_TEXT_H

#include <string>
#include <string_view>

#include "tuner/model/instance.h"

// Inside of tuner/model: what of a config and a problem reaches a compiler.

namespace autotune {

/// Throws Error{usage} when the op has no such variant.
const Variant& variant_of(const Instance::Data& data, const Config& config);

/// A value as a macro or a template argument: integers and floats as they are, true and false as 1 and 0, a dtype's
/// name as its C type where `dtypes_as_c`, another word as itself if it is `[A-Za-z_][A-Za-z0-9_:]*`. Throws
/// EvaluationError.
std::string pasted(const Value& value, bool dtypes_as_c);

/// The entry as the source spells it: of a variant with template parameters every {NAME} is replaced.
std::string entry_text(const Variant& variant, std::string_view entry, const Config& config);

}  // namespace autotune
#endif
