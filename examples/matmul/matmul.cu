// matmul: c[i, j] = sum_k a[i, k] * b[k, j]
//
// a, b, c  float, row-major [n, n]
// launch   grid = (n / (block_size_x * tile_size_x), n / (block_size_y * tile_size_y)), block = (block_size_x, block_size_y)
// needs    block_size_x == block_size_y * tile_size_y; n a multiple of both tiles
// source   the shared-memory tile of the CUDA Programming Guide, with several elements of c a thread
#ifndef block_size_x
#define block_size_x 32  // threads along a row of c; also the depth of a step along k
#define block_size_y 8   // threads along a column of c
#define tile_size_x 2    // columns of c a thread
#define tile_size_y 4    // rows of c a thread
#endif

extern "C" __global__ void __launch_bounds__(block_size_x * block_size_y)
matmul(const float* a, const float* b, float* c, int n) {
    constexpr int step = block_size_x;
    constexpr int columns = block_size_x * tile_size_x;
    extern __shared__ float shared[];
    float* tile_a = shared;                // [step][step]
    float* tile_b = shared + step * step;  // [step][columns]
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * step, column = blockIdx.x * columns;

    float sum[tile_size_y][tile_size_x] = {};
    for (int k = 0; k < n; k += step) {
        // 1. The block loads its tiles of a and b; neighbouring threads load neighbouring elements.
#pragma unroll
        for (int i = 0; i < tile_size_y; ++i) {
            const int r = y + i * block_size_y;
            tile_a[r * step + x] = a[(long long)(row + r) * n + k + x];
#pragma unroll
            for (int j = 0; j < tile_size_x; ++j)
                tile_b[r * columns + x + j * block_size_x] = b[(long long)(k + r) * n + column + x + j * block_size_x];
        }
        __syncthreads();
        // 2. Each thread adds the step's products to its elements of c.
#pragma unroll 8
        for (int s = 0; s < step; ++s)
#pragma unroll
            for (int i = 0; i < tile_size_y; ++i) {
                const float left = tile_a[(y + i * block_size_y) * step + s];
#pragma unroll
                for (int j = 0; j < tile_size_x; ++j) sum[i][j] += left * tile_b[s * columns + x + j * block_size_x];
            }
        __syncthreads();
    }
    // 3. Each element of c is written once.
#pragma unroll
    for (int i = 0; i < tile_size_y; ++i)
#pragma unroll
        for (int j = 0; j < tile_size_x; ++j)
            c[(long long)(row + y + i * block_size_y) * n + column + x + j * block_size_x] = sum[i][j];
}

// The reference on the device, for sizes at which the CPU would take seconds: plain, and in double.
// block = (32, 32), one element a thread, n a multiple of 32.
extern "C" __global__ void matmul_reference(const float* a, const float* b, double* value, double* magnitude, int n) {
    __shared__ float tile_a[32][32], tile_b[32][33];
    const int x = threadIdx.x, y = threadIdx.y;
    const long long row = blockIdx.y * 32ll + y, column = blockIdx.x * 32ll + x;
    double sum = 0, size = 0;
    for (int k = 0; k < n; k += 32) {
        tile_a[y][x] = a[row * n + k + x];
        tile_b[y][x] = b[(long long)(k + y) * n + column];
        __syncthreads();
        for (int s = 0; s < 32; ++s) {
            const double product = (double)tile_a[y][s] * (double)tile_b[s][x];
            sum += product;
            size += fabs(product);
        }
        __syncthreads();
    }
    value[row * n + column] = sum;
    magnitude[row * n + column] = size;
}
