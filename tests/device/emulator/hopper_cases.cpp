// Goal: what came with sm_90 does what plain C++ does: clusters and distributed shared memory, mbarriers, bulk copies
// and tensor maps, wgmma. Method: small real kernels, compiled with NVRTC.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "tests/device/emulator/hopper_kernels.h"
#include "tests/device/emulator/kernel_cases.h"

namespace autotune {
namespace hopper {
namespace {

void reduce_through_each_others_shared_memory(const Ground& ground) {
    KernelOn<Device> kernel = ground.load(compiled(with_covers(R"(
#include <cooperative_groups.h>
extern "C" __global__ void kernel(const float* x, float* y) {
    namespace cg = cooperative_groups;
    cg::cluster_group cluster = cg::this_cluster();
    __shared__ float part[64];
    part[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    cluster.sync();
    float sum = 0;
    for (unsigned k = 0; k < cluster.num_blocks(); ++k) sum += far(map(part + threadIdx.x, k));
    for (unsigned k = 0; k < cluster.num_blocks(); ++k) sum += 1000 * *cluster.map_shared_rank(part + threadIdx.x, k);
    cluster.sync();
    if (threadIdx.x < 4) atomicAdd(cluster.map_shared_rank(part + 63 - threadIdx.x, 0), 1.0f);
    cluster.sync();
    y[blockIdx.x * 64 + threadIdx.x] = sum + (cluster.block_rank() == 0 ? 0.25f * (part[threadIdx.x] - x[blockIdx.x * 64 + threadIdx.x]) : 0);
})"),
                                                   "sm_90a"));
    const std::vector<float> x = floats(8 * 64);
    const std::uint32_t in = kernel.buffer(x), out = kernel.empty(8 * 64 * 4);
    kernel.launch(launch_of({8}, {64}, {4}, {BufferArgument{in}, BufferArgument{out}}));
    const std::vector<float> y = kernel.contents<float>(out);
    for (std::size_t i = 0; i < y.size(); ++i) {
        float sum = 0;
        for (std::size_t k = 0; k < 4; ++k) sum += x[i / 256 * 256 + 64 * k + i % 64];
        EXPECT_EQ(y[i], 1001 * sum + (i / 64 % 4 == 0 && i % 64 >= 60 ? 1.0f : 0.0f)) << i;
    }
}

void have_their_shape_and_ranks(const Ground& ground) {
    KernelOn<Device> kernel = ground.load(compiled(R"(
extern "C" __global__ void kernel(unsigned* y) {
    unsigned id, rank, x, n;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(id));
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(x));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
    y[blockIdx.y * gridDim.x + blockIdx.x] = id * 1000 + rank * 100 + x * 10 + n;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) fixed(unsigned* y) {
    unsigned rank; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    y[blockIdx.x] = rank;
})",
                                                   "sm_90a"));
    const std::uint32_t out = kernel.empty(16 * 4);
    kernel.launch(launch_of({4, 4}, {1}, {2, 2}, {BufferArgument{out}}));
    const std::vector<unsigned> y = kernel.contents<unsigned>(out);
    for (unsigned i = 0; i < 16; ++i) {
        const unsigned x = i % 4, row = i / 4;
        EXPECT_EQ(y[i], x / 2 * 1000 + (x % 2 + 2 * (row % 2)) * 100 + row % 2 * 10 + 4) << i;
    }
    kernel.run("fixed", {4}, {1}, {BufferArgument{out}});
    EXPECT_EQ(kernel.contents<unsigned>(out)[3], 1u);
    EXPECT_EQ(kernel.contents<unsigned>(out)[2], 0u);
}

void move_the_same_with_any_hint_to_l2(const Ground& ground) {
    KernelOn<Device> kernel = ground.load(compiled(R"(
extern "C" __global__ void kernel(const uint4* x, uint4* y) {
    __shared__ alignas(16) uint4 whole[64], parts[64];
    unsigned long long last, mixed, ranged, word;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
    asm("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(mixed));
    asm("createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %0, [%1], 1024, 2048;"
        : "=l"(ranged) : "l"(x));
    const unsigned i = threadIdx.x, size = i < 32 ? 16 : 4;
    const auto at = [](const uint4* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); };
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;"
                 :: "r"(at(whole + i)), "l"(x + i), "l"(last) : "memory");
    asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;"
                 :: "r"(at(parts + i)), "l"(x + i), "r"(size), "l"(mixed) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    uint4 v;
    asm volatile("{\n.reg .pred has;\nsetp.lt.u32 has, %5, 1000;\n"
                 "@has ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %6;\n}"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(x + 64 + i), "r"(i), "l"(last) : "memory");
    asm volatile("ld.global.L2::cache_hint.u64 %0, [%1], %2;"
                 : "=l"(word) : "l"(x + 128 + i), "l"(ranged) : "memory");
    v.x += whole[i].w + parts[i].x;
    v.y ^= whole[i].z ^ parts[i].y;
    v.z += static_cast<unsigned>(word);
    v.w ^= static_cast<unsigned>(word >> 32);
    asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1, %2, %3, %4}, %5;"
                 :: "l"(y + i), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "l"(mixed) : "memory");
})",
                                                   "sm_90"));
    std::vector<std::uint32_t> x(4 * 192);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint32_t>(i * 2654435761u + 1);
    const std::uint32_t in = kernel.buffer(x), out = kernel.empty(64 * 16);
    kernel.launch(launch_of({1}, {64}, {}, {BufferArgument{in}, BufferArgument{out}}));
    const std::vector<std::uint32_t> y = kernel.contents<std::uint32_t>(out);
    for (std::size_t i = 0; i < 64; ++i) {
        EXPECT_EQ(y[4 * i], x[256 + 4 * i] + x[4 * i + 3] + x[4 * i]) << i;
        EXPECT_EQ(y[4 * i + 1], x[256 + 4 * i + 1] ^ x[4 * i + 2] ^ (i < 32 ? x[4 * i + 1] : 0)) << i;
        EXPECT_EQ(y[4 * i + 2], x[256 + 4 * i + 2] + x[512 + 4 * i]) << i;
        EXPECT_EQ(y[4 * i + 3], x[256 + 4 * i + 3] ^ x[512 + 4 * i + 1]) << i;
    }
}

void feed_a_ring_of_tiles(const Ground& ground) {
    KernelOn<Device> kernel = ground.load(compiled(with_covers(ring), "sm_90a"));
    constexpr std::size_t rows = 37, cols = 76;
    const std::vector<float> x = floats(rows * cols);
    const std::uint32_t in = kernel.buffer(x), out = kernel.empty(rows * cols * 4);
    const auto map = [&](std::uint32_t buffer) { return tensor(buffer, {cols, rows}, {cols * 4}, {32, 16}); };
    kernel.launch(launch_of({1}, {96}, {}, {map(in), map(out), value(int{rows}), value(int{cols})}));
    const std::vector<float> y = kernel.contents<float>(out);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 2 * x[i] + 1) << i;
}

// Swizzles as the PTX manual draws them: rows at the swizzle's pitch, 16-byte pieces exchanged by the row's number.
void swizzle_and_fill_with_zero(const Ground& ground) {
    KernelOn<Device> kernel = ground.load(compiled(with_covers(R"(
extern "C" __global__ void kernel(const __grid_constant__ TensorMap in, float* y, int x0, int y0, int z0, int bytes, int taken) {
    extern __shared__ __align__(1024) float tile[];
    __shared__ alignas(8) u64 full;
    if (threadIdx.x == 0) { init(&full, 1); init_done(); }
    __syncthreads();
    if (threadIdx.x == 0) { load3(tile, &in, x0, y0, z0, &full); expect(&full, bytes); }
    wait(&full, 0);
    for (int i = threadIdx.x; i < taken / 4; i += 32) y[i] = tile[i];
})"),
                                                   "sm_90a"));
    constexpr int nx = 40, ny = 9, nz = 3;
    const std::vector<float> x = floats(nx * ny * nz);
    const std::uint32_t in = kernel.buffer(x);
    for (const int swizzle : {0, 32, 64, 128}) {
        const int inner = swizzle ? swizzle / 4 : 20, height = 8, depth = 2, bytes = inner * height * depth * 4;
        const std::uint32_t out = kernel.empty(static_cast<std::uint64_t>(bytes));
        const int from[3] = {-4, 3, 2};
        kernel.launch(
            launch_of({1}, {32}, {},
                      {tensor(in, {nx, ny, nz}, {nx * 4, nx * ny * 4},
                              {static_cast<std::uint32_t>(inner), static_cast<std::uint32_t>(height),
                               static_cast<std::uint32_t>(depth)},
                              static_cast<std::uint32_t>(swizzle)),
                       BufferArgument{out}, value(from[0]), value(from[1]), value(from[2]), value(bytes), value(bytes)},
                      32768));
        const std::vector<float> y = kernel.contents<float>(out);
        for (int d = 0; d < depth; ++d)
            for (int h = 0; h < height; ++h)
                for (int k = 0; k < inner; ++k) {
                    const int row = d * height + h, gx = from[0] + k, gy = from[1] + h, gz = from[2] + d;
                    const bool inside = gx >= 0 && gx < nx && gy < ny && gz < nz;
                    int piece = k / 4;  // of 16 bytes
                    if (swizzle == 128) piece ^= row % 8;
                    if (swizzle == 64) piece ^= row / 2 % 4;
                    if (swizzle == 32) piece ^= row / 4 % 2;
                    const float want = inside ? x[static_cast<std::size_t>((gz * ny + gy) * nx + gx)] : 0.0f;
                    ASSERT_EQ(y[static_cast<std::size_t>(row * inner + piece * 4 + k % 4)], want)
                        << swizzle << ": " << d << " " << h << " " << k;
                }
    }
}

void send_one_tile_to_all_blocks_and_add_up(const Ground& ground) {
    KernelOn<Device> kernel = ground.load(compiled(with_covers(R"(
extern "C" __global__ void kernel(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap sum, float* y) {
    __shared__ alignas(1024) float tile[2][8 * 32];
    __shared__ alignas(8) u64 full;
    if (threadIdx.x == 0) { init(&full, 1); init_done(); }
    meet();
    if (threadIdx.x == 0) { expect(&full, 2 * 8 * 32 * 4); load2_all(tile[rank()], &in, 0, 8 * rank(), &full, 3); }
    wait(&full, 0);
    for (int i = threadIdx.x; i < 512; i += 32) y[rank() * 512 + i] = tile[0][i];
    __syncwarp();
    if (threadIdx.x == 0) { add2(&sum, 0, 0, tile[0]); commit(); wait_read(); }
    meet();
})"),
                                                   "sm_90a"));
    const std::vector<float> x = floats(512);
    const std::uint32_t in = kernel.buffer(x), sums = kernel.buffer(std::vector<float>(256, 1.0f)),
                        out = kernel.empty(1024 * 4);
    kernel.launch(
        launch_of({2}, {32}, {2},
                  {tensor(in, {32, 16}, {128}, {32, 8}), tensor(sums, {32, 8}, {128}, {32, 8}), BufferArgument{out}}));
    const std::vector<float> y = kernel.contents<float>(out), s = kernel.contents<float>(sums);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x[i % 512]) << i;
    for (std::size_t i = 0; i < s.size(); ++i) ASSERT_EQ(s[i], 1 + 2 * x[i]) << i;
}

void count_threads_bytes_and_phases(const Ground& ground) {
    KernelOn<Device> kernel = ground.load(compiled(with_covers(R"(
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ alignas(16) int data[64];
    __shared__ alignas(8) u64 all, full;
    const int i = threadIdx.x;
    y += 64 * blockIdx.x;
    if (i == 0) { init(&all, 64); init(&full, 1); init_done(); }
    __syncthreads();
    y[i] = ready(&all, 1) + 2 * ready(&all, 0);  // fresh: that before it counts as over; times out where all wait
    u64 state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at(&all)) : "memory");
    unsigned over = 0;
    while (!over) asm volatile("{.reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(over) : "r"(at(&all)), "l"(state) : "memory");
    if (i == 0) { expect(&full, 256); load(data, x, 128, &full); load(data + 32, x + 32, 128, &full); }
    wait(&full, 0);
    y[i] += 10 * data[63 - i];
    arrive(&all);
    wait(&all, 1);
    y[i] += 1000 * (ready(&all, 1) + 2 * ready(&full, 0));
})"),
                                                   "sm_90a"));
    std::vector<int> x(64);
    std::iota(x.begin(), x.end(), 0);
    const std::uint32_t in = kernel.buffer(x), out = kernel.empty(512);
    kernel.launch(launch_of({2}, {64}, {}, {BufferArgument{in}, BufferArgument{out}}));
    const std::vector<int> y = kernel.contents<int>(out);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], 1 + 10 * (63 - static_cast<int>(i % 64)) + 3000) << i;
}

struct Product {
    int span;  ///< bytes of the swizzle; 16: none
    bool turned_a, turned_b, registers;
    DType dtype;
};

std::string name_of(const Product& one) {
    return "WgmmaSpan" + std::to_string(one.span) + (one.turned_a ? "AByColumns" : "") +
           (one.turned_b ? "BByRows" : "") + (one.registers ? "AInRegisters" : "") +
           (one.dtype == DType::f16 ? "F16" : "Bf16");
}

std::uint16_t small_float(float x, DType dtype) {  // of small whole numbers
    if (dtype == DType::bf16) return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
    if (x == 0) return 0;
    int exponent = 0;
    const float fraction = std::frexp(std::fabs(x), &exponent);
    return static_cast<std::uint16_t>((x < 0 ? 0x8000 : 0) | (exponent + 14) << 10 |
                                      (static_cast<int>(fraction * 2048) & 0x3ff));
}

void multiply_as_plain_loops_do(const Ground& ground, const Product& one) {
    const std::string head = "#define SPAN " + std::to_string(one.span) + "\n#define TURNED_A " +
                             (one.turned_a ? "1" : "0") + "\n#define TURNED_B " + (one.turned_b ? "1" : "0") +
                             "\n#define TYPE " + (one.dtype == DType::f16 ? "\"f16\"" : "\"bf16\"") + "\n" +
                             (one.registers ? "#define FROM_REGISTERS\n" : "");
    KernelOn<Device> kernel = ground.load(compiled(head + covers + product, "sm_90a"));
    std::vector<std::uint16_t> a(4096), b(4096);
    std::vector<float> x(4096), y(4096);  // x: m by k; y: k by n
    for (std::size_t i = 0; i < 4096; ++i) {
        x[i] = static_cast<float>(static_cast<int>(i * 37 % 17) - 8);
        y[i] = static_cast<float>(static_cast<int>(i * 29 % 13) - 6);
        a[one.turned_a ? i % 64 * 64 + i / 64 : i] = small_float(x[i], one.dtype);
        b[one.turned_b ? i : i % 64 * 64 + i / 64] = small_float(y[i], one.dtype);
    }
    const std::uint32_t first = kernel.buffer(a), second = kernel.buffer(b), out = kernel.empty(4096 * 4);
    const auto map = [&](std::uint32_t buffer) {
        return tensor(buffer, {64, 64}, {128}, {static_cast<std::uint32_t>(one.span / 2), 64},
                      one.span == 16 ? 0u : static_cast<std::uint32_t>(one.span), one.dtype);
    };
    kernel.launch(launch_of({1}, {128}, {}, {map(first), map(second), BufferArgument{out}}));
    const std::vector<float> c = kernel.contents<float>(out);
    for (std::size_t i = 0; i < 64; ++i)
        for (std::size_t j = 0; j < 64; ++j) {
            float sum = 0;
            for (std::size_t k = 0; k < 64; ++k) sum += x[64 * i + k] * y[64 * k + j];
            ASSERT_EQ(c[64 * i + j], sum) << i << ", " << j;
        }
}

std::vector<Product> products() {
    std::vector<Product> all;
    for (const int span : {16, 32, 64, 128})
        for (const bool turned_b : {false, true}) {
            for (const bool turned_a : {false, true})
                all.push_back({span, turned_a, turned_b, false, span == 64 ? DType::f16 : DType::bf16});
            all.push_back({span, false, turned_b, true, span == 32 ? DType::f16 : DType::bf16});
        }
    return all;
}

}  // namespace
}  // namespace hopper

std::vector<KernelCase> hopper_cases() {
    using namespace hopper;
    std::vector<KernelCase> all{
        {"ClustersReduceThroughEachOthersSharedMemory", reduce_through_each_others_shared_memory},
        {"ClustersHaveTheirShapeAndRanksFromTheKernelOrTheLaunch", have_their_shape_and_ranks},
        {"HintsToL2MoveTheSame", move_the_same_with_any_hint_to_l2},
        {"TensorMapsFeedARingOfTilesAndTakeThemBack", feed_a_ring_of_tiles},
        {"TensorMapsSwizzleFillWithZeroAndReachAllDimensions", swizzle_and_fill_with_zero},
        {"TensorMapsSendOneTileToAllBlocksOfAClusterAndAddUp", send_one_tile_to_all_blocks_and_add_up},
        {"PhaseBarriersCountThreadsBytesAndPhases", count_threads_bytes_and_phases},
    };
    for (const Product& one : products())
        all.push_back({name_of(one), [one](const Ground& ground) { multiply_as_plain_loops_do(ground, one); }});
    return all;
}

}  // namespace autotune
