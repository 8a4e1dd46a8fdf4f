/// argreduce: y[o, i] = the k at which x[o, k, i] is least or greatest. Of equal ones it is the first; NaN counts as
/// better than any number, so it is the first NaN where there is one.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(argreduce) {
    const auto outer = static_cast<std::size_t>(call.integer("outer"));
    const auto n = static_cast<std::size_t>(call.integer("n"));
    const auto inner = static_cast<std::size_t>(call.integer("inner"));
    const bool least = call.text("kind") == "argmin";
    const std::vector<double> x = call.doubles("x");
    autotune::Output y = call.output("y");
    call.parallel(outer * inner, [&](std::size_t output) {
        const double* from = x.data() + output / inner * n * inner + output % inner;
        std::size_t best = 0;
        for (std::size_t k = 1; k < n && !std::isnan(from[best * inner]); ++k) {
            const double e = from[k * inner], than = from[best * inner];
            if (std::isnan(e) || (least ? e < than : e > than)) best = k;
        }
        y.set(output, static_cast<double>(best));
    });
}
