// Asks the compiler for more memory than it gets, at once and on any machine: a string is kept as long as its array.
__device__ char padding[1ull << 33] = "8 GiB";
extern "C" __global__ void memory_bomb(const float* x, float* y, int n) { y[0] = x[0] + padding[n]; }
