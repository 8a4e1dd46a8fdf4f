#include "tuner/model/config.h"

#include <algorithm>
#include <vector>

#include "autotune/error.h"
#include "tuner/model/hashing.h"
#include "tuner/model/suggest.h"

namespace autotune {
const Value& Config::operator[](std::string_view parameter) const {
    for (const auto& [name, value] : values)
        if (name == parameter) return value;
    std::vector<std::string> names;
    for (const auto& entry : values) names.push_back(entry.first);
    throw Error{Error::Kind::usage, "variant '" + variant + "' has no parameter '" + std::string{parameter} + "'" +
                                        did_you_mean(parameter, names)};
}

std::string Config::text() const {
    std::string out = variant;
    for (const auto& [name, value] : values) {
        if (!out.empty()) out += ' ';
        out += name + '=' + to_text(value);
    }
    return out;
}

std::string Config::hash() const {
    std::vector<const std::pair<std::string, Value>*> sorted;
    for (const auto& entry : values) sorted.push_back(&entry);
    std::ranges::sort(sorted, {}, [](const auto* entry) -> const std::string& { return entry->first; });
    CanonicalBytes bytes;
    bytes.add(variant).add(std::uint64_t{sorted.size()});
    for (const auto* entry : sorted) bytes.add(entry->first).add_value(entry->second);
    return bytes.sha256();
}

Config config_from_text(std::string_view text) {
    Config config;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = text.find_first_not_of(" ,\t\n", at);
        if (begin == std::string_view::npos) break;
        const std::size_t end = std::min(text.find_first_of(" ,\t\n", begin), text.size());
        const std::string_view word = text.substr(begin, end - begin);
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos && config.variant.empty() && config.values.empty()) {
            config.variant = word;
        } else if (equals == std::string_view::npos || equals == 0 || equals + 1 == word.size()) {
            throw Error{Error::Kind::usage, "in the config '" + std::string{text} + "' '" + std::string{word} +
                                                "' is not of the form NAME=VALUE"};
        } else {
            const std::string name{word.substr(0, equals)};
            if (std::ranges::find(config.values, name, &std::pair<std::string, Value>::first) != config.values.end())
                throw Error{Error::Kind::usage, "the config '" + std::string{text} + "' gives '" + name + "' twice"};
            config.values.emplace_back(name, value_from_text(word.substr(equals + 1)));
        }
        at = end;
    }
    return config;
}

}  // namespace autotune
