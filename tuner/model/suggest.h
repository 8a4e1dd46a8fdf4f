#ifndef AUTOTUNE_MODEL_SUGGEST_H
#define AUTOTUNE_MODEL_SUGGEST_H

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace autotune {

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The word that was probably meant: at a distance of at most 2 and less than a third of the length of `typed` (one
/// slip is forgiven in any word of three letters and more), never the word itself; the nearest, then the first.
std::optional<std::string> suggestion(std::string_view typed, std::span<const std::string> words);

/// `; did you mean 'rows'?`, or empty: the end of a message about an unknown word.
std::string did_you_mean(std::string_view typed, std::span<const std::string> words);

/// The end of a message about an unknown word: `; did you mean 'rows'?`, else `; the fields are rows and cols`, where
/// `kind` is "fields"; empty when there are no words at all.
std::string remedy(std::string_view typed, std::span<const std::string> words, std::string_view kind);

/// `a`, `a and b`, `a, b and c`.
std::string enumerated(std::span<const std::string> words);

}  // namespace autotune
#endif
