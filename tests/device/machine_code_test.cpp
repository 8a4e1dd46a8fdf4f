// Goal: the counts of machine code are those of the kernel, for every capability that they are told for.
// Method: made-up instructions, and cubins of a kernel that has each kind.
#include "device/machine_code.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "autotune/error.h"
#include "tests/device/emulator/kernel.h"

namespace autotune {
namespace {

std::uint32_t count(const CodeCounts& counts, CodeKind kind) { return counts[static_cast<std::size_t>(kind)]; }

TEST(MachineCode, IsCountedBySixteenBytes) {
    std::vector<std::byte> code(3 * 16 + 7);
    const std::uint16_t low[] = {0x7223, 0x7623, 0x7918};  // FFMA of registers, FFMA of a constant, NOP
    for (std::size_t i = 0; i < 3; ++i) std::memcpy(code.data() + 16 * i, &low[i], 2);
    const CodeCounts counts = count_machine_code(code);
    EXPECT_EQ(count(counts, CodeKind::fp32), 2u);
    std::uint32_t all = 0;
    for (const std::uint32_t one : counts) all += one;
    EXPECT_EQ(all, 2u) << "padding, and what is no whole instruction, is left out";
    EXPECT_EQ(count_machine_code({}), CodeCounts{});
}

class MachineCodeOf : public testing::TestWithParam<const char*> {};

TEST_P(MachineCodeOf, AKernelHasWhatItsSourceHas) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    const std::string arch = GetParam();
    const Artefact artefact = compiled(R"(
#include <cuda_fp16.h>
__constant__ float table[64];
extern "C" __global__ void kernel(float* y, const float* x, __half2* h, double* d, int n) {
    __shared__ float tile[256];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    float v = tile[threadIdx.x ^ 1];
    v = fmaf(v, v, 1.5f) * table[n & 63];
    v += __shfl_xor_sync(~0u, v, 1);
    v = __expf(v);
    h[threadIdx.x] = __hfma2(h[threadIdx.x], h[threadIdx.x], h[threadIdx.x]);
    d[threadIdx.x] = fma(d[threadIdx.x], 3.0, 1.0);
    y[threadIdx.x] = v + (float)(int)v;
})",
                                       arch);
    const std::vector<KernelCode> kernels = count_kernels(artefact.cubin);
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].symbol, "kernel");
    for (const CodeKind kind :
         {CodeKind::fp32, CodeKind::half, CodeKind::fp64, CodeKind::special, CodeKind::convert, CodeKind::shared_load,
          CodeKind::shared_store, CodeKind::global_load, CodeKind::global_store, CodeKind::shuffle, CodeKind::integer,
          CodeKind::branch})
        EXPECT_GE(count(kernels[0].counts, kind), 1u) << code_kind_names[static_cast<std::size_t>(kind)];
    for (const CodeKind kind : {CodeKind::tensor, CodeKind::local, CodeKind::copy_async})
        EXPECT_EQ(count(kernels[0].counts, kind), 0u) << code_kind_names[static_cast<std::size_t>(kind)];
}

TEST_P(MachineCodeOf, ProductsOfFragmentsAreTensorCores) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    const Artefact artefact = compiled(R"(
#include <mma.h>
extern "C" __global__ void kernel(float* y, const __half* x) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> a;
    fragment<matrix_b, 16, 16, 16, __half, col_major> b;
    fragment<accumulator, 16, 16, 16, float> c;
    fill_fragment(c, 0.0f);
    load_matrix_sync(a, x, 16);
    load_matrix_sync(b, x, 16);
    mma_sync(c, a, b, c);
    store_matrix_sync(y, c, 16, mem_row_major);
})",
                                       GetParam());
    EXPECT_GE(count(count_kernels(artefact.cubin).at(0).counts, CodeKind::tensor), 2u);
}

INSTANTIATE_TEST_SUITE_P(EachCapability, MachineCodeOf, testing::Values("sm_75", "sm_80", "sm_86", "sm_89", "sm_90"));

TEST(MachineCode, OfWhatIsNoCubinIsRefused) {
    const std::string text = "no cubin";
    EXPECT_THROW(count_kernels(std::as_bytes(std::span{text})), Error);
}

}  // namespace
}  // namespace autotune
