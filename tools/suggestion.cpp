#include "tools/suggestion.h"

#include <fmt/format.h>

#include "tuner/model/printable.h"

namespace autotune {

std::string shell_word(std::string_view text) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) return std::string{text};
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string{"'\\''"} : std::string{c};
    return quoted + "'";
}

std::string same_flags(const Request& request) {
    std::string flags;
    const auto add = [&](std::string_view flag, const std::string& value) {
        if (!value.empty()) flags += fmt::format(" {} {}", flag, shell_word(value));
    };
    for (const std::string& folder : request.ops) add("--ops", folder);
    for (const std::string& chain : request.chains) add("--chain", chain);
    add("--gpu", request.gpu);
    add("--db", request.db);
    return one_line(flags);
}

}  // namespace autotune
