/// adam: one step of AdamW,
///     m' = beta1 m + (1 - beta1) g,  v' = beta2 v + (1 - beta2) g^2
///     p' = p - rate ((m' / correction1) / (sqrt(v' / correction2) + eps) + decay p)
/// where element e is of the first tensor that ends behind e, or of the last.
///
/// Magnitudes are those of the terms; a step has a dozen roundings on its way, which the tolerance counts.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(adam) {
    const std::vector<double> p = call.doubles("p"), g = call.doubles("g"), m = call.doubles("m"),
                              v = call.doubles("v");
    const std::vector<double> ends = call.doubles("ends"), rates = call.doubles("rate"), decays = call.doubles("decay");
    // What a float holds of them: 1 - 0.999 is another number in double.
    const auto scalar = [&](const char* name) { return static_cast<double>(static_cast<float>(call.real(name))); };
    const double beta1 = scalar("beta1"), beta2 = scalar("beta2"), eps = scalar("eps");
    const double correction1 = scalar("correction1"), correction2 = scalar("correction2");
    autotune::Output p_out = call.output("p"), m_out = call.output("m"), v_out = call.output("v");
    call.parallel(p.size(), [&](std::size_t i) {
        const auto found = std::upper_bound(ends.begin(), ends.end() - 1, static_cast<double>(i));
        const auto tensor = static_cast<std::size_t>(found - ends.begin());
        const double mean = beta1 * m[i] + (1 - beta1) * g[i];
        const double mean_size = std::fabs(beta1 * m[i]) + std::fabs((1 - beta1) * g[i]);
        const double square = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
        const double root = std::sqrt(square / correction2) + eps;
        const double step = mean / correction1 / root, pull = decays[tensor] * p[i];
        m_out.set(i, mean, mean_size);
        v_out.set(i, square, std::fabs(square));
        p_out.set(i, p[i] - rates[tensor] * (step + pull),
                  std::fabs(p[i]) + std::fabs(rates[tensor]) * (mean_size / correction1 / root + std::fabs(pull)));
    });
}
