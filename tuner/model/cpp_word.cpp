#include "tuner/model/cpp_word.h"

#include <algorithm>
#include <array>

namespace autotune {

bool is_cpp_word(std::string_view name) noexcept {
    static constexpr auto words = std::to_array<std::string_view>({
        "alignas",   "alignof",       "and",         "and_eq",       "asm",
        "auto",      "autotune",      "bitand",      "bitor",        "bool",
        "break",     "case",          "catch",       "char",         "char16_t",
        "char32_t",  "char8_t",       "class",       "co_await",     "co_return",
        "co_yield",  "compl",         "concept",     "const",        "const_cast",
        "consteval", "constexpr",     "constinit",   "continue",     "decltype",
        "default",   "delete",        "do",          "double",       "dynamic_cast",
        "else",      "enum",          "explicit",    "export",       "extern",
        "false",     "float",         "for",         "friend",       "goto",
        "if",        "inline",        "int",         "long",         "main",
        "mutable",   "namespace",     "new",         "noexcept",     "not",
        "not_eq",    "nullptr",       "operator",    "or",           "or_eq",
        "private",   "protected",     "public",      "register",     "reinterpret_cast",
        "requires",  "return",        "short",       "signed",       "sizeof",
        "static",    "static_assert", "static_cast", "std",          "struct",
        "switch",    "template",      "this",        "thread_local", "throw",
        "true",      "try",           "typedef",     "typeid",       "typename",
        "union",     "unsigned",      "using",       "virtual",      "void",
        "volatile",  "wchar_t",       "while",       "xor",          "xor_eq",
    });
    return name.starts_with('_') || name.find("__") != std::string_view::npos ||
           std::ranges::find(words, name) != words.end();
}

}  // namespace autotune
