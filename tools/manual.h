#ifndef AUTOTUNE_TOOLS_MANUAL_H
#define AUTOTUNE_TOOLS_MANUAL_H

#include <string>
#include <string_view>

namespace autotune {

/// The manual page, in man's own language, of a command ("tune", "db export") or, for "", of autotune itself; made of
/// the tables that --help is made of. Throws Error{usage} for a command that there is not.
std::string manual_page(std::string_view command);

/// The commands that have one, a line each.
std::string manual_pages();

}  // namespace autotune
#endif
