#ifndef AUTOTUNE_MODEL_BUILTIN_OPS_H
#define AUTOTUNE_MODEL_BUILTIN_OPS_H

#include <map>
#include <span>
#include <string>

#include "tuner/model/op.h"

namespace autotune {

/// The ops that the build embedded, by name. Read once, at the first call, from any thread; no TOML is involved.
std::span<const Op> builtin_ops();

/// Every file of kernel_templates/ as the build found it: name -> text. A user's op may include the headers.
const std::map<std::string, std::string, std::less<>>& builtin_files();

}  // namespace autotune
#endif
