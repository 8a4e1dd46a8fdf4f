/// masked_softmax: the softmax over a row's keys of z = scale * x (+ add), where a key that is masked or, of a causal
/// one, to come, has no part: its result is 0, whatever x holds there. A row that sees nothing is 0 throughout, as is
/// one of nothing but -inf; one that sees NaN or +inf is NaN throughout.
///
/// The magnitude is that of softmax.cpp, and the rounding of z: |z| / 2 of the element, of the maximum, and in the
/// mean.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(masked_softmax) {
    const auto batch = static_cast<std::size_t>(call.integer("batch")),
               heads = static_cast<std::size_t>(call.integer("heads"));
    const auto queries = static_cast<std::size_t>(call.integer("queries")),
               keys = static_cast<std::size_t>(call.integer("keys"));
    const std::string_view kind = call.text("mask");
    const bool causal = call.flag("causal"), keep = kind == "keep", add = kind == "add";
    const double scale = static_cast<float>(call.real("scale")),
                 common = 8.0 + 0.25 * std::sqrt(static_cast<double>(keys));
    const std::vector<double> x = call.doubles("x");
    const std::vector<double> mask = keep ? call.doubles("keep") : add ? call.doubles("add") : std::vector<double>{};
    autotune::Output y = call.output("y");
    call.parallel(batch * heads * queries, [&](std::size_t row) {
        const std::size_t query = row % queries, head = row / queries % heads, in = row / queries / heads;
        const std::size_t first = row * keys, from = ((keep ? in : head) * queries + query) * keys;
        std::vector<double> z(keys, -INFINITY);
        double max = -INFINITY;
        for (std::size_t c = 0; c < keys; ++c) {
            if ((causal && c + queries > query + keys) || (keep && mask[from + c] == 0.0)) continue;
            z[c] = scale * x[first + c] + (add ? mask[from + c] : 0.0);
            max = std::fmax(max, z[c]);
        }
        double sum = 0.0, size = 0.0;
        for (std::size_t c = 0; c < keys; ++c) {
            if (z[c] == -INFINITY) continue;
            sum += std::exp(z[c] - max);
            size += std::exp(z[c] - max) * std::fabs(z[c]);
        }
        for (std::size_t c = 0; c < keys; ++c) {
            if (z[c] == -INFINITY && !(sum != sum)) {
                y.set(first + c, 0.0, 0.0);
                continue;
            }
            const double value = std::exp(z[c] - max) / sum, distance = std::fmin(max - z[c], 1000.0);
            y.set(first + c, value,
                  value * (common + 1.25 * distance + 0.5 * (distance + 2.0 * std::fabs(max) + size / sum)));
        }
    });
}
