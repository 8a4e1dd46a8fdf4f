// The product inside of a wgmma: c (m x n) += a (m x k) b (k x n), all by rows; n is a multiple of 8, m of 4. Terms are
// added in the order of k; products of the small types are exact in float, so that all builds give the same sums.
#include "device/emulator/rows_map.h"

namespace autotune::emulator::AUTOTUNE_ROWS {
namespace {

typedef float Columns8 __attribute__((vector_size(32)));

ROWS_INLINE Columns8 columns_at(const float* from) {
    Columns8 x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

ROWS_INLINE Columns8 added(const Columns8& sum, float a, const Columns8& b) {
#if defined(__FMA__)
    return reinterpret_cast<Columns8>(
        _mm256_fmadd_ps(_mm256_set1_ps(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(sum)));
#else
    return sum + a * b;
#endif
}

}  // namespace

void multiply_rows(const float* a, const float* b, float* c, int m, int n, int k) {
    for (int i = 0; i < m; i += 4)
        for (int j = 0; j < n; j += 8) {
            Columns8 sum[4];
            for (int r = 0; r < 4; ++r) sum[r] = columns_at(c + (i + r) * n + j);
            for (int p = 0; p < k; ++p) {
                const Columns8 row = columns_at(b + p * n + j);
                for (int r = 0; r < 4; ++r) sum[r] = added(sum[r], a[(i + r) * k + p], row);
            }
            for (int r = 0; r < 4; ++r) std::memcpy(c + (i + r) * n + j, &sum[r], sizeof sum[r]);
        }
}

}  // namespace autotune::emulator::AUTOTUNE_ROWS
