/// permute: dimension k of y is dimension p_k of x, where `order` has the digits p_0 p_1 p_2 p_3.
#include <array>
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(permute) {
    std::array<std::size_t, 4> extent{}, stride{}, from{};
    for (std::size_t d = 0; d < 4; ++d)
        extent[d] = static_cast<std::size_t>(call.integer(std::string{"d"} + static_cast<char>('0' + d)));
    stride = {extent[1] * extent[2] * extent[3], extent[2] * extent[3], extent[3], 1};
    std::int64_t order = call.integer("order");
    for (std::size_t k = 4; k-- > 0; order /= 10) from[k] = static_cast<std::size_t>(order % 10);
    const std::vector<double> x = call.doubles("x");
    autotune::Output y = call.output("y");
    std::size_t at = 0;
    for (std::size_t i0 = 0; i0 < extent[from[0]]; ++i0)
        for (std::size_t i1 = 0; i1 < extent[from[1]]; ++i1)
            for (std::size_t i2 = 0; i2 < extent[from[2]]; ++i2)
                for (std::size_t i3 = 0; i3 < extent[from[3]]; ++i3)
                    y.set(at++,
                          x[i0 * stride[from[0]] + i1 * stride[from[1]] + i2 * stride[from[2]] + i3 * stride[from[3]]]);
}
