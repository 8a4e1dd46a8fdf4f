#include "tuner/interchange/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "autotune/error.h"

namespace autotune {
namespace {

constexpr int json_levels_at_most = 64;

Error unreadable(const std::string& message) { return Error{Error::Kind::usage, message}; }

std::string place(std::string_view text, std::size_t at) {
    const std::string_view before = text.substr(0, std::min(at, text.size()));
    const auto line = 1 + std::ranges::count(before, '\n');
    const std::size_t start = before.rfind('\n');
    return fmt::format("{}:{}", line, before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1);
}

/// Looked at beforehand: the parser's own callback goes over all earlier members at the end of each.
bool too_deep(std::string_view text) {
    int level = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted && c == '\\')
            ++i;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '[' || c == '{') && ++level > json_levels_at_most)
            return true;
        else if (!quoted && (c == ']' || c == '}'))
            --level;
    }
    return false;
}

/// Python writes these three words, which no JSON has.
std::string_view python_number(std::string_view text, std::size_t at) {
    for (const std::string_view word : {"NaN", "-Infinity", "Infinity"}) {
        const std::size_t from = at > word.size() ? at - word.size() : 0;
        if (text.substr(from, 2 * word.size() + 1).find(word) != std::string_view::npos) return word;
    }
    return {};
}

}  // namespace

std::string foreign_text(const std::filesystem::path& path) {
    std::error_code failure;
    if (!std::filesystem::is_regular_file(path, failure))
        throw unreadable(fmt::format("'{}' is no file{}", path.string(), failure ? ": " + failure.message() : ""));
    const std::uintmax_t bytes = std::filesystem::file_size(path, failure);
    if (failure || bytes > foreign_bytes_at_most)
        throw unreadable(
            fmt::format("'{}' has {} bytes, and at most {} are read", path.string(), bytes, foreign_bytes_at_most));
    std::ifstream stream{path, std::ios::binary};
    std::string text(bytes, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(bytes));
    if (!stream) throw unreadable(fmt::format("'{}' could not be read: {}", path.string(), std::strerror(errno)));
    return text;
}

ForeignJson json_from_text(std::string_view text, const std::string& file) {
    if (too_deep(text)) throw unreadable(fmt::format("{}: nested more than {} levels deep", file, json_levels_at_most));
    try {
        return ForeignJson::parse(text);
    } catch (const ForeignJson::parse_error& error) {
        const std::size_t at = error.byte > 0 ? error.byte - 1 : 0;
        const std::string_view number = python_number(text, at);
        if (!number.empty())
            throw unreadable(fmt::format("{}:{}: {} is no JSON: leave the configuration out, or give its failure", file,
                                         place(text, at), number));
        throw unreadable(fmt::format(
            "{}:{}: not JSON{}", file, place(text, at),
            std::string_view{error.what()}.find("UTF-8") != std::string_view::npos ? ", its bytes are no UTF-8" : ""));
    } catch (const ForeignJson::exception&) {  // a number beyond a double
        throw unreadable(fmt::format("{}: holds a number that is out of range", file));
    }
}

Value value_of_json(const ForeignJson& json, const std::string& where) {
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX)
        throw unreadable(fmt::format("{} does not fit in 64 bits with a sign", where));
    if (json.is_number_integer()) return json.get<std::int64_t>();
    if (json.is_number()) return json.get<double>();
    if (json.is_string()) return json.get<std::string>();
    throw unreadable(fmt::format("{} is no boolean, number or word", where));
}

ForeignJson json_of_value(const Value& value) {
    return std::visit([](const auto& held) { return ForeignJson(held); }, value);
}

}  // namespace autotune
