#include "tuner/loader/section.h"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/model/suggest.h"

namespace autotune {
namespace {

std::string place(std::string_view section) {
    if (section == "the top") return "at the top";
    if (section == "[problem]") return "in a field of [problem]";
    if (section == "[kernel.parameters]") return "in a parameter";
    if (section == "[tolerance]") return "in a tolerance";
    return fmt::format("in {}", section);
}

/// What the missing key would say; without the marks that the page wants.
std::string about_of(const KeyRow& row) {
    std::string about = row.about.empty() ? "" : fmt::format(": {}", row.about);
    std::erase(about, '`');
    return about;
}

bool all(const Node& array, Node::Kind kind) {
    return std::ranges::all_of(array.children, [kind](const Node& child) { return child.kind == kind; });
}

bool scalar(const Node& node) { return node.kind != Node::Kind::array && node.kind != Node::Kind::table; }

bool word_of(std::string_view text, std::string_view words) {
    while (!words.empty()) {
        const std::size_t end = words.find(' ');
        if (words.substr(0, end) == text) return true;
        words = end == std::string_view::npos ? std::string_view{} : words.substr(end + 1);
    }
    return false;
}

bool fits(const Node& value, const KeyRow& row) {
    using Kind = Node::Kind;
    switch (row.type) {
        case KeyType::integer:
            return value.kind == Kind::integer;
        case KeyType::flag:
            return value.kind == Kind::boolean;
        case KeyType::text:
        case KeyType::file:
            return value.kind == Kind::text;
        case KeyType::name:
            return value.kind == Kind::text && is_name(value.text());
        case KeyType::word:
            return value.kind == Kind::text && word_of(value.text(), row.words);
        case KeyType::value:
        case KeyType::expression:
            return scalar(value);
        case KeyType::values:
            return value.kind == Kind::array && std::ranges::all_of(value.children, scalar);
        // A tensor map stands among expressions; the launch looks at it.
        case KeyType::expressions:
            return value.kind == Kind::array && std::ranges::none_of(value.children, [](const Node& child) {
                       return child.kind == Kind::array ||
                              (child.kind == Kind::table && child.find("tensor_map") == nullptr);
                   });
        case KeyType::names:
            return value.kind == Kind::array && all(value, Kind::text);
        case KeyType::table:
            return value.kind == Kind::table;
        case KeyType::tables:
            return value.kind == Kind::array && all(value, Kind::table);
        case KeyType::text_or_table:
            return value.kind == Kind::text || value.kind == Kind::table;
    }
    return false;
}

}  // namespace

std::string_view kind_of(const Node& node) noexcept {
    switch (node.kind) {
        case Node::Kind::boolean:
            return "a boolean";
        case Node::Kind::integer:
            return "an integer";
        case Node::Kind::real:
            return "a float";
        case Node::Kind::text:
            return "a string";
        case Node::Kind::array:
            return "an array";
        case Node::Kind::table:
            return "a table";
    }
    return "";
}

bool is_name(std::string_view text) noexcept {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !text.empty() && text.size() <= 64 && letter(text[0]) &&
           std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

Section::Section(const Document& document, const Node& table, std::string_view section)
    : document_{&document}, table_{&table} {
    std::vector<std::string> known;
    for (const KeyRow& row : format_keys())
        if (row.section == section) known.emplace_back(row.key);
    for (const Node& child : table.children) {
        const auto rows = format_keys();
        const auto row =
            std::ranges::find_if(rows, [&](const KeyRow& r) { return r.section == section && r.key == child.key; });
        if (row != rows.end()) {
            check(child, *row);
            continue;
        }
        std::string meant = did_you_mean(child.key, known);
        if (meant.empty()) meant = fmt::format("; the keys are {}", enumerated(known));
        document.fail_key(child, fmt::format("unknown key '{}' {}{}", child.key, place(section), meant));
    }
    for (const KeyRow& row : format_keys())
        if (row.section == section && row.required && !has(row.key))
            document.fail_key(table, fmt::format("there is no '{}' {}{}", row.key, place(section), about_of(row)));
}

void Section::check(const Node& value, const KeyRow& row) const {
    if (fits(value, row)) return;
    const bool scalar_text = value.kind == Node::Kind::text;
    const std::string got = scalar_text ? fmt::format("'{}'", value.text()) : std::string{kind_of(value)};
    const std::string message = fmt::format("'{}' is {}, not {}", row.key, describe(row), got);
    if (value.kind == Node::Kind::table || value.kind == Node::Kind::array) document_->fail_key(value, message);
    document_->fail(value, message);
}

std::string Section::text(std::string_view key, std::string_view fallback) const {
    const Node* node = find(key);
    return node ? node->text() : std::string{fallback};
}

bool Section::flag(std::string_view key, bool fallback) const {
    const Node* node = find(key);
    return node ? std::get<bool>(node->value) : fallback;
}

std::vector<std::string> Section::texts(std::string_view key) const {
    std::vector<std::string> out;
    if (const Node* node = find(key))
        for (const Node& child : node->children) out.push_back(child.text());
    return out;
}

}  // namespace autotune
