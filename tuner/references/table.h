#ifndef AUTOTUNE_REFERENCES_TABLE_H
#define AUTOTUNE_REFERENCES_TABLE_H

#include <span>
#include <string_view>

#include "autotune/reference.h"

namespace autotune {

struct BuiltinReference {
    std::string_view op;
    autotune_reference_fn run;
};

/// The CPU references that are linked in, by op: one for each tuner/references/OP.cpp, found by its file name, which
/// is also the name in its AUTOTUNE_REFERENCE.
std::span<const BuiltinReference> builtin_references() noexcept;

/// nullptr: there is none of that name.
autotune_reference_fn builtin_reference(std::string_view op) noexcept;

}  // namespace autotune
#endif
