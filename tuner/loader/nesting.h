#ifndef AUTOTUNE_LOADER_NESTING_H
#define AUTOTUNE_LOADER_NESTING_H

#include <cstddef>
#include <optional>
#include <string_view>

namespace autotune {

/// How deep an op file may nest: its own format needs a third of it. A parser of TOML, and whoever walks or frees what
/// it made, recurses with each level, and a key like `a.a.a.a = 1` makes one with every dot.
inline constexpr std::size_t deepest_nesting = 32, most_key_parts = 8;

struct TooDeep {
    std::size_t offset = 0;  ///< in the text, bytes
    bool key = false;        ///< a key of too many parts; else brackets
};

/// The first place of a text of TOML that nests deeper than that. Broken TOML is looked at as far as it makes sense:
/// the parser says what is wrong with it.
std::optional<TooDeep> too_deep(std::string_view toml) noexcept;

}  // namespace autotune
#endif
