/// reduce: y[o, i] = fold over k of x[o, k, i].
///
/// The magnitude of a sum, a mean and an L1 norm is the sum of its terms' magnitudes. A product's and an L2 norm's
/// error is relative to it: each of the n roundings adds half a unit, and the root halves what the squares' sum is off
/// by. min and max are NaN where an element is.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(reduce) {
    const auto outer = static_cast<std::size_t>(call.integer("outer"));
    const auto n = static_cast<std::size_t>(call.integer("n"));
    const auto inner = static_cast<std::size_t>(call.integer("inner"));
    const std::string_view kind = call.text("kind");
    const std::vector<double> x = call.doubles("x");
    autotune::Output y = call.output("y");
    call.parallel(outer * inner, [&](std::size_t output) {
        const double* from = x.data() + output / inner * n * inner + output % inner;
        double value = kind == "prod" ? 1.0 : kind == "min" ? INFINITY : kind == "max" ? -INFINITY : 0.0;
        double size = 0.0;
        for (std::size_t k = 0; k < n; ++k) {
            const double e = from[k * inner];
            if (kind == "prod")
                value *= e;
            else if (kind == "min")
                value = e < value || std::isnan(e) ? e : value;
            else if (kind == "max")
                value = e > value || std::isnan(e) ? e : value;
            else
                value += kind == "l1" ? std::fabs(e) : kind == "l2" ? e * e : e;
            size += std::fabs(e);
        }
        if (kind == "mean") value /= static_cast<double>(n), size /= static_cast<double>(n);
        if (kind == "l2") value = std::sqrt(value);
        const bool summed = kind == "sum" || kind == "mean" || kind == "l1";
        y.set(output, value, summed ? size : std::fabs(value));
    });
}
