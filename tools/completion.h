#ifndef AUTOTUNE_TOOLS_COMPLETION_H
#define AUTOTUNE_TOOLS_COMPLETION_H

#include <span>
#include <string>
#include <string_view>

namespace autotune {

/// The script of a shell, which asks `autotune __complete`. Throws Error{usage} for a shell that is not known.
std::string_view completion_script(std::string_view shell);

/// What `autotune __complete WORDS...` prints: how the last word, which may be empty, can go on, as a line of
/// candidate, tab and a few words about it each; `:files` where a path is wanted. Ops of the folders that --ops names
/// are known.
std::string completions(std::span<const std::string> words);

}  // namespace autotune
#endif
