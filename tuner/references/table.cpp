#include "tuner/references/table.h"

#include <array>

// The rows are made by CMake, one a file of this folder.
#define AUTOTUNE_REFERENCE_ROW(op) extern "C" int autotune_reference_##op(const autotune_call*);
#include "references.inc"
#undef AUTOTUNE_REFERENCE_ROW

namespace autotune {
namespace {

#define AUTOTUNE_REFERENCE_ROW(op) BuiltinReference{#op, autotune_reference_##op},
constexpr std::array<BuiltinReference, AUTOTUNE_REFERENCE_COUNT> table{{
#include "references.inc"
}};
#undef AUTOTUNE_REFERENCE_ROW

}  // namespace

std::span<const BuiltinReference> builtin_references() noexcept { return table; }

autotune_reference_fn builtin_reference(std::string_view op) noexcept {
    for (const BuiltinReference& row : table)
        if (row.op == op) return row.run;
    return nullptr;
}

}  // namespace autotune
