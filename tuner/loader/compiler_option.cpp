#include "tuner/loader/compiler_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace autotune {
namespace {

/// A name that ends in `=` takes a value, `-D` and `-U` take what follows at once, and the others stand alone.
using Option = std::string_view;

constexpr auto nvrtc_options = std::to_array<Option>({
    "--use_fast_math",
    "-use_fast_math",
    "--ftz=",
    "-ftz=",
    "--prec-sqrt=",
    "-prec-sqrt=",
    "--prec-div=",
    "-prec-div=",
    "--fmad=",
    "-fmad=",
    "--maxrregcount=",
    "-maxrregcount=",
    "--extra-device-vectorization",
    "-extra-device-vectorization",
    "--restrict",
    "-restrict",
    "--device-debug",
    "-G",
    "--dopt=",
    "-dopt=",
    "--Ofast-compile=",
    "-Ofast-compile=",
    "--std=",
    "-std=",
    "--define-macro=",
    "-D",
    "--undefine-macro=",
    "-U",
    "--default-device",
    "-default-device",
    "--device-int128",
    "-device-int128",
    "--device-float128",
    "-device-float128",
    "--builtin-move-forward=",
    "-builtin-move-forward=",
    "--builtin-initializer-list=",
    "-builtin-initializer-list=",
    "--disable-warnings",
    "-w",
    "--diag-error=",
    "-diag-error=",
    "--diag-suppress=",
    "-diag-suppress=",
    "--diag-warn=",
    "-diag-warn=",
    "--split-compile=",
    "-split-compile=",
});

constexpr auto ptxas_options = std::to_array<Option>({
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-O4",
    "--opt-level=",
    "-v",
    "--verbose",
    "-w",
    "--disable-warnings",
    "--warn-on-spills",
    "-warn-spills",
    "--warn-on-local-memory-usage",
    "-warn-lmem-usage",
    "--warn-on-double-precision-use",
    "-warn-double-usage",
    "--def-load-cache=",
    "-dlcm=",
    "--def-store-cache=",
    "-dscm=",
    "--force-load-cache=",
    "-flcm=",
    "--force-store-cache=",
    "-fscm=",
    "--fmad=",
    "-fmad=",
    "--maxrregcount=",
    "-maxrregcount=",
    "--register-usage-level=",
    "--allow-expensive-optimizations=",
    "-allow-expensive-optimizations=",
    "--disable-optimizer-constants",
});

bool fits(std::string_view option, Option name) {
    const bool takes_value = name.ends_with('=') || name == "-D" || name == "-U";
    return takes_value ? option.size() > name.size() && option.starts_with(name) : option == name;
}

bool is_listed(std::string_view option, const auto& list) {
    return std::ranges::any_of(list, [&](Option name) { return fits(option, name); });
}

}  // namespace

std::optional<std::string> option_objection(std::string_view option) {
    if (!option.starts_with('-')) return "is no option of the compiler: it starts with -";
    for (const std::string_view name : {"--ptxas-options=", "-Xptxas="}) {
        if (!option.starts_with(name)) continue;
        for (std::string_view rest = option.substr(name.size());;) {
            const std::size_t comma = rest.find(',');
            if (!is_listed(rest.substr(0, comma), ptxas_options))
                return fmt::format("hands ptxas '{}', which is not among the options that an op may give it",
                                   rest.substr(0, comma));
            if (comma == std::string_view::npos) return std::nullopt;
            rest.remove_prefix(comma + 1);
        }
    }
    if (is_listed(option, nvrtc_options)) return std::nullopt;
    return "is not among the options that an op may give: floating point, optimisation, warnings, -D, -U, -std, and "
           "those of ptxas; none that names a file";
}

}  // namespace autotune
