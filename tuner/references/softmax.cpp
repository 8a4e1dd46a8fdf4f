/// softmax: y[r, c] = exp(x[r, c] - max_r) / sum_k exp(x[r, k] - max_r), and how far a correct float kernel may be off.
///
/// The magnitude is the error's bound without the rounding of y itself, in units of 2^-23. With d = max - x, relative:
///     1.25 * d           the difference, its scaling by log2(e) and log2(e) itself are rounded: 2.22 * 2^-24 each time
///     8                  two powers of two of 2^-22.5 for the element (its own, and its part's maximum against the
///                        row's), as many in the sum, and the roundings of three products
///     sqrt(cols) / 4     the sum of the row's exponentials, a few hundred a thread at most
/// A row with NaN or +inf is NaN throughout, and so is one of nothing but -inf: 0 / 0.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(softmax) {
    const auto rows = static_cast<std::size_t>(call.integer("rows"));
    const auto cols = static_cast<std::size_t>(call.integer("cols"));
    const std::vector<double> x = call.doubles("x");
    autotune::Output y = call.output("y");
    const double common = 8.0 + 0.25 * std::sqrt(static_cast<double>(cols));
    call.parallel(rows, [&](std::size_t row) {
        const std::size_t first = row * cols;
        double max = -INFINITY;
        for (std::size_t c = 0; c < cols; ++c) max = std::fmax(max, x[first + c]);
        double sum = 0.0;
        for (std::size_t c = 0; c < cols; ++c) sum += std::exp(x[first + c] - max);
        for (std::size_t c = 0; c < cols; ++c) {
            const double distance = max - x[first + c];
            const double value = std::exp(-distance) / sum;
            // Where the value is 0 the distance may be infinite, and the product would be NaN.
            y.set(first + c, value, value * (common + 1.25 * std::fmin(distance, 1000.0)));
        }
    });
}
