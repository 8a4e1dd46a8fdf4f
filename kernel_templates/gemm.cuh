// gemm: what all gemm kernels share: how c is finished, and in which order blocks take its tiles.
#ifndef AUTOTUNE_GEMM_CUH
#define AUTOTUNE_GEMM_CUH

#include "common.cuh"

// ---- Activations. A relu passes NaN on; gelu is the exact form, x/2 * (1 + erf(x / sqrt 2)), not tanh's.

__device__ __forceinline__ float activate_none(float x) { return x; }
__device__ __forceinline__ float activate_relu(float x) { return x < 0.0f ? 0.0f : x; }
__device__ __forceinline__ float activate_gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }

__device__ __forceinline__ double activate_none(double x) { return x; }
__device__ __forceinline__ double activate_relu(double x) { return x < 0.0 ? 0.0 : x; }
__device__ __forceinline__ double activate_gelu(double x) { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752440)); }

/// The activation whose bare name is a macro's value: ACTIVATION(ACT)(x).
#define ACTIVATION_NAMED(act) activate_##act
#define ACTIVATION(act) ACTIVATION_NAMED(act)

// ---- Tile order

struct TilePosition {
    int row, col;  // of c, counted in tiles
};

/// Tile `id` when tiles go down GROUP rows before the next column: the blocks that run together then share rows of
/// a and columns of b in L2. The idea is that of Triton's matrix multiplication tutorial.
template <int GROUP>
__device__ __forceinline__ TilePosition grouped_tile(unsigned id, unsigned tile_rows, unsigned tile_cols) {
    const unsigned group = id / (GROUP * tile_cols);
    const unsigned within = id - group * (GROUP * tile_cols);
    const unsigned rest = tile_rows - group * GROUP;
    const unsigned rows = rest < GROUP ? rest : GROUP;
    return {static_cast<int>(group * GROUP + within % rows), static_cast<int>(within / rows)};
}

#endif
