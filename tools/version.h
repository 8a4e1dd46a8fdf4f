#ifndef AUTOTUNE_TOOLS_VERSION_H
#define AUTOTUNE_TOOLS_VERSION_H

#include <string>
#include <string_view>

namespace autotune {

/// "0.1.0"
std::string_view version();
/// "autotune 0.1.0", with a line break.
std::string version_text();

}  // namespace autotune
#endif
