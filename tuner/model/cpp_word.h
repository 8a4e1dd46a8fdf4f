#ifndef AUTOTUNE_MODEL_CPP_WORD_H
#define AUTOTUNE_MODEL_CPP_WORD_H

#include <string_view>

namespace autotune {

/// Whether C++ has this name for itself, so that generated code cannot declare it: keywords, `main`, `std`, names that
/// begin with an underscore or hold two, and autotune's own namespace.
bool is_cpp_word(std::string_view name) noexcept;

}  // namespace autotune
#endif
