#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(bad) {
    const auto x = call.doubles("x");
    autotune::Output y = call.output("y");
    call.parallel(x.size(), [&](std::size_t i) { y.set(i, 2 * x[i]); });
}
