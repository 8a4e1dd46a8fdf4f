#include "device/emulator/rows.h"

#include <cstdlib>
#include <string_view>

namespace autotune::emulator {
namespace {

bool is_fast_cpu() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    // F16C has no name of its own in older compilers' __builtin_cpu_supports; every CPU with AVX2 has it.
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

const RowBuild* chosen_by_test = nullptr;

}  // namespace

void choose_row_build(const RowBuild* build) { chosen_by_test = build; }

const RowBuild& row_build() {
    if (chosen_by_test) return *chosen_by_test;
    static const RowBuild& chosen = []() -> const RowBuild& {
        const char* const asked = std::getenv("AUTOTUNE_EMULATOR_ROWS");
#if defined(AUTOTUNE_ROWS_BASELINE_ONLY)
        (void)asked;
        return baseline_rows;
#else
        return is_fast_cpu() && !(asked && std::string_view{asked} == "baseline") ? fast_rows : baseline_rows;
#endif
    }();
    return chosen;
}

}  // namespace autotune::emulator
