#ifndef AUTOTUNE_MODEL_KEYED_PROBLEM_H
#define AUTOTUNE_MODEL_KEYED_PROBLEM_H

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/model/instance.h"

namespace autotune {

/// The instance that a stored key stands for: the way back from Instance::key() and key_json(). A key says that a
/// tensor is pitched, not by how much, so its free strides are made up: rows padded to 16 bytes, and for "other" the
/// first order of the dimensions that is one. fields    the key fields; others, and scalars, take their defaults
/// key_json  Instance::key_json(), for the alignment and layout of each tensor
/// Throws Error{usage} where today's op has no problem with this key.
Instance instance_of_key(const Op& op, const std::vector<std::pair<std::string, Value>>& fields,
                         std::string_view key_json, std::span<const std::byte> key, const DeviceLimits& limits);

}  // namespace autotune
#endif
