// The CPU reference of the convolution, in double.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(convolution) {
    constexpr std::size_t size = 15;
    const auto height = static_cast<std::size_t>(call.integer("height")),
               width = static_cast<std::size_t>(call.integer("width"));
    const std::vector<double> x = call.doubles("x"), filter = call.doubles("filter");
    autotune::Output y = call.output("y");
    call.parallel(height, [&](std::size_t r) {
        for (std::size_t c = 0; c < width; ++c) {
            double sum = 0, magnitude = 0;
            for (std::size_t i = 0; i < size; ++i)
                for (std::size_t j = 0; j < size; ++j) {
                    const double product = x[(r + i) * (width + size - 1) + c + j] * filter[i * size + j];
                    sum += product;
                    magnitude += std::abs(product);
                }
            y.set(r * width + c, sum, magnitude);
        }
    });
}
