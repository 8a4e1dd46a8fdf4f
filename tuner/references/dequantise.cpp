/// dequantise: y = q * scale of its group. int4 has two elements a byte, the first in the low half, from -8 to 7.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(dequantise) {
    const auto rows = static_cast<std::size_t>(call.integer("rows"));
    const auto cols = static_cast<std::size_t>(call.integer("cols"));
    const bool nibbles = call.text("format") == "int4";
    const std::string_view per = call.text("scales");
    const std::size_t size = per == "tensor" ? rows * cols
                             : per == "row"  ? cols
                                             : static_cast<std::size_t>(call.integer("block"));
    const std::vector<double> q = call.doubles("q"), scale = call.doubles("scale");
    autotune::Output y = call.output("y");
    call.parallel(rows, [&](std::size_t row) {
        for (std::size_t i = row * cols; i < (row + 1) * cols; ++i) {
            double whole = nibbles ? 0.0 : q[i];
            if (nibbles) {
                const int half = static_cast<int>(q[i / 2]) >> (i % 2 == 0 ? 0 : 4) & 15;
                whole = half < 8 ? half : half - 16;
            }
            y.set(i, whole * scale[i / size]);
        }
    });
}
