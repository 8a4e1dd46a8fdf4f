#ifndef AUTOTUNE_TOOLS_SUGGESTION_H
#define AUTOTUNE_TOOLS_SUGGESTION_H

#include <string>
#include <string_view>

#include "tools/request.h"

namespace autotune {

/// A word as a shell takes it: in quotes where it needs any.
std::string shell_word(std::string_view text);

/// The flags by which another command finds the same ops, database and GPU: " --ops ./ops --gpu emulated:sm_86". Each
/// begins with a space.
std::string same_flags(const Request& request);

}  // namespace autotune
#endif
