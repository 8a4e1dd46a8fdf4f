#ifndef AUTOTUNE_TOOLS_SUGGESTION_H
#define AUTOTUNE_TOOLS_SUGGESTION_H

#include <string>

#include "tools/request.h"

namespace autotune {

/// The flags by which another command finds the same ops, database and GPU: " --ops ./ops --gpu emulated:sm_86". Each
/// begins with a space.
std::string same_flags(const Request& request);

}  // namespace autotune
#endif
