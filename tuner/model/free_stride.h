#ifndef AUTOTUNE_MODEL_FREE_STRIDE_H
#define AUTOTUNE_MODEL_FREE_STRIDE_H

#include <optional>
#include <string>

#include "tuner/model/op.h"

namespace autotune {

/// The name of a stride that the caller gives: a bare one that is no field, scalar or let. nullopt for any other
/// stride.
std::optional<std::string> free_stride(const Op& op, const Expression& stride);

}  // namespace autotune
#endif
