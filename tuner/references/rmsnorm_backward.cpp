/// rmsnorm_backward: with xhat = x * rstd and g = dy * (weight + offset),
///     dx = rstd * (g - xhat * mean_k(g * xhat)) (+ dh)
///     dweight = sum of dy * xhat over rows, dbias = sum of dy
///
/// Rstd is an input, as the forward pass left it. The magnitudes are bounds of the errors without the last
/// rounding, in units of 2^-23: a sum of n terms is off by up to 3 + sqrt(n) of them times the terms' magnitudes.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(rmsnorm_backward) {
    const auto rows = static_cast<std::size_t>(call.integer("rows"));
    const auto cols = static_cast<std::size_t>(call.integer("cols"));
    const double offset = static_cast<float>(call.real("offset"));
    const std::vector<double> x = call.doubles("x"), dy = call.doubles("dy"), weight = call.doubles("weight");
    const std::vector<double> rstd = call.doubles("rstd");
    const bool more = call.flag("dh");
    const std::vector<double> dh = more ? call.doubles("dh") : std::vector<double>{};
    autotune::Output dx = call.output("dx"), dweight = call.output("dweight");
    const double n = static_cast<double>(cols), off = 3.0 + std::sqrt(n);
    const auto xhat = [&](std::size_t row, std::size_t c) { return x[row * cols + c] * rstd[row]; };
    call.parallel(rows, [&](std::size_t row) {
        double along = 0.0, along_size = 0.0;
        for (std::size_t c = 0; c < cols; ++c) {
            const double g = dy[row * cols + c] * (weight[c] + offset);
            along += g * xhat(row, c) / n;
            along_size += std::fabs(g * xhat(row, c)) / n;
        }
        for (std::size_t c = 0; c < cols; ++c) {
            const double g = dy[row * cols + c] * (weight[c] + offset), added = more ? dh[row * cols + c] : 0.0;
            dx.set(row * cols + c, rstd[row] * (g - xhat(row, c) * along) + added,
                   std::fabs(rstd[row]) * (3.0 * std::fabs(g) + off * std::fabs(xhat(row, c)) * along_size) +
                       std::fabs(added));
        }
    });
    const double down = 3.0 + std::sqrt(static_cast<double>(rows));
    call.parallel(cols, [&](std::size_t c) {
        double sum = 0.0, size = 0.0, plain = 0.0, plain_size = 0.0;
        for (std::size_t row = 0; row < rows; ++row) {
            const double b = dy[row * cols + c];
            sum += b * xhat(row, c);
            size += std::fabs(b * xhat(row, c));
            plain += b;
            plain_size += std::fabs(b);
        }
        dweight.set(c, sum, down * size);
        if (call.flag("bias")) call.output("dbias").set(c, plain, down * plain_size);
    });
}
