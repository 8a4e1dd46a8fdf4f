#ifndef AUTOTUNE_MODEL_CONFIG_H
#define AUTOTUNE_MODEL_CONFIG_H

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/model/value.h"

namespace autotune {

/// One choice of a variant and a value for each of its parameters, in the order of the op file.
struct Config {
    std::string variant;
    std::vector<std::pair<std::string, Value>> values;

    /// Throws Error{usage} when there is no such parameter.
    const Value& operator[](std::string_view parameter) const;
    /// `warp_row THREADS=256 VEC=8`
    std::string text() const;
    /// SHA-256, hex, over the names and values in name order, without the op: equal configs of one variant hash equal.
    std::string hash() const;
    friend bool operator==(const Config&, const Config&) = default;
};

/// Reads `VARIANT NAME=VALUE ...` or `NAME=VALUE,...`; the variant may be left out, then it is empty.
/// Throws Error{usage}.
Config config_from_text(std::string_view text);

}  // namespace autotune
#endif
