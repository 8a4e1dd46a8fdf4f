/// log_softmax: y[r, c] = x[r, c] - max_r - log(sum_k exp(x[r, k] - max_r)), and how far a correct float kernel may be
/// off.
///
/// The magnitude is the error's bound without the rounding of y itself, in units of 2^-23. With d = max - x and p the
/// softmax, absolute:
///     8 + sqrt(cols) / 4      the relative error of the sum of exponentials, as softmax.cpp has it
///     1.25 * sum p d          what the roundings of the differences and their scaling add to that
///     log + d + |y|           roundings of the logarithm, of the difference, and of the last subtraction
/// A row with NaN or +inf is NaN throughout, and so is one of nothing but -inf.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(log_softmax) {
    const auto rows = static_cast<std::size_t>(call.integer("rows"));
    const auto cols = static_cast<std::size_t>(call.integer("cols"));
    const std::vector<double> x = call.doubles("x");
    autotune::Output y = call.output("y");
    const double common = 8.0 + 0.25 * std::sqrt(static_cast<double>(cols));
    call.parallel(rows, [&](std::size_t row) {
        const std::size_t first = row * cols;
        double max = -INFINITY;
        for (std::size_t c = 0; c < cols; ++c) max = std::fmax(max, x[first + c]);
        double sum = 0.0, far = 0.0;
        for (std::size_t c = 0; c < cols; ++c) {
            const double distance = max - x[first + c];
            sum += std::exp(-distance);
            if (distance < 1000.0) far += std::exp(-distance) * distance;
        }
        const double log_sum = std::log(sum);
        for (std::size_t c = 0; c < cols; ++c) {
            const double distance = max - x[first + c];
            const double value = -distance - log_sum;
            // Of -inf the result is -inf, with no error.
            const double size = std::isfinite(value) ? std::fabs(value) + distance : 0.0;
            y.set(first + c, value, common + 1.25 * far / sum + log_sum + size);
        }
    });
}
