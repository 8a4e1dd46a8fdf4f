// Kernels that go wrong on purpose: y[i] = 2 * x[i] is what they should do.
//
// x, y    float [n]
// launch  grid = ceil(n / 256), block = 256
#define INDEX const int i = blockIdx.x * 256 + threadIdx.x

extern "C" __global__ void good(const float* x, float* y, int n) {
    INDEX;
    if (i < n) y[i] = 2 * x[i];
}

// Never ends; the volatile read keeps the loop from being called endless and removed.
extern "C" __global__ void hang(const float* x, float* y, int n) {
    INDEX;
    volatile const float* seen = x;
    while (seen[0] < 1e30f) {
    }
    if (i < n) y[i] = 2 * x[i];
}

// Writes where no memory is. The address is an argument: a constant one would let the compiler remove the store.
extern "C" __global__ void null_write(const float* x, long long address, int n) {
    INDEX;
    if (i < n) reinterpret_cast<float*>(address)[i] = 2 * x[i];
}

// Writes one element behind the end.
extern "C" __global__ void out_of_bounds(const float* x, float* y, int n) {
    INDEX;
    if (i < n) y[i] = 2 * x[i];
    if (i == n - 1) y[n] = 2 * x[i];
}

extern "C" __global__ void writes_nothing(const float* x, float* y, int n) {
    INDEX;
    if (n < 0) y[i] = 2 * x[i];
}

extern "C" __global__ void writes_half(const float* x, float* y, int n) {
    INDEX;
    if (i < n / 2) y[i] = 2 * x[i];
}

extern "C" __global__ void writes_nan(const float* x, float* y, int n) {
    INDEX;
    if (i < n) y[i] = i == 128 ? __int_as_float(0x7fc00000) : 2 * x[i];
}

extern "C" __global__ void writes_input(float* x, float* y, int n) {
    INDEX;
    if (i < n) y[i] = 2 * x[i];
    if (i == 7) x[i] = 0;
}

// Leaves out the last block where it is not whole.
extern "C" __global__ void ragged(const float* x, float* y, int n) {
    INDEX;
    if (i < n / 256 * 256) y[i] = 2 * x[i];
}

// Loads four floats at once from an address that is no multiple of 16, and uses all of them: the assembler splits a
// vector load of which half is unused, and its halves are aligned.
extern "C" __global__ void misaligned(const float* x, float* y, int n) {
    INDEX;
    if (i + 5 > n) return;
    float4 four;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
                 : "l"(x + i + 1));
    y[i] = four.x + four.y + four.z + four.w;
}

extern "C" __global__ void traps(const float* x, float* y, int n) {
    INDEX;
    if (i < n) y[i] = 2 * x[i];
    if (i == 0) asm volatile("trap;");
}

// Right within the tolerance, but never the same bits twice.
__device__ unsigned turn = 0;
extern "C" __global__ void not_repeatable(const float* x, float* y, int n) {
    INDEX;
    if (i < n) y[i] = 2 * x[i];
    if (i == 0) y[0] = __int_as_float(__float_as_int(y[0]) + static_cast<int>(atomicAdd(&turn, 1u) & 1u));
}

// 32 KiB of its own and, by its launch, all but 16 KiB of what a block may have.
extern "C" __global__ void too_much_shared(const float* x, float* y, int n) {
    INDEX;
    __shared__ float own[8192];
    extern __shared__ float more[];
    own[threadIdx.x] = i < n ? x[i] : 0;
    more[threadIdx.x] = own[threadIdx.x];
    __syncthreads();
    if (i < n) y[i] = own[threadIdx.x ^ 1] * 0 + 2 * more[threadIdx.x];
}
