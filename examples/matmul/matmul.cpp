// The CPU reference of matmul, in double: what every result is judged by.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(matmul) {
    const auto n = static_cast<std::size_t>(call.integer("n"));
    const std::vector<double> a = call.doubles("a"), b = call.doubles("b");
    autotune::Output c = call.output("c");
    call.parallel(n, [&](std::size_t i) {
        std::vector<double> sum(n, 0.0), size(n, 0.0);
        for (std::size_t k = 0; k < n; ++k)
            for (std::size_t j = 0; j < n; ++j) {
                const double product = a[i * n + k] * b[k * n + j];
                sum[j] += product;
                size[j] += std::abs(product);
            }
        for (std::size_t j = 0; j < n; ++j) c.set(i * n + j, sum[j], size[j]);
    });
}
