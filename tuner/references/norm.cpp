#include "tuner/references/norm.h"

namespace autotune {
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

void norm(const ReferenceCall& call, Centre centre) {
    const bool centred = centre == Centre::mean;
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
    Output y = call.output("y");
    const double n = static_cast<double>(cols), root = std::sqrt(n);
    call.parallel(rows, [&](std::size_t row) {
        const double* const at = h.data() + row * cols;
        double mean = 0.0, size = 0.0, squares = 0.0;
        for (std::size_t c = 0; c < cols; ++c) {
            if (centred) mean += at[c] / n;
            size += std::fabs(at[c]) / n;
        }
        double spread = 0.0;  // by how much the rounding of h can move the mean square, but for its unit
        for (std::size_t c = 0; c < cols; ++c) {
            squares += (at[c] - mean) * (at[c] - mean) / n;
            spread += std::fabs((at[c] - mean) * at[c]) / n;
        }
        const double rstd = 1.0 / std::sqrt(squares + eps);
        const double mean_off = centred ? (1.0 + root + stored) * size : 0.0;
        // Relative; the mean's error adds its square to the mean square.
        const double rstd_off =
            4.0 + 0.5 * root + stored * spread * rstd * rstd + 0.5 * mean_off * mean_off * 0x1p-23 * rstd * rstd;
        if (stats) {
            if (centred) call.output("mean").set(row, mean, mean_off);
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

void norm_backward(const ReferenceCall& call, Centre centre) {
    const bool centred = centre == Centre::mean;
    const auto rows = static_cast<std::size_t>(call.integer("rows"));
    const auto cols = static_cast<std::size_t>(call.integer("cols"));
    const double offset = static_cast<float>(call.real("offset"));
    const std::vector<double> x = call.doubles("x"), dy = call.doubles("dy"), weight = call.doubles("weight");
    const std::vector<double> rstd = call.doubles("rstd");
    const std::vector<double> mean = centred ? call.doubles("mean") : std::vector<double>(rows, 0.0);
    const bool more = call.flag("dh");
    const std::vector<double> dh = more ? call.doubles("dh") : std::vector<double>{};
    Output dx = call.output("dx"), dweight = call.output("dweight");
    const double n = static_cast<double>(cols), off = 3.0 + std::sqrt(n);
    const auto xhat = [&](std::size_t row, std::size_t c) { return (x[row * cols + c] - mean[row]) * rstd[row]; };
    call.parallel(rows, [&](std::size_t row) {
        double along = 0.0, along_size = 0.0, plain = 0.0, plain_size = 0.0;
        for (std::size_t c = 0; c < cols; ++c) {
            const double g = dy[row * cols + c] * (weight[c] + offset);
            along += g * xhat(row, c) / n;
            along_size += std::fabs(g * xhat(row, c)) / n;
            if (!centred) continue;
            plain += g / n;
            plain_size += std::fabs(g) / n;
        }
        for (std::size_t c = 0; c < cols; ++c) {
            const double g = dy[row * cols + c] * (weight[c] + offset), added = more ? dh[row * cols + c] : 0.0;
            dx.set(row * cols + c, rstd[row] * (g - plain - xhat(row, c) * along) + added,
                   std::fabs(rstd[row]) *
                           (3.0 * std::fabs(g) + off * (plain_size + std::fabs(xhat(row, c)) * along_size)) +
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

}  // namespace autotune
