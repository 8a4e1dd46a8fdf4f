/// layernorm: y = (h - mean) * rstd * (weight + offset) (+ bias), with h = x (+ residual) and
/// rstd = 1 / sqrt(mean((h - mean)^2) + eps); quantised, y / scale with scale = max |y| / limit a row.
///
/// The magnitudes are bounds of the errors without the last rounding, in units of 2^-23. A mean of n terms is off by up
/// to 1 + sqrt(n) of them times the terms' mean magnitude, rstd by half as much as the mean square, relative, and h
/// itself by its rounding to the stored type where there is a residual. An int8 is off by half a step more.
#include <autotune/reference.hpp>

namespace {

/// Half a unit in the last place of 1, in units of 2^-23.
double rounding(int dtype) {
    switch (dtype) {
        case AUTOTUNE_F16:
            return 4096.0;
        case AUTOTUNE_BF16:
            return 32768.0;
        default:
            return 0.5;
    }
}

}  // namespace

AUTOTUNE_REFERENCE(layernorm) {
    const auto rows = static_cast<std::size_t>(call.integer("rows"));
    const auto cols = static_cast<std::size_t>(call.integer("cols"));
    const bool residual = call.flag("residual"), stats = call.flag("stats"), biased = call.flag("bias");
    const std::string_view out = call.text("out");
    const double limit = out == "int8" ? 127.0 : 448.0;
    const double eps = static_cast<float>(call.real("eps")), offset = static_cast<float>(call.real("offset"));
    std::vector<double> h = call.doubles("x");
    const std::vector<double> weight = call.doubles("weight");
    const std::vector<double> bias = biased ? call.doubles("bias") : std::vector<double>(cols, 0.0);
    if (residual) {
        const std::vector<double> added = call.doubles("residual");
        for (std::size_t i = 0; i < h.size(); ++i) {
            h[i] += added[i];
            call.output("h").set(i, h[i], std::fabs(h[i]));
        }
    }
    const double stored = residual ? rounding(call.tensor("x").dtype) : 0.0;
    autotune::Output y = call.output("y");
    const double n = static_cast<double>(cols), root = std::sqrt(n);
    call.parallel(rows, [&](std::size_t row) {
        const double* const at = h.data() + row * cols;
        double mean = 0.0, size = 0.0, squares = 0.0;
        for (std::size_t c = 0; c < cols; ++c) {
            mean += at[c] / n;
            size += std::fabs(at[c]) / n;
        }
        double spread = 0.0;  // by how much the rounding of h can move the mean square, but for its unit
        for (std::size_t c = 0; c < cols; ++c) {
            squares += (at[c] - mean) * (at[c] - mean) / n;
            spread += std::fabs((at[c] - mean) * at[c]) / n;
        }
        const double rstd = 1.0 / std::sqrt(squares + eps);
        const double mean_off = (1.0 + root + stored) * size;
        // Relative; the mean's error adds its square to the mean square.
        const double rstd_off =
            4.0 + 0.5 * root + stored * spread * rstd * rstd + 0.5 * mean_off * mean_off * 0x1p-23 * rstd * rstd;
        if (stats) {
            call.output("mean").set(row, mean, mean_off);
            call.output("rstd").set(row, rstd, rstd * rstd_off);
        }
        std::vector<double> value(cols), off(cols);
        double largest = 0.0, largest_off = 0.0;
        for (std::size_t c = 0; c < cols; ++c) {
            const double w = weight[c] + offset, d = at[c] - mean;
            value[c] = d * rstd * w + bias[c];
            off[c] = std::fabs(w) * rstd * (mean_off + stored * std::fabs(at[c]) + std::fabs(d) * (rstd_off + 2.0)) +
                     std::fabs(value[c]);
            if (std::isnan(value[c]) || std::fabs(value[c]) > largest) largest = std::fabs(value[c]);  // NaN stays
            largest_off = std::fmax(largest_off, off[c]);
        }
        if (out == "same") {
            for (std::size_t c = 0; c < cols; ++c) y.set(row * cols + c, value[c], off[c]);
            return;
        }
        const double scale = (largest < 0x1p-96 ? 0x1p-96 : largest) / limit;
        call.output("scale").set(row, scale, largest_off / limit + 2.0 * scale);
        for (std::size_t c = 0; c < cols; ++c) {
            const double q = out == "int8" && std::isnan(scale) ? 0.0 : value[c] / scale;
            const double step = out == "int8" ? 0.5 * 0x1p23 : 0.0;
            y.set(row * cols + c, q, (off[c] + std::fabs(q) / limit * largest_off) / scale + 3.0 * std::fabs(q) + step);
        }
    });
}
