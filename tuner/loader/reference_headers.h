#ifndef AUTOTUNE_LOADER_REFERENCE_HEADERS_H
#define AUTOTUNE_LOADER_REFERENCE_HEADERS_H

#include <string_view>

namespace autotune {

// The texts of include/autotune/reference.h and reference.hpp, taken in by the build: a user's reference compiles
// wherever this program runs.
extern const std::string_view reference_h, reference_hpp;

}  // namespace autotune
#endif
