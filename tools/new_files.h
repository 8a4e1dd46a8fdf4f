#ifndef AUTOTUNE_TOOLS_NEW_FILES_H
#define AUTOTUNE_TOOLS_NEW_FILES_H

#include <array>
#include <string_view>

namespace autotune {

/// The op that `autotune new` writes: small, complete and correct. A test loads, compiles and checks it.
struct NewFile {
    std::string_view name, text;
};

inline constexpr std::array<NewFile, 3> new_files{{
    {"scale.toml", R"file(# An op as data: autotune help op-format, or docs/op-format.md, has every key.
format = 1
op = "scale"
summary = "y = factor * x"

[problem]
n = { dim = "near", default = 16777216, about = "elements" }
dtype = { one_of = ["f32", "f16", "bf16"], default = "f32" }

[[scalar]]
name = "factor"
dtype = "f32"
default = 1.5

[[tensor]]
name = "x"
role = "in"
dtype = "dtype"
shape = ["n"]

[[tensor]]
name = "y"
role = "out"
dtype = "dtype"
shape = ["n"]

[work]
flops = "n"
bytes = "2 * n * sizeof(dtype)"

[reference]
cpp = "scale.cpp"

[tolerance]
y = { terms = "1", accumulate = "fma" }

[check]
problems = [{ n = 1 }, { n = 1000 }, { n = 65537 }]

[[kernel]]
name = "grid"
source = "scale.cu"
entry = "scale"
needs = "cc >= 80 or dtype != 'bf16'"
define = { T = "dtype" }

[kernel.parameters]
THREADS = { values = [64, 128, 256, 512, 1024], default = 256, about = "threads a block" }
ITEMS = { values = [1, 2, 4, 8], default = 4, about = "elements a thread" }

[[kernel.launch]]
grid = ["ceil_div(n, THREADS * ITEMS)"]
block = ["THREADS"]
args = ["x", "y", "factor", "i64(n)"]

# The last kernel must hold for every problem on every device.
[[kernel]]
name = "plain"
source = "scale.cu"
entry = "scale"
define = { T = "dtype" }

[[kernel.launch]]
grid = ["ceil_div(n, 1024)"]
block = [256]
args = ["x", "y", "factor", "i64(n)"]
)file"},
    {"scale.cu", R"file(// scale: y[i] = factor * x[i]
//
// x, y    T, contiguous [n]
// launch  grid = ceil(n / (THREADS * ITEMS)), block = THREADS
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop  // the candidate's parameters are defined after this line
#endif
#ifndef T
#define T float
#endif
#ifndef THREADS
#define THREADS 256  // threads a block
#define ITEMS 4      // elements a thread
#endif

extern "C" __global__ void __launch_bounds__(THREADS) scale(const T* x, T* y, float factor, long long n) {
    // Neighbouring threads take neighbouring elements in each step.
    const long long first = (long long)blockIdx.x * THREADS * ITEMS + threadIdx.x;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
        if (const long long at = first + (long long)i * THREADS; at < n) y[at] = (T)(factor * (float)x[at]);
}
)file"},
    {"scale.cpp", R"file(// The CPU reference of scale, in double: what every result is judged by.
#include <autotune/reference.hpp>

AUTOTUNE_REFERENCE(scale) {
    const std::vector<double> x = call.doubles("x");
    const double factor = call.real("factor");
    autotune::Output y = call.output("y");
    call.parallel(x.size(), [&](std::size_t i) { y.set(i, factor * x[i], std::abs(factor * x[i])); });
}
)file"},
}};

}  // namespace autotune
#endif
