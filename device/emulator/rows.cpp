#include "device/emulator/rows.h"

#include <cstdlib>
#include <string_view>

namespace autotune::emulator {
namespace {

#if defined(AUTOTUNE_ROWS_BASELINE_ONLY)
const RowBuild& usual_build() { return baseline_rows; }
#else
bool is_fast_cpu() {
    __builtin_cpu_init();
    // F16C has no name of its own in older compilers' __builtin_cpu_supports; every CPU with AVX2 has it.
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const RowBuild& usual_build() {
    const char* const asked = std::getenv("AUTOTUNE_EMULATOR_ROWS");
    return is_fast_cpu() && !(asked && std::string_view{asked} == "baseline") ? fast_rows : baseline_rows;
}
#endif

const RowBuild* chosen_by_test = nullptr;

}  // namespace

void choose_row_build(const RowBuild* build) { chosen_by_test = build; }

const RowBuild& row_build() {
    if (chosen_by_test) return *chosen_by_test;
    static const RowBuild& usual = usual_build();
    return usual;
}

}  // namespace autotune::emulator
