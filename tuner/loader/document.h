#ifndef AUTOTUNE_LOADER_DOCUMENT_H
#define AUTOTUNE_LOADER_DOCUMENT_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/value.h"

namespace autotune {

/// Where something stands in a file, both from 1; the column counts characters, not bytes.
struct Position {
    std::uint32_t line = 0, column = 0;
    friend auto operator<=>(const Position&, const Position&) = default;
};

/// One value of a TOML file. A table's children come in the order in which they stand in the file: order has a
/// meaning in an op file, and TOML libraries keep tables sorted by name.
struct Node {
    enum class Kind { boolean, integer, real, text, array, table };
    Kind kind = Kind::table;
    Value value = false;  ///< of the first four
    Position position;    ///< of the value: a string's opening quote, a table's header
    std::string key;      ///< in its table; empty in an array
    Position key_position;
    std::vector<Node> children;  ///< of an array or table

    /// nullptr: the table has no such key.
    const Node* find(std::string_view name) const noexcept;
    bool is_text() const noexcept { return kind == Kind::text; }
    const std::string& text() const { return std::get<std::string>(value); }
};

/// A parsed file and what its errors need. TOML stays inside document.cpp.
class Document {
public:
    /// name: what messages call the file. Throws Error{usage} for what is no TOML, is longer than 1 MiB, or holds a
    /// date or a number that is not finite.
    Document(std::string_view text, std::string_view name);

    const std::string& name() const noexcept { return name_; }
    const std::string& text() const noexcept { return text_; }
    const Node& root() const noexcept { return root_; }

    /// Throws Error{usage}: `name:line:col: message`, then the line with a caret under `length` characters.
    [[noreturn]] void fail(Position at, const std::string& message, const std::string& help = {},
                           std::size_t length = 1) const;
    /// At a value, underlined wholly if it is a scalar.
    [[noreturn]] void fail(const Node& at, const std::string& message, const std::string& help = {}) const;
    /// At the key of a value.
    [[noreturn]] void fail_key(const Node& at, const std::string& message, const std::string& help = {}) const;
    /// Inside a string, `offset` bytes after its start; at its start where escapes make that place hard to tell.
    [[noreturn]] void fail_inside(const Node& at, std::size_t offset, std::size_t length, const std::string& message,
                                  const std::string& help = {}) const;

private:
    std::string_view line(std::uint32_t number) const noexcept;

    std::string name_, text_;
    Node root_;
};

}  // namespace autotune
#endif
