#ifndef AUTOTUNE_TUNER_MODEL_CACHE_ROOT_H
#define AUTOTUNE_TUNER_MODEL_CACHE_ROOT_H

#include <filesystem>

namespace autotune {

/// Where databases, binaries and compiled references are kept when nobody says otherwise: AUTOTUNE_CACHE_DIR, else
/// autotune in $XDG_CACHE_HOME, else in ~/.cache. Empty where none of them is set: no folder that others may write to
/// stands in.
std::filesystem::path cache_root();

}  // namespace autotune
#endif
