#ifndef AUTOTUNE_LOADER_COMPILER_OPTION_H
#define AUTOTUNE_LOADER_COMPILER_OPTION_H

#include <optional>
#include <string>
#include <string_view>

namespace autotune {

/// Why an op file may not hand this option to the compiler, or nothing. An op file is data, and what a binary is made
/// of is in its key: an option that reads or writes a file (-I, --pre-include, --time=FILE) breaks both. So options are
/// taken from a list of those that name no file.
std::optional<std::string> option_objection(std::string_view option);

}  // namespace autotune
#endif
