// matmul: c = alpha * a x b, each block a tile of BLOCK_X rows and BLOCK_X * TILE_X columns
//
// a, b, c  float, row-major [m, k], [k, n], [m, n], whole tiles
// launch   grid = (n / (BLOCK_X * TILE_X), m / BLOCK_X), block = (BLOCK_X, BLOCK_Y), BLOCK_Y * TILE_Y = BLOCK_X
// source   the textbook tiling with TILE_Y x TILE_X elements a thread (Volkov & Demmel 2008)
#ifndef BLOCK_X
#define BLOCK_X 32
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 32
#endif
#ifndef TILE_X
#define TILE_X 1
#endif
#ifndef TILE_Y
#define TILE_Y 1
#endif

extern "C" __global__ void __launch_bounds__(BLOCK_X * BLOCK_Y)
matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n, int k, float alpha) {
    constexpr int width = BLOCK_X * TILE_X;
    extern __shared__ float shared[];
    float* tile_a = shared;                     // [BLOCK_X][BLOCK_X]
    float* tile_b = shared + BLOCK_X * BLOCK_X;  // [BLOCK_X][width]
    const int x = threadIdx.x, y = threadIdx.y;
    const long long row = (long long)blockIdx.y * BLOCK_X, column = (long long)blockIdx.x * width;
    float sum[TILE_Y][TILE_X] = {};
    for (int step = 0; step < k; step += BLOCK_X) {
        // 1. The block brings its tiles of a and b.
        for (int i = y; i < BLOCK_X; i += BLOCK_Y) {
            tile_a[i * BLOCK_X + x] = a[(row + i) * k + step + x];
            for (int j = 0; j < TILE_X; ++j)
                tile_b[i * width + j * BLOCK_X + x] = b[(long long)(step + i) * n + column + j * BLOCK_X + x];
        }
        __syncthreads();
        // 2. Each thread adds its products.
#pragma unroll
        for (int s = 0; s < BLOCK_X; ++s)
            for (int i = 0; i < TILE_Y; ++i) {
                const float left = tile_a[(y + i * BLOCK_Y) * BLOCK_X + s];
                for (int j = 0; j < TILE_X; ++j) sum[i][j] += left * tile_b[s * width + j * BLOCK_X + x];
            }
        __syncthreads();
    }
    for (int i = 0; i < TILE_Y; ++i)
        for (int j = 0; j < TILE_X; ++j) c[(row + y + i * BLOCK_Y) * n + column + j * BLOCK_X + x] = alpha * sum[i][j];
}
