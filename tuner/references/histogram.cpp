/// histogram: counts[b] = how many elements fall into bin b. A whole number is its own bin; a float's is
/// floor((x - low) * (bins / (high - low))), each step rounded to float, where low <= x <= high; the last bin takes
/// high, and what rounding puts beyond it. What has no bin is not counted, NaN neither.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(histogram) {
    const std::int64_t bins = call.integer("bins");
    const bool whole = call.text("dtype") == "u8" || call.text("dtype") == "i32";
    const auto low = static_cast<float>(call.real("low")), high = static_cast<float>(call.real("high"));
    const float span = high - low, factor = static_cast<float>(bins) / span;
    std::vector<double> counts(static_cast<std::size_t>(bins));
    for (const double element : call.doubles("x")) {
        double bin = element;
        if (!whole) {
            const auto x = static_cast<float>(element);
            if (!(x >= low && x <= high)) continue;
            const float past = x - low, scaled = past * factor;
            bin = std::min(std::floor(static_cast<double>(scaled)), static_cast<double>(bins - 1));
        }
        if (bin >= 0 && bin < static_cast<double>(bins)) ++counts[static_cast<std::size_t>(bin)];
    }
    autotune::Output out = call.output("counts");
    for (std::size_t b = 0; b < counts.size(); ++b) out.set(b, counts[b]);
}
