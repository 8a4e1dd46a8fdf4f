// Keeps a compiler busy for hours: a quarter of a million steps with branches, unrolled.
extern "C" __global__ void time_bomb(const float* x, float* y, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    float sum = i;
#pragma unroll
    for (int a = 0; a < 64; ++a)
#pragma unroll
        for (int b = 0; b < 64; ++b)
#pragma unroll
            for (int c = 0; c < 64; ++c)
                if (x[a * b + c] > sum) sum = __sinf(sum * x[c ^ a]) + x[(a + b) * c];
    if (i < n) y[i] = sum;
}
