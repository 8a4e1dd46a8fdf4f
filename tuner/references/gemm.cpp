// c[m, n] = act(alpha * op(a) x op(b) + beta * c + bias[n]) in double. What a kernel was given is exact in double, so
// the only error of this reference is that of summing k products at 2^-53.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <string_view>
#include <vector>

#include "autotune/reference.hpp"
#include "tuner/references/gemm_loops.h"

namespace {

using Doubles = std::vector<double>;

/// The [rows, columns] transpose of x, which is [columns, rows].
Doubles transposed(const autotune::ReferenceCall& call, const Doubles& x, std::size_t rows, std::size_t columns) {
    Doubles out(x.size());
    call.parallel(rows, [&](std::size_t r) {
        for (std::size_t i = 0; i < columns; ++i) out[r * columns + i] = x[i * rows + r];
    });
    return out;
}

/// The product, in blocks of rows over the threads of the call.
Doubles product(const autotune::ReferenceCall& call, autotune::GemmShape shape, const Doubles& a, const Doubles& b) {
    constexpr std::size_t block = 64;
    const auto [m, n, k] = shape;
    Doubles c(m * n);
    call.parallel((m + block - 1) / block, [&, n = n, k = k, m = m](std::size_t i) {
        const std::size_t first = i * block, rows = std::min(block, m - first);
        autotune::gemm_vectorised({.m = rows, .n = n, .k = k}, std::span{a}.subspan(first * k, rows * k), b,
                                  std::span{c}.subspan(first * n, rows * n));
    });
    return c;
}

void make_absolute(const autotune::ReferenceCall& call, Doubles& x) {
    call.parallel(x.size(), [&](std::size_t i) { x[i] = std::abs(x[i]); });
}

/// A relu passes NaN on; gelu is the exact form with erf.
double activate(std::string_view act, double x) {
    if (act == "relu") return x < 0.0 ? 0.0 : x;
    if (act == "gelu") return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
    return x;
}

}  // namespace

AUTOTUNE_REFERENCE(gemm) {
    const auto m = static_cast<std::size_t>(call.integer("m")), n = static_cast<std::size_t>(call.integer("n")),
               k = static_cast<std::size_t>(call.integer("k"));
    const double alpha = call.real("alpha"), beta = call.real("beta");
    const std::string_view act = call.text("act");

    // 1. op(a) as [m, k] and op(b) as [k, n].
    Doubles a = call.doubles("a"), b = call.doubles("b");
    if (call.flag("trans_a")) a = transposed(call, a, m, k);
    if (call.flag("trans_b")) b = transposed(call, b, k, n);

    // 2. The sums, then the sums of magnitudes.
    const Doubles sums = product(call, {.m = m, .n = n, .k = k}, a, b);
    make_absolute(call, a);
    make_absolute(call, b);
    const Doubles magnitudes = product(call, {.m = m, .n = n, .k = k}, a, b);

    // 3. The rest of the formula.
    const Doubles old = call.flag("beta0") ? Doubles(m * n, 0.0) : call.doubles("c");
    const Doubles shift = call.flag("bias") ? call.doubles("bias") : Doubles(n, 0.0);
    autotune::Output c = call.output("c");
    call.parallel(m * n, [&](std::size_t i) {
        const double added = beta * old[i], bias = shift[i % n];
        c.set(i, activate(act, alpha * sums[i] + added + bias),
              std::abs(alpha) * magnitudes[i] + std::abs(added) + std::abs(bias));
    });
}
