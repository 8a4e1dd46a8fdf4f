#ifndef AUTOTUNE_TOOLS_HELP_H
#define AUTOTUNE_TOOLS_HELP_H

#include <span>
#include <string>
#include <string_view>

namespace autotune {

/// A page of docs/help, or docs/op-format.md: what `autotune help TOPIC` prints.
struct HelpPage {
    std::string_view topic, text;
    /// Its heading.
    std::string_view about() const noexcept;
};

std::span<const HelpPage> help_pages();

/// What each exit code means, in a few lines.
std::string_view exit_codes_text();

/// The page of a topic. Throws Error{usage} with the nearest word there is, among `others` too.
std::string help_on(std::string_view topic, std::span<const std::string> others);

}  // namespace autotune
#endif
