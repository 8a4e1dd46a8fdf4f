#ifndef AUTOTUNE_MODEL_PRINTABLE_H
#define AUTOTUNE_MODEL_PRINTABLE_H

#include <string>
#include <string_view>

namespace autotune {

/// Whether a text holds what steers a terminal: control characters but tab and line breaks, DEL, and C1, which UTF-8
/// writes as c2 80 to c2 9f, and Unicode's marks that turn a text around, break its line or are not seen. Texts of op
/// files and databases come back in messages and tables, and could forge them.
bool steers_a_terminal(std::string_view text) noexcept;

/// The text with a question mark in place of each such character.
std::string printable(std::string_view text);

/// The same on one line, as a comment of a file that is generated: blanks in place of tabs and line breaks, and no
/// backslash at the end, which would take the next line in.
std::string one_line(std::string_view text);

/// A word as a shell takes it: in quotes where it needs any.
std::string shell_word(std::string_view text);

}  // namespace autotune
#endif
