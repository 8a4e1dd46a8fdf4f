#ifndef AUTOTUNE_TOOLS_SELFTEST_OP_H
#define AUTOTUNE_TOOLS_SELFTEST_OP_H

#include <string_view>

namespace autotune {

// The op of `autotune selftest`: y = 2 x, as three good and three bad kernels. The good ones are references of each
// other's, since no compiler for host code is asked for.

inline constexpr std::string_view selftest_toml = R"toml(
format = 1
op = "selftest"
summary = "y = 2 x, by three good and three bad kernels"

[problem]
n = { dim = "exact", default = 1048576 }

[[tensor]]
name = "x"
role = "in"
dtype = "f32"
shape = ["n"]

[[tensor]]
name = "y"
role = "out"
dtype = "f32"
shape = ["n"]

[[tensor]]
name = "nowhere"
role = "in"
dtype = "f32"
shape = ["n"]
when = "n < 0"

[reference]
kernel = "good"

[tolerance]
y = { exact = true }

[[kernel]]
name = "vector"
source = "selftest.cu"
entry = "by_vector"
needs = "n % 4 == 0"
[[kernel.launch]]
grid = ["ceil_div(n, 1024)"]
block = [256]
args = ["x", "y", "i32(n)"]

[[kernel]]
name = "shared"
source = "selftest.cu"
entry = "by_shared"
[[kernel.launch]]
grid = ["ceil_div(n, 256)"]
block = [256]
shared = "1024"
args = ["x", "y", "i32(n)"]

[[kernel]]
name = "wrong"
source = "selftest.cu"
entry = "wrong"
[[kernel.launch]]
grid = ["ceil_div(n, 256)"]
block = [256]
args = ["x", "y", "i32(n)"]

[[kernel]]
name = "beyond"
source = "selftest.cu"
entry = "beyond"
[[kernel.launch]]
grid = ["ceil_div(n, 256)"]
block = [256]
args = ["x", "y", "i32(n)"]

[[kernel]]
name = "crash"
source = "selftest.cu"
entry = "crash"
[[kernel.launch]]
grid = ["ceil_div(n, 256)"]
block = [256]
args = ["x", "nowhere", "i32(n)"]

[[kernel]]
name = "good"
source = "selftest.cu"
entry = "good"
[[kernel.launch]]
grid = ["ceil_div(n, 256)"]
block = [256]
args = ["x", "y", "i32(n)"]
)toml";

inline constexpr std::string_view selftest_source = R"cuda(
__device__ int place() { return blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void good(const float* x, float* y, int n) {
    if (place() < n) y[place()] = 2 * x[place()];
}
extern "C" __global__ void by_vector(const float4* x, float4* y, int n) {
    if (place() < n / 4) y[place()] = make_float4(2 * x[place()].x, 2 * x[place()].y, 2 * x[place()].z, 2 * x[place()].w);
}
extern "C" __global__ void by_shared(const float* x, float* y, int n) {
    extern __shared__ float tile[];
    if (place() < n) tile[threadIdx.x] = x[place()];
    __syncthreads();
    if (place() < n) y[place()] = 2 * tile[threadIdx.x];
}
// One element of a million is wrong.
extern "C" __global__ void wrong(const float* x, float* y, int n) {
    if (place() < n) y[place()] = place() == n / 3 ? 1.0f : 2 * x[place()];
}
// One element too many is written.
extern "C" __global__ void beyond(const float* x, float* y, int n) {
    if (place() < n) y[place()] = 2 * x[place()];
    if (place() == 0) y[n] = 7;
}
// The address is an argument: the compiler removes a store to a null that it can see.
extern "C" __global__ void crash(const float* x, float* nowhere, int n) {
    if (place() < n) nowhere[place()] = x[place()];
}
)cuda";

}  // namespace autotune
#endif
