#include "tools/suggestion.h"

#include <fmt/format.h>

#include "tuner/model/printable.h"

namespace autotune {

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
