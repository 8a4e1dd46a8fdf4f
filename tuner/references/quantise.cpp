/// quantise: scale = max(largest magnitude of a group, 2^-96) / limit, q = x * (1 / scale), rounded to nearest, ties to
/// even.
///
/// Both quotients and the product are floats, so q and scale are defined to the bit. Limits are 127, 7, 448 (e4m3) and
/// 57344 (e5m2). NaN does not count for the scale, and becomes NaN in a float format and 0 in an integer one. A group
/// with an infinity has the scale infinity; its finite elements become 0, and infinite ones as NaN does.
#include <autotune/reference.hpp>

namespace {

/// The nearest number of a float format of `mantissa` bits, ties to even, subnormals below 2^lowest.
double nearest_small_float(float x, int mantissa, int lowest, double limit) {
    if (std::isnan(x)) return x;
    const int exponent = x == 0 ? lowest : std::max(lowest, std::ilogb(x));
    const double unit = std::ldexp(1.0, exponent - mantissa);
    return std::clamp(std::nearbyint(x / unit) * unit, -limit, limit);
}

}  // namespace

AUTOTUNE_REFERENCE(quantise) {
    const auto rows = static_cast<std::size_t>(call.integer("rows"));
    const auto cols = static_cast<std::size_t>(call.integer("cols"));
    const std::string_view format = call.text("format"), per = call.text("scales");
    const std::size_t size = per == "tensor" ? rows * cols
                             : per == "row"  ? cols
                                             : static_cast<std::size_t>(call.integer("block"));
    const float limit = format == "int8" ? 127.0f : format == "int4" ? 7.0f : format == "e4m3" ? 448.0f : 57344.0f;
    const std::vector<double> x = call.doubles("x");
    autotune::Output q = call.output("q"), scale = call.output("scale");
    call.parallel(rows * cols / size, [&](std::size_t group) {
        const std::size_t first = group * size;
        float largest = 0x1p-96f;
        for (std::size_t i = first; i < first + size; ++i)
            largest = std::fmax(largest, std::fabs(static_cast<float>(x[i])));
        const float divisor = largest / limit, factor = 1.0f / divisor;
        scale.set(group, divisor);
        const auto rounded = [&](std::size_t i) -> double {
            const float scaled = static_cast<float>(x[i]) * factor;
            if (format == "e4m3") return nearest_small_float(scaled, 3, -6, limit);
            if (format == "e5m2") return nearest_small_float(scaled, 2, -14, limit);
            return std::isnan(scaled) ? 0.0 : std::nearbyint(scaled);
        };
        if (format == "int4")
            for (std::size_t i = first; i < first + size; i += 2)
                q.set(i / 2, (static_cast<int>(rounded(i)) & 15) | (static_cast<int>(rounded(i + 1)) & 15) << 4);
        else
            for (std::size_t i = first; i < first + size; ++i) q.set(i, rounded(i));
    });
}
