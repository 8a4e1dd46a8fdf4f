#include "tuner/model/cache_root.h"

#include <cstdlib>

namespace autotune {
namespace {

std::filesystem::path path_in(const char* variable) {
    const char* value = std::getenv(variable);
    return value && *value ? std::filesystem::path{value} : std::filesystem::path{};
}

}  // namespace

std::filesystem::path cache_root() {
    if (const std::filesystem::path given = path_in("AUTOTUNE_CACHE_DIR"); !given.empty()) return given;
    // The XDG specification: relative paths are to be ignored.
    if (const std::filesystem::path cache = path_in("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "autotune";
    if (const std::filesystem::path home = path_in("HOME"); !home.empty()) return home / ".cache/autotune";
    return {};
}

}  // namespace autotune
