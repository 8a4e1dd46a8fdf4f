/// copy: y[r, c] = x[r, c], every bit of it.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(copy) {
    const std::vector<double> x = call.doubles("x");
    autotune::Output y = call.output("y");
    for (std::size_t i = 0; i < x.size(); ++i) y.set(i, x[i]);
}
