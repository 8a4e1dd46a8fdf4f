/// unique: one of each run of equal elements of a sorted x, in their order, then what y held before; and how many they
/// are. -0 equals 0, and NaN NaN.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(unique) {
    const std::vector<double> x = call.doubles("x"), held = call.doubles("y");
    autotune::Output y = call.output("y"), counts = call.output("counts");
    std::size_t count = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const bool repeats = i > 0 && (x[i] == x[i - 1] || (std::isnan(x[i]) && std::isnan(x[i - 1])));
        if (!repeats) y.set(count++, x[i]);
    }
    counts.set(0, static_cast<double>(count));
    for (std::size_t i = count; i < held.size(); ++i) y.set(i, held[i]);
}
