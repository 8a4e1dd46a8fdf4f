#include "tuner/loader/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "autotune/error.h"
#include "tuner/loader/nesting.h"
#include "tuner/loader/toml.h"
#include "tuner/model/printable.h"

namespace autotune {
namespace {

constexpr std::size_t longest_file = 1u << 20;
constexpr std::size_t longest_excerpt = 110;  // of a line under an error

Position position_of(const toml::source_region& region) {
    return {static_cast<std::uint32_t>(region.begin.line), static_cast<std::uint32_t>(region.begin.column)};
}

/// What may not become a value: said with its place.
struct Refusal {
    Position at;
    std::string why;
};

void require_plain(std::string_view text, Position at) {
    if (steers_a_terminal(text)) throw Refusal{at, "a text in an op file has no control characters"};
}

Node convert(const toml::node& from) {
    Node node;
    node.position = position_of(from.source());
    if (const auto* table = from.as_table()) {
        node.kind = Node::Kind::table;
        for (auto&& [key, child] : *table) {
            node.children.push_back(convert(child));
            node.children.back().key = key.str();
            node.children.back().key_position = position_of(key.source());
            require_plain(key.str(), node.children.back().key_position);
        }
        std::ranges::stable_sort(node.children, {}, &Node::key_position);
    } else if (const auto* array = from.as_array()) {
        node.kind = Node::Kind::array;
        for (const toml::node& child : *array) node.children.push_back(convert(child));
    } else if (const auto* text = from.as_string()) {
        node.kind = Node::Kind::text;
        require_plain(text->get(), node.position);
        node.value = text->get();
    } else if (const auto* integer = from.as_integer()) {
        node.kind = Node::Kind::integer;
        node.value = integer->get();
    } else if (const auto* real = from.as_floating_point()) {
        if (!std::isfinite(real->get())) throw Refusal{node.position, "a number in an op file is finite"};
        node.kind = Node::Kind::real;
        node.value = real->get();
    } else if (const auto* flag = from.as_boolean()) {
        node.kind = Node::Kind::boolean;
        node.value = flag->get();
    } else {
        throw Refusal{node.position, "an op file has no dates and times"};
    }
    return node;
}

/// Line and column, from 1, of a byte of the text.
Position position_at(std::string_view text, std::size_t offset) {
    const std::string_view before = text.substr(0, offset);
    const std::size_t line = before.rfind('\n');
    const std::string_view row = line == std::string_view::npos ? before : before.substr(line + 1);
    const auto starts = [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; };
    return {static_cast<std::uint32_t>(1 + std::ranges::count(before, '\n')),
            static_cast<std::uint32_t>(1 + std::ranges::count_if(row, starts))};
}

/// Bytes of the first `characters` characters of a line of UTF-8.
std::size_t bytes_of(std::string_view line, std::size_t characters) {
    std::size_t at = 0;
    for (; characters > 0 && at < line.size(); --characters) {
        ++at;
        while (at < line.size() && (static_cast<unsigned char>(line[at]) & 0xc0u) == 0x80u) ++at;
    }
    return at;
}

/// Two lines: `  12 | text` and the caret. Of a long line the part around the caret.
std::string excerpt(std::string_view line, Position at, std::size_t length) {
    std::size_t start = bytes_of(line, at.column > 0 ? at.column - 1 : 0);
    std::string dots;
    if (line.size() > longest_excerpt) {
        const std::size_t cut = start > longest_excerpt / 2 ? start - longest_excerpt / 2 : 0;
        if (cut > 0) dots = "...";
        line = line.substr(cut, longest_excerpt);
        start -= cut;
    }
    std::string shown, pad;
    for (const char c : line) shown += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? ' ' : c;
    // Tabs stay tabs, so that the caret stands right in any terminal; a character takes one column.
    for (const char c : line.substr(0, start))
        if ((static_cast<unsigned char>(c) & 0xc0u) != 0x80u) pad += c == '\t' ? '\t' : ' ';
    const std::size_t room = line.size() > start ? line.size() - start : 0;
    const std::string tildes(std::min(length > 0 ? length - 1 : 0, room > 0 ? room - 1 : 0), '~');
    const std::string number = std::to_string(at.line);
    return fmt::format("  {} | {}{}\n  {} | {}{}^{}", number, dots, shown, std::string(number.size(), ' '),
                       std::string(dots.size(), ' '), pad, tildes);
}

/// toml++ starts with "Error while parsing a value: "; the place says that already.
std::string cause_of(std::string text) {
    if (const std::size_t colon = text.find(": "); text.starts_with("Error while") && colon != std::string::npos)
        text.erase(0, colon + 2);
    if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
    while (!text.empty() && text.back() == '.') text.pop_back();
    return text;
}

}  // namespace

const Node* Node::find(std::string_view name) const noexcept {
    const auto found = std::ranges::find(children, name, &Node::key);
    return found == children.end() ? nullptr : &*found;
}

Document::Document(std::string_view text, std::string_view name) : name_{name}, text_{text} {
    if (text.size() > longest_file)
        throw Error{Error::Kind::usage,
                    fmt::format("{} has {} bytes, an op file at most {}", name, text.size(), longest_file)};
    if (const auto deep = too_deep(text))
        fail(position_at(text, deep->offset), deep->key
                                                  ? fmt::format("a key has at most {} parts", most_key_parts)
                                                  : fmt::format("brackets nest at most {} deep", deepest_nesting));
    try {
        root_ = convert(toml::parse(text, name));
    } catch (const toml::parse_error& error) {
        fail(position_of(error.source()), "this is no TOML: " + cause_of(std::string{error.description()}));
    } catch (const TomlFault&) {
        throw Error{Error::Kind::usage,
                    fmt::format("{} is no TOML: a header or key starts with a character that none has", name)};
    } catch (const Refusal& refusal) {
        fail(refusal.at, refusal.why);
    }
}

std::string_view Document::line(std::uint32_t number) const noexcept {
    std::string_view rest = text_;
    for (std::uint32_t i = 1; i < number; ++i) {
        const std::size_t end = rest.find('\n');
        if (end == std::string_view::npos) return {};
        rest.remove_prefix(end + 1);
    }
    rest = rest.substr(0, rest.find('\n'));
    if (rest.ends_with('\r')) rest.remove_suffix(1);
    return rest;
}

void Document::fail(Position at, const std::string& message, const std::string& help, std::size_t length) const {
    throw Error{Error::Kind::usage,
                fmt::format("{}:{}:{}: {}\n{}", name_, at.line, at.column, message, excerpt(line(at.line), at, length)),
                help};
}

void Document::fail(const Node& at, const std::string& message, const std::string& help) const {
    const std::string_view rest = line(at.position.line);
    std::size_t length = 1;
    if (at.kind == Node::Kind::text)
        length = at.text().size() + 2;
    else if (at.kind != Node::Kind::array && at.kind != Node::Kind::table)
        length = rest.substr(std::min<std::size_t>(rest.size(), at.position.column - 1)).find_first_of(",]} \t#");
    fail(at.position, message, help, length);
}

void Document::fail_key(const Node& at, const std::string& message, const std::string& help) const {
    fail(at.key.empty() ? at.position : at.key_position, message, help, at.key.empty() ? 1 : at.key.size());
}

void Document::fail_inside(const Node& at, std::size_t offset, std::size_t length, const std::string& message,
                           const std::string& help) const {
    const std::string_view row = line(at.position.line);
    const std::string_view raw = row.substr(bytes_of(row, at.position.column - 1));
    // The value as it stands: one quote, then the very bytes. Escapes and multi-line strings are not counted through.
    const std::string& text = at.text();
    const bool plain =
        raw.size() > text.size() && (raw[0] == '"' || raw[0] == '\'') && raw.substr(1, text.size()) == text;
    if (!plain || offset > text.size()) fail(at, message, help);
    std::size_t characters = 0;
    for (const char c : std::string_view{text}.substr(0, offset))
        characters += (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
    fail({at.position.line, at.position.column + 1 + static_cast<std::uint32_t>(characters)}, message, help,
         std::max<std::size_t>(1, length));
}

}  // namespace autotune
