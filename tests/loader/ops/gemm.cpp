#include <autotune/reference.hpp>

#include <cmath>

AUTOTUNE_REFERENCE(gemm) {
    const auto a = call.doubles("a"), b = call.doubles("b");
    const std::int64_t m = call.integer("m"), n = call.integer("n"), k = call.integer("k");
    const double alpha = call.real("alpha");
    autotune::Output c = call.output("c");
    call.parallel(static_cast<std::size_t>(m * n), [&](std::size_t at) {
        const auto row = static_cast<std::int64_t>(at) / n, column = static_cast<std::int64_t>(at) % n;
        double sum = 0, magnitude = 0;
        for (std::int64_t i = 0; i < k; ++i) {
            const double term = a[static_cast<std::size_t>(row * k + i)] * b[static_cast<std::size_t>(i * n + column)];
            sum += term;
            magnitude += std::abs(term);
        }
        c.set(at, alpha * sum, std::abs(alpha) * magnitude);
    });
}
