#ifndef AUTOTUNE_LOADER_FORMAT_H
#define AUTOTUNE_LOADER_FORMAT_H

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace autotune {

/// What may stand under a key of an op file.
enum class KeyType {
    integer,
    flag,         ///< true or false
    text,         ///< any text
    name,         ///< letters, digits and _, not starting with a digit
    word,         ///< one of KeyRow::words
    value,        ///< a number, true, false or a word
    values,       ///< an array of them
    expression,   ///< a string that holds one, or a number, true or false
    expressions,  ///< an array of them
    names,        ///< an array of strings
    file,         ///< a path inside the op's folder
    table,        ///< `[x]` or `{ ... }`
    tables,       ///< `[[x]]`
    text_or_table,
};

/// One key of the op format. The one table that the loader checks files against, that its errors list, and that
/// docs/op-format.md is made of.
struct KeyRow {
    std::string_view section;  ///< a title of `format_sections`
    std::string_view key;
    KeyType type;
    bool required;
    std::string_view words;  ///< of a word: `near exact`
    std::string_view about;
};

/// What an error and the page call a group of keys, and what the page says about it.
struct SectionRow {
    std::string_view section;
    std::string_view about;
};

std::span<const KeyRow> format_keys();
std::span<const SectionRow> format_sections();

/// The names that stand for limits of the device in expressions, with what they mean.
struct LimitRow {
    std::string_view name;
    std::string_view about;
};
std::span<const LimitRow> format_limits();

/// Functions of expressions; no field, parameter or tensor may have such a name.
struct FunctionRow {
    std::string_view name;
    std::string_view example;
    std::string_view about;
};
std::span<const FunctionRow> format_functions();

/// `a string that holds an expression`: the end of the sentence "'x' is ...".
std::string describe(const KeyRow& row);

/// The page docs/op-format.md. examples: title and text of whole op files.
std::string op_format_page(std::span<const std::pair<std::string, std::string>> examples);

}  // namespace autotune
#endif
