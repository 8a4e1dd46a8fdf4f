// Apart from the other loops, because Eigen takes seconds to compile.
#include <Eigen/Core>

#include "tuner/references/gemm_loops.h"

namespace autotune {

void gemm_eigen(GemmShape shape, std::span<const double> a, std::span<const double> b, std::span<double> c) {
    using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const auto m = static_cast<Eigen::Index>(shape.m), n = static_cast<Eigen::Index>(shape.n),
               k = static_cast<Eigen::Index>(shape.k);
    Eigen::Map<Matrix>(c.data(), m, n).noalias() =
        Eigen::Map<const Matrix>(a.data(), m, k) * Eigen::Map<const Matrix>(b.data(), k, n);
}

}  // namespace autotune
