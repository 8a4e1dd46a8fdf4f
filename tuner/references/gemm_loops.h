#ifndef AUTOTUNE_REFERENCES_GEMM_LOOPS_H
#define AUTOTUNE_REFERENCES_GEMM_LOOPS_H

#include <cstddef>
#include <span>

namespace autotune {

/// c[m, n] = a[m, k] x b[k, n], all contiguous and row-major.
struct GemmShape {
    std::size_t m = 0, n = 0, k = 0;
};

// The ladder of CPU loops that people teach, one thread each, from the formula to what a core can do. The reference
// uses the last rung of ours; the first is there to be believed at sight, and benchmarks time them all.

/// Three loops, one sum at a time.
void gemm_naive(GemmShape shape, std::span<const double> a, std::span<const double> b, std::span<double> c);

/// Blocks that stay in cache, and an inner loop along rows of b and c.
void gemm_blocked(GemmShape shape, std::span<const double> a, std::span<const double> b, std::span<double> c);

/// Blocks as well, a packed panel of b, and a tile of sums in vector registers; AVX2 and FMA where the processor has
/// them.
void gemm_vectorised(GemmShape shape, std::span<const double> a, std::span<const double> b, std::span<double> c);

/// Eigen's product: another author's code to hold ours against.
void gemm_eigen(GemmShape shape, std::span<const double> a, std::span<const double> b, std::span<double> c);

}  // namespace autotune
#endif
