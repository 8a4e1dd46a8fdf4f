// Needs more registers than its launch bound leaves it, so that some spill.
extern "C" __global__ void __launch_bounds__(1024, 2) spills(const float* x, float* y, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    float held[96];
#pragma unroll
    for (int k = 0; k < 96; ++k) held[k] = x[(i + k * 37) % n];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 96; ++k) sum += held[k] * held[95 - k] * held[(k * 7) % 96];
    if (i < n) y[i] = 2 * x[i] + sum * 0;
}
