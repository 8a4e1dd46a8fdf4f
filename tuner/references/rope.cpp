/// rope: with t = positions[n] * base^(-2i / rot), or the table's cos t and sin t,
///     a' = a cos t - b sin t,  b' = b cos t + a sin t
/// for the pairs (i, i + rot / 2) of a head (half) or (2i, 2i + 1) (interleaved); elements from rot on stay.
///
/// The magnitude is 4 (|a| + |b|): two products of rounded factors, and of these the cosine is good to 2 units.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(rope) {
    const auto tokens = static_cast<std::size_t>(call.integer("tokens"));
    const auto q_heads = static_cast<std::size_t>(call.integer("q_heads"));
    const bool packed = call.flag("qkv"), half = call.text("convention") == "half";
    const std::size_t kv_heads = packed ? static_cast<std::size_t>(call.integer("kv_heads")) : 0;
    const auto dim = static_cast<std::size_t>(call.integer("dim"));
    const auto rot = static_cast<std::size_t>(call.integer("rot"));
    const bool table = call.text("angles") == "table";
    const double base = call.real("base");
    const std::vector<double> x = call.doubles("x"), positions = call.doubles("positions");
    const std::vector<double> angles = table ? call.doubles("table") : std::vector<double>{};
    autotune::Output q = call.output("q");
    const std::size_t heads = q_heads + 2 * kv_heads;
    const auto put = [&](std::size_t token, std::size_t head, std::size_t e, double value, double size) {
        if (head < q_heads)
            q.set((token * q_heads + head) * dim + e, value, size);
        else if (head < q_heads + kv_heads)
            call.output("k").set((token * kv_heads + head - q_heads) * dim + e, value, size);
        else
            call.output("v").set((token * kv_heads + head - q_heads - kv_heads) * dim + e, value, size);
    };
    call.parallel(tokens, [&](std::size_t token) {
        for (std::size_t head = 0; head < heads; ++head) {
            const double* from = x.data() + (token * heads + head) * dim;
            const std::size_t turned = head < q_heads + kv_heads ? rot : 0;
            for (std::size_t i = 0; i < turned / 2; ++i) {
                const std::size_t a = half ? i : 2 * i, b = half ? i + rot / 2 : 2 * i + 1;
                const double angle =
                    positions[token] * std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(rot));
                const std::size_t row = static_cast<std::size_t>(positions[token]) * rot;
                const double cosine = table ? angles[row + i] : std::cos(angle);
                const double sine = table ? angles[row + rot / 2 + i] : std::sin(angle);
                const double size = 4 * (std::fabs(from[a]) + std::fabs(from[b]));
                put(token, head, a, from[a] * cosine - from[b] * sine, size);
                put(token, head, b, from[b] * cosine + from[a] * sine, size);
            }
            for (std::size_t e = turned; e < dim; ++e) put(token, head, e, from[e], std::fabs(from[e]));
        }
    });
}
