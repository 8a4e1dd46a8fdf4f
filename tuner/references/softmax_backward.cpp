/// softmax_backward: dx[r, c] = y[r, c] * (dy[r, c] - s_r) with s_r = sum_k y[r, k] dy[r, k]; of log_softmax
/// dx[r, c] = dy[r, c] - exp(y[r, c]) * s_r with s_r = sum_k dy[r, k].
///
/// The magnitude is the error's bound without the rounding of dx itself, in units of 2^-23. The sum is off by at most
/// 2 + sqrt(cols) of these, times the sum S of its terms' magnitudes; the rest are the few roundings of what follows,
/// and, of log_softmax, an exponential that is good to 2^-22 and 1.25 |y| 2^-23.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(softmax_backward) {
    const auto rows = static_cast<std::size_t>(call.integer("rows"));
    const auto cols = static_cast<std::size_t>(call.integer("cols"));
    const bool log = call.flag("log");
    const std::vector<double> y = call.doubles("y");
    const std::vector<double> dy = call.doubles("dy");
    autotune::Output dx = call.output("dx");
    const double common = 2.0 + std::sqrt(static_cast<double>(cols));
    call.parallel(rows, [&](std::size_t row) {
        const std::size_t first = row * cols;
        double sum = 0.0, size = 0.0;
        for (std::size_t i = first; i < first + cols; ++i) {
            const double term = log ? dy[i] : y[i] * dy[i];
            sum += term;
            size += std::fabs(term);
        }
        for (std::size_t i = first; i < first + cols; ++i) {
            if (log) {
                const double p = std::exp(y[i]);
                const double far = std::fmin(std::fabs(y[i]), 1000.0);
                dx.set(i, dy[i] - p * sum,
                       p * (common * size + (3.0 + 1.25 * far) * std::fabs(sum)) + std::fabs(dy[i]));
            } else {
                dx.set(i, y[i] * (dy[i] - sum), std::fabs(y[i]) * (common * size + std::fabs(dy[i]) + std::fabs(sum)));
            }
        }
    });
}
