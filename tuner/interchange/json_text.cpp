#include "tuner/interchange/json_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

#include "autotune/error.h"

namespace autotune {
namespace {

constexpr int json_levels_at_most = 64;
/// A value takes some hundred bytes of memory, and may take two of the file.
constexpr std::size_t json_values_at_most = std::size_t{1} << 24;

Error unreadable(const std::string& message) { return Error{Error::Kind::usage, message, foreign_help}; }

std::string place(std::string_view text, std::size_t at) {
    const std::string_view before = text.substr(0, std::min(at, text.size()));
    const auto line = 1 + std::ranges::count(before, '\n');
    const std::size_t start = before.rfind('\n');
    return fmt::format("{}:{}", line, before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1);
}

/// What of a text is beyond the limits; empty: nothing. Looked at beforehand: the parser's own callback goes over all
/// earlier members at the end of each.
std::string excess(std::string_view text) {
    int level = 0;
    bool quoted = false;
    std::size_t values = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted && c == '\\')
            ++i;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '[' || c == '{') && ++level > json_levels_at_most)
            return fmt::format("nested more than {} levels deep", json_levels_at_most);
        else if (!quoted && (c == ']' || c == '}'))
            --level;
        if (!quoted && (c == ',' || c == '[' || c == '{') && ++values > json_values_at_most)
            return fmt::format("holds more than {} values", json_values_at_most);
    }
    return {};
}

/// What people hand over in place of JSON, by its first bytes; empty: none of that.
std::string_view other_format(std::string_view text) {
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return "it is empty";
    if (text.starts_with("\x1f\x8b")) return "it is gzipped: unpack it first";
    if (text.starts_with("PK\x03\x04")) return "it is a zip archive: unpack it first";
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return "it is UTF-16: write it as UTF-8";
    return {};
}

/// What the parser stumbled on.
std::string stumble(std::string_view text, std::size_t at, std::string_view told) {
    if (told.find("UTF-8") != std::string_view::npos) return "its bytes are no UTF-8";
    if (at >= text.size()) return "it ends in the middle";
    if (text[at] > ' ' && text[at] <= '~') return fmt::format("'{}' has no place here", text[at]);
    return "this byte has no place here";
}

/// The number that is beyond a double, which the parser tells in quotes and without its place.
std::string out_of_range(std::string_view told) {
    const std::size_t begin = told.find('\''), end = told.rfind('\'');
    if (begin == std::string_view::npos || end == begin) return "a number";
    return std::string{told.substr(begin, std::min<std::size_t>(end + 1 - begin, 60))};
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
        throw unreadable(fmt::format("'{}' is no {}", path.string(),
                                     failure ? "file: " + failure.message() : "plain file, which is what is read"));
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
    if (const std::string_view other = other_format(text); !other.empty())
        throw unreadable(fmt::format("{}: not JSON: {}", file, other));
    // JSON has no such byte, and the parser takes it for the end: what comes behind it would be passed over.
    if (const std::size_t at = text.find('\0'); at != std::string_view::npos)
        throw unreadable(fmt::format("{}:{}: not JSON: {}", file, place(text, at), stumble(text, at, {})));
    if (const std::string beyond = excess(text); !beyond.empty()) throw unreadable(fmt::format("{}: {}", file, beyond));
    try {
        return ForeignJson::parse(text);
    } catch (const ForeignJson::parse_error& error) {
        const std::size_t at = error.byte > 0 ? error.byte - 1 : 0;
        const std::string_view number = python_number(text, at);
        if (!number.empty())
            throw unreadable(fmt::format("{}:{}: {} is no JSON: leave the configuration out, or give its failure", file,
                                         place(text, at), number));
        throw unreadable(fmt::format("{}:{}: not JSON: {}", file, place(text, at), stumble(text, at, error.what())));
    } catch (const ForeignJson::exception& error) {
        throw unreadable(
            fmt::format("{}: {} is out of range: no number of 64 bits is so large", file, out_of_range(error.what())));
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

std::string utc_text(std::int64_t seconds) {
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}+00:00", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

}  // namespace autotune
