#ifndef AUTOTUNE_MODEL_PATH_H
#define AUTOTUNE_MODEL_PATH_H

#include <optional>
#include <string>
#include <string_view>

namespace autotune {

/// Why this cannot be the path of a file of an op, the end of a sentence: `leaves the op's folder`; nullopt: it can.
/// Such a path is relative, of at most 255 bytes of UTF-8, and has no part `..`.
std::optional<std::string> path_objection(std::string_view path);

}  // namespace autotune
#endif
