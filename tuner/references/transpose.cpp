/// transpose: y[b, c, r] = x[b, r, c], every bit of it.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(transpose) {
    const auto batch = static_cast<std::size_t>(call.integer("batch"));
    const auto rows = static_cast<std::size_t>(call.integer("rows"));
    const auto cols = static_cast<std::size_t>(call.integer("cols"));
    const std::vector<double> x = call.doubles("x");
    autotune::Output y = call.output("y");
    call.parallel(batch * cols, [&](std::size_t line) {
        const std::size_t b = line / cols, c = line % cols;
        for (std::size_t r = 0; r < rows; ++r) y.set(line * rows + r, x[(b * rows + r) * cols + c]);
    });
}
