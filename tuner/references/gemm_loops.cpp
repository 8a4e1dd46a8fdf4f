#include "tuner/references/gemm_loops.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace autotune {

void gemm_naive(GemmShape shape, std::span<const double> a, std::span<const double> b, std::span<double> c) {
    const auto [m, n, k] = shape;
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) {
            double sum = 0.0;
            for (std::size_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = sum;
        }
}

void gemm_blocked(GemmShape shape, std::span<const double> a, std::span<const double> b, std::span<double> c) {
    const auto [m, n, k] = shape;
    // A block of b is 128 KiB and one of c as much: both stay in a second-level cache.
    constexpr std::size_t rows = 64, depth = 64, columns = 256;
    std::fill(c.begin(), c.end(), 0.0);
    for (std::size_t i0 = 0; i0 < m; i0 += rows)
        for (std::size_t p0 = 0; p0 < k; p0 += depth)
            for (std::size_t j0 = 0; j0 < n; j0 += columns)
                for (std::size_t i = i0; i < std::min(m, i0 + rows); ++i)
                    for (std::size_t p = p0; p < std::min(k, p0 + depth); ++p) {
                        const double factor = a[i * k + p];
                        const double* from = &b[p * n];
                        double* to = &c[i * n];
                        const std::size_t end = std::min(n, j0 + columns);
                        for (std::size_t j = j0; j < end; ++j) to[j] += factor * from[j];
                    }
}

namespace {

constexpr std::size_t tile_rows = 4, tile_columns = 8, panel_depth = 256;

using Lanes = double __attribute__((vector_size(32)));

/// sums[4][8] += the products of four rows of a with a packed panel of b, `depth` rows of 8. Eight vectors of sums are
/// as many independent chains of multiply-adds as the two units of a core keep busy.
[[gnu::always_inline]] inline void multiply_tile(std::size_t depth, const std::array<const double*, tile_rows>& a,
                                                 const double* panel, double* sums) {
    Lanes low[tile_rows], high[tile_rows];
#pragma GCC unroll 4
    for (std::size_t r = 0; r < tile_rows; ++r) {
        std::memcpy(&low[r], sums + r * tile_columns, sizeof(Lanes));
        std::memcpy(&high[r], sums + r * tile_columns + 4, sizeof(Lanes));
    }
    for (std::size_t p = 0; p < depth; ++p) {
        Lanes b_low, b_high;
        std::memcpy(&b_low, panel + p * tile_columns, sizeof(Lanes));
        std::memcpy(&b_high, panel + p * tile_columns + 4, sizeof(Lanes));
#pragma GCC unroll 4
        for (std::size_t r = 0; r < tile_rows; ++r) {
            const double factor = a[r][p];
            low[r] += factor * b_low;
            high[r] += factor * b_high;
        }
    }
#pragma GCC unroll 4
    for (std::size_t r = 0; r < tile_rows; ++r) {
        std::memcpy(sums + r * tile_columns, &low[r], sizeof(Lanes));
        std::memcpy(sums + r * tile_columns + 4, &high[r], sizeof(Lanes));
    }
}

using MultiplyTile = void (*)(std::size_t, const std::array<const double*, tile_rows>&, const double*, double*);

void multiply_tile_plain(std::size_t depth, const std::array<const double*, tile_rows>& a, const double* panel,
                         double* sums) {
    multiply_tile(depth, a, panel, sums);
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void multiply_tile_avx2(std::size_t depth, const std::array<const double*, tile_rows>& a,
                                                    const double* panel, double* sums) {
    multiply_tile(depth, a, panel, sums);
}
#endif

MultiplyTile best_multiply_tile() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_tile_avx2;
#endif
    return multiply_tile_plain;
}

}  // namespace

void gemm_vectorised(GemmShape shape, std::span<const double> a, std::span<const double> b, std::span<double> c) {
    const auto [m, n, k] = shape;
    static const MultiplyTile multiply = best_multiply_tile();
    std::fill(c.begin(), c.end(), 0.0);
    std::array<double, panel_depth * tile_columns> panel;
    for (std::size_t p0 = 0; p0 < k; p0 += panel_depth) {
        const std::size_t depth = std::min(panel_depth, k - p0);
        for (std::size_t j0 = 0; j0 < n; j0 += tile_columns) {
            const std::size_t columns = std::min(tile_columns, n - j0);
            // 1. Pack a panel of b; columns past the end are zero.
            if (columns < tile_columns) panel.fill(0.0);
            for (std::size_t p = 0; p < depth; ++p)
                std::copy_n(&b[(p0 + p) * n + j0], columns, &panel[p * tile_columns]);
            // 2. Four rows of a at a time; past the end the last row stands in, and its sums are dropped.
            for (std::size_t i0 = 0; i0 < m; i0 += tile_rows) {
                const std::size_t rows = std::min(tile_rows, m - i0);
                std::array<const double*, tile_rows> from;
                for (std::size_t r = 0; r < tile_rows; ++r) from[r] = &a[(i0 + std::min(r, rows - 1)) * k + p0];
                std::array<double, tile_rows * tile_columns> sums{};
                multiply(depth, from, panel.data(), sums.data());
                for (std::size_t r = 0; r < rows; ++r)
                    for (std::size_t j = 0; j < columns; ++j) c[(i0 + r) * n + j0 + j] += sums[r * tile_columns + j];
            }
        }
    }
}

}  // namespace autotune
