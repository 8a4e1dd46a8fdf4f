#ifndef AUTOTUNE_MODEL_UTF8_H
#define AUTOTUNE_MODEL_UTF8_H

#include <string_view>

namespace autotune {

/// Whether the bytes are UTF-8 as the Unicode Standard's table 3-7 has it: no overlong form, no surrogate, nothing past
/// U+10FFFF.
bool is_utf8(std::string_view text);

}  // namespace autotune
#endif
