#ifndef AUTOTUNE_MODEL_OP_JSON_H
#define AUTOTUNE_MODEL_OP_JSON_H

#include <string>
#include <string_view>

#include "tuner/model/op.h"

namespace autotune {

/// An op as one JSON text, nothing left out: what the build embeds, and what another machine needs to know an op.
/// Expressions travel as their text.
std::string op_to_json(const Op& op);

/// The op back again: `op_to_json(op_from_json(text))` is `text` for any text that came from there. The text may be
/// anyone's: throws Error{usage} that names the place for what is no op, has unknown or missing parts, expressions that
/// do not parse, paths that leave a folder, or more than 64 MiB. Names inside expressions are not checked again.
Op op_from_json(std::string_view text);

}  // namespace autotune
#endif
