/// scan: y[r, c] = sum of x[r, 0 .. c], or of x[r, 0 .. c - 1] where it is exclusive. Whole numbers wrap around at 32
/// bits.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(scan) {
    const auto rows = static_cast<std::size_t>(call.integer("rows"));
    const auto n = static_cast<std::size_t>(call.integer("n"));
    const bool exclusive = call.flag("exclusive"), whole = call.text("dtype") == "i32";
    const std::vector<double> x = call.doubles("x");
    autotune::Output y = call.output("y");
    call.parallel(rows, [&](std::size_t row) {
        double sum = 0.0, size = 0.0;
        for (std::size_t i = row * n; i < (row + 1) * n; ++i) {
            const double next = sum + x[i], next_size = size + std::fabs(x[i]);
            const double value = exclusive ? sum : next;
            y.set(
                i,
                whole ? static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(value))) : value,
                exclusive ? size : next_size);
            sum = next;
            size = next_size;
        }
    });
}
