#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(paged_attention) {
    autotune::Output o = call.output("o");
    const auto q = call.doubles("q");
    for (std::size_t i = 0; i < q.size(); ++i) o.set(i, q[i]);
}
