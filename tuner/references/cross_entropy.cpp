/// cross_entropy: loss[r] = lse - (1 - smoothing) * x[label] - smoothing * mean(x), and
/// dx[r, c] = scale * (softmax[r, c] - (1 - smoothing) at the label - smoothing / cols).
///
/// An ignored row has loss and gradient 0; a label that is no column gives NaN. The magnitudes are bounds of the error
/// without the last rounding, in units of 2^-23. Of the exponentials' sum they are those of log_softmax.cpp, of one
/// exponential those of softmax.cpp; the mean is off by up to 1 + sqrt(cols) times the mean magnitude.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(cross_entropy) {
    const auto rows = static_cast<std::size_t>(call.integer("rows"));
    const auto cols = static_cast<std::size_t>(call.integer("cols"));
    const std::vector<double> x = call.doubles("x");
    const std::vector<double> labels = call.doubles("label");
    const auto ignore = static_cast<double>(call.integer("ignore"));
    const double smoothing = static_cast<float>(call.real("smoothing")), scale = static_cast<float>(call.real("scale"));
    const double n = static_cast<double>(cols), common = 8.0 + 0.25 * std::sqrt(n);
    autotune::Output loss = call.output("loss");
    const bool gradient = call.flag("gradient");
    call.parallel(rows, [&](std::size_t row) {
        const std::size_t first = row * cols;
        const bool ignored = labels[row] == ignore;
        if (ignored || labels[row] < 0.0 || labels[row] >= n) {
            const double everywhere = ignored ? 0.0 : std::nan("");
            loss.set(row, everywhere, 0.0);
            for (std::size_t i = first; gradient && i < first + cols; ++i) call.output("dx").set(i, everywhere, 0.0);
            return;
        }
        double max = -INFINITY, mean = 0.0, size = 0.0;
        for (std::size_t i = first; i < first + cols; ++i) max = std::fmax(max, x[i]);
        double sum = 0.0, far = 0.0;
        for (std::size_t i = first; i < first + cols; ++i) {
            const double distance = max - x[i];
            sum += std::exp(-distance);
            if (distance < 1000.0) far += std::exp(-distance) * distance;
            mean += x[i] / n;
            size += std::fabs(x[i]) / n;
        }
        const auto label = static_cast<std::size_t>(labels[row]);
        const double away = max - x[first + label];
        const double smooth = smoothing == 0.0 ? 0.0 : smoothing * (max - mean);
        const double smooth_size =
            smoothing == 0.0 ? 0.0 : smoothing * ((1.0 + std::sqrt(n)) * size + std::fabs(max) + std::fabs(max - mean));
        loss.set(
            row, std::log(sum) + (1.0 - smoothing) * away + smooth,
            common + 1.25 * far / sum + 2.0 * std::log(sum) + 3.0 * (std::isfinite(away) ? away : 0.0) + smooth_size);
        for (std::size_t c = 0; gradient && c < cols; ++c) {
            const double distance = max - x[first + c], p = std::exp(-distance) / sum;
            const double target = (c == label ? 1.0 - smoothing : 0.0) + smoothing / n;
            call.output("dx").set(
                first + c, scale * (p - target),
                std::fabs(scale) * (p * (common + 2.0 + 1.25 * std::fmin(distance, 1000.0)) + 3.0 * target));
        }
    });
}
