#include "device/support.h"

namespace autotune {

namespace embedded {
extern const std::string_view support_cu;
extern const std::string_view support_math_h;
}  // namespace embedded

std::string_view support_source() noexcept { return embedded::support_cu; }

CompileRequest support_request(std::string arch) {
    return {.name = "support.cu",
            .source = std::string{embedded::support_cu},
            .headers = {{"device/support_math.h", std::string{embedded::support_math_h}}},
            .defines = {},
            .options = {"--fmad=false"},  // the same bits as on the host
            .entries = {"autotune_fill", "autotune_compare", "autotune_equal"},
            .arch = std::move(arch),
            .precompiled_headers = false};
}

}  // namespace autotune
