#ifndef AUTOTUNE_MODEL_PROBLEM_KEY_H
#define AUTOTUNE_MODEL_PROBLEM_KEY_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tuner/model/instance.h"

// Inside of tuner/model: the one encoding of a problem, for store, importer and dispatcher.

namespace autotune {

inline constexpr std::uint64_t problem_key_version = 1;

/// Version, op, then the key fields and each present tensor's align and layout, in name order.
std::vector<std::byte> canonical_key(const Instance::Data& data);
std::string key_json(const Instance::Data& data);

/// "contiguous"; "pitched": rows are dense and lie in order without overlap; else "other".
std::string layout_of(const BoundTensor& tensor);

}  // namespace autotune
#endif
