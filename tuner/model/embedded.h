#ifndef AUTOTUNE_MODEL_EMBEDDED_H
#define AUTOTUNE_MODEL_EMBEDDED_H

#include <span>
#include <string_view>

// What `autotune-embed` writes into the generated source behind builtin_ops(). Files are kept apart from the ops, since
// most ops share headers.

namespace autotune::embedded {

struct OpText {
    std::string_view json;   ///< of op_to_json, without the files
    std::string_view files;  ///< their names, each with a newline behind it
};

struct File {
    std::string_view name, text;
};

std::span<const OpText> ops() noexcept;
std::span<const File> files() noexcept;

}  // namespace autotune::embedded
#endif
