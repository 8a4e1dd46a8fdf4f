#include "tuner/loader/nesting.h"

#include <algorithm>

namespace autotune {
namespace {

/// Behind the string that starts at `at`: at its closing quotes, or where a line without any ends.
std::size_t behind_string(std::string_view text, std::size_t at) noexcept {
    const char quote = text[at];
    const std::string_view three = text.substr(at, 3);
    const bool long_form = three.size() == 3 && three[1] == quote && three[2] == quote;
    for (at += long_form ? 3 : 1; at < text.size(); ++at) {
        if (text[at] == '\\' && quote == '"')
            ++at;
        else if (text[at] == '\n' && !long_form)
            return at;
        else if (text[at] == quote && !long_form)
            return at + 1;
        else if (text[at] == quote && text.substr(at, 3) == three)
            return at + 3;
    }
    return text.size();
}

}  // namespace

std::optional<TooDeep> too_deep(std::string_view toml) noexcept {
    std::size_t depth = 0, parts = 1;
    for (std::size_t at = 0; at < toml.size();) {
        const char c = toml[at];
        if (c == '"' || c == '\'') {
            at = behind_string(toml, at);
            continue;
        }
        if (c == '#') {
            at = std::min(toml.find('\n', at), toml.size());
            continue;
        }
        if (c == '.' && ++parts > most_key_parts) return TooDeep{.offset = at, .key = true};
        if (c == '=' || c == ',' || c == '\n' || c == '[' || c == '{' || c == ']' || c == '}') parts = 1;
        if ((c == '[' || c == '{') && ++depth > deepest_nesting) return TooDeep{.offset = at, .key = false};
        if ((c == ']' || c == '}') && depth > 0) --depth;
        ++at;
    }
    return std::nullopt;
}

}  // namespace autotune
