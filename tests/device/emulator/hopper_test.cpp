// Goal: what came with sm_90: clusters and distributed shared memory, mbarriers, bulk copies and tensor maps, wgmma.
// Method: small real kernels, compiled with NVRTC, against plain C++; then one kernel a fault, whose faulty line
// carries the comment `// here`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <sstream>

#include "tests/device/emulator/kernel.h"

namespace autotune {
namespace {

using Kind = DeviceFault::Kind;
using testing::ContainsRegex;
using testing::HasSubstr;

/// What kernels here share: thin covers of single instructions.
const char* const covers = R"(
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
typedef unsigned long long u64;
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64* b, unsigned n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
__device__ void inval(u64* b) { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at(b)) : "memory"); }
__device__ void arrive(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory"); }
__device__ void expect(u64* b, unsigned n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
__device__ bool ready(u64* b, unsigned parity) { unsigned r; asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(r) : "r"(at(b)), "r"(parity) : "memory"); return r; }
__device__ void wait(u64* b, unsigned parity) { while (!ready(b, parity)) {} }
__device__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void load(void* to, const void* from, unsigned n, u64* b) { asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(at(to)), "l"(from), "r"(n), "r"(at(b)) : "memory"); }
__device__ void store(void* to, const void* from, unsigned n) { asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(to), "r"(at(from)), "r"(n) : "memory"); }
__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ void wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ void load2(void* to, const TensorMap* m, int x, int y, u64* b) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(at(to)), "l"(m), "r"(x), "r"(y), "r"(at(b)) : "memory"); }
__device__ void load3(void* to, const TensorMap* m, int x, int y, int z, u64* b) { asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" :: "r"(at(to)), "l"(m), "r"(x), "r"(y), "r"(z), "r"(at(b)) : "memory"); }
__device__ void load2_all(void* to, const TensorMap* m, int x, int y, u64* b, unsigned short blocks) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" :: "r"(at(to)), "l"(m), "r"(x), "r"(y), "r"(at(b)), "h"(blocks) : "memory"); }
__device__ void store2(const TensorMap* m, int x, int y, const void* from) { asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" :: "l"(m), "r"(x), "r"(y), "r"(at(from)) : "memory"); }
__device__ void add2(const TensorMap* m, int x, int y, const void* from) { asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];" :: "l"(m), "r"(x), "r"(y), "r"(at(from)) : "memory"); }
__device__ unsigned rank() { unsigned r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ unsigned map(const void* p, unsigned rank) { unsigned r; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(at(p)), "r"(rank)); return r; }
__device__ float far(unsigned p) { float r; asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(r) : "r"(p) : "memory"); return r; }
__device__ void meet() { asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }
)";

std::string with_covers(const std::string& kernel) { return covers + kernel; }

std::vector<float> floats(std::size_t count) {
    std::vector<float> x(count);
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i * 37 % 101) - 50;
    return x;
}

Launch launch_of(Dim3 grid, Dim3 block, Dim3 cluster, std::vector<Argument> arguments, std::uint32_t shared = 0) {
    Launch launch;
    launch.entry = "kernel";
    launch.grid = grid;
    launch.block = block;
    launch.cluster = cluster;
    launch.shared_bytes = shared;
    launch.arguments = std::move(arguments);
    return launch;
}

TEST(Clusters, ReduceThroughEachOthersSharedMemory) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    Kernel kernel{compiled(with_covers(R"(
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
                           "sm_90a"),
                  "sm_90"};
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

TEST(Clusters, HaveTheirShapeAndRanksFromTheKernelOrTheLaunch) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    Kernel kernel{compiled(R"(
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
                           "sm_90a"),
                  "sm_90"};
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
    const auto trouble = [&](Dim3 grid, Dim3 cluster) {
        try {
            kernel.launch(launch_of(grid, {1}, cluster, {BufferArgument{out}}));
            return std::string{"ran"};
        } catch (const DeviceFailure& failure) {
            return std::string{failure.what()};
        }
    };
    EXPECT_THAT(trouble({3}, {2}), HasSubstr("no multiple of its cluster"));
    EXPECT_THAT(trouble({32}, {32}), HasSubstr("clusters of 32 blocks"));
}

/// A ring of tiles that one warp loads and the others scale, with a ragged edge in both dimensions.
const char* const ring = R"(
extern "C" __global__ void kernel(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out, int rows, int cols) {
    __shared__ alignas(1024) float tile[3][16 * 32];
    __shared__ alignas(8) u64 full[3], empty[3];
    if (threadIdx.x == 0) {
        for (int i = 0; i < 3; ++i) { init(full + i, 1); init(empty + i, 64); }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int across = (cols + 31) / 32, tiles = across * ((rows + 15) / 16);
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0)
            for (int t = 0; t < tiles; ++t) {
                const int slot = t % 3, turn = t / 3;
                wait(empty + slot, (turn & 1) ^ 1);
                expect(full + slot, 16 * 32 * 4);
                load2(tile[slot], &in, t % across * 32, t / across * 16, full + slot);
            }
    } else {
        const int i = threadIdx.x - 32;
        for (int t = 0; t < tiles; ++t) {
            const int slot = t % 3, turn = t / 3;
            wait(full + slot, turn & 1);
            for (int k = i; k < 16 * 32; k += 64) tile[slot][k] = tile[slot][k] * 2 + 1;
            fence_async();
            asm volatile("bar.sync 1, 64;" ::: "memory");
            if (i == 0) { store2(&out, t % across * 32, t / across * 16, tile[slot]); commit(); wait_read(); }
            asm volatile("bar.sync 1, 64;" ::: "memory");
            arrive(empty + slot);
        }
    }
})";

TensorMapArgument tensor(std::uint32_t buffer, std::vector<std::uint64_t> extents, std::vector<std::uint64_t> strides,
                         std::vector<std::uint32_t> box, std::uint32_t swizzle = 0, DType dtype = DType::f32) {
    TensorMapArgument map;
    map.buffer = buffer;
    map.dtype = dtype;
    map.extents = std::move(extents);
    map.strides_bytes = std::move(strides);
    map.box = std::move(box);
    map.swizzle_bytes = swizzle;
    return map;
}

TEST(TensorMaps, FeedARingOfTilesAndTakeThemBack) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    Kernel kernel{compiled(with_covers(ring), "sm_90a"), "sm_90"};
    constexpr std::size_t rows = 37, cols = 76;
    const std::vector<float> x = floats(rows * cols);
    const std::uint32_t in = kernel.buffer(x), out = kernel.empty(rows * cols * 4);
    const auto map = [&](std::uint32_t buffer) { return tensor(buffer, {cols, rows}, {cols * 4}, {32, 16}); };
    kernel.launch(launch_of({1}, {96}, {}, {map(in), map(out), value(int{rows}), value(int{cols})}));
    const std::vector<float> y = kernel.contents<float>(out);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 2 * x[i] + 1) << i;
}

// Swizzles as the PTX manual draws them: rows at the swizzle's pitch, 16-byte pieces exchanged by the row's number.
TEST(TensorMaps, SwizzleFillWithZeroAndReachAllDimensions) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    Kernel kernel{compiled(with_covers(R"(
extern "C" __global__ void kernel(const __grid_constant__ TensorMap in, float* y, int x0, int y0, int z0, int bytes, int taken) {
    extern __shared__ __align__(1024) float tile[];
    __shared__ alignas(8) u64 full;
    if (threadIdx.x == 0) { init(&full, 1); }
    __syncthreads();
    if (threadIdx.x == 0) { load3(tile, &in, x0, y0, z0, &full); expect(&full, bytes); }
    wait(&full, 0);
    for (int i = threadIdx.x; i < taken / 4; i += 32) y[i] = tile[i];
})"),
                           "sm_90a"),
                  "sm_90"};
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

TEST(TensorMaps, SendOneTileToAllBlocksOfAClusterAndAddUp) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    Kernel kernel{compiled(with_covers(R"(
extern "C" __global__ void kernel(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap sum, float* y) {
    __shared__ alignas(1024) float tile[2][8 * 32];
    __shared__ alignas(8) u64 full;
    if (threadIdx.x == 0) init(&full, 1);
    meet();
    if (threadIdx.x == 0) { expect(&full, 2 * 8 * 32 * 4); load2_all(tile[rank()], &in, 0, 8 * rank(), &full, 3); }
    wait(&full, 0);
    for (int i = threadIdx.x; i < 512; i += 32) y[rank() * 512 + i] = tile[0][i];
    __syncwarp();
    if (threadIdx.x == 0) { add2(&sum, 0, 0, tile[0]); commit(); wait_read(); }
    meet();
})"),
                           "sm_90a"),
                  "sm_90"};
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

TEST(TensorMaps, AreRefusedWhereTheDriverWould) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    Kernel kernel{compiled(with_covers(ring), "sm_90a"), "sm_90"};
    const std::uint32_t x = kernel.buffer(floats(1024));
    const auto trouble = [&](const TensorMapArgument& map) {
        try {
            kernel.launch(launch_of({1}, {96}, {}, {map, map, value(1), value(1)}));
            return std::string{"ran"};
        } catch (const DeviceFailure& failure) {
            EXPECT_EQ(failure.fault().kind, Kind::launch_failed);
            return std::string{failure.what()};
        }
    };
    EXPECT_THAT(trouble(tensor(x, {32, 8}, {100}, {32, 8})), HasSubstr("stride of 100 bytes"));
    EXPECT_THAT(trouble(tensor(x, {32, 8}, {128}, {512, 8})), HasSubstr("512 elements in dimension 0"));
    EXPECT_THAT(trouble(tensor(x, {32, 0}, {128}, {32, 8})), HasSubstr("extent 1 is 0"));
    EXPECT_THAT(trouble(tensor(x, {32, 8}, {128}, {64, 8}, 128)), HasSubstr("go beyond the swizzle's 128"));
    EXPECT_THAT(trouble(tensor(x, {32, 8, 8, 8}, {128, 1024, 8192}, {32, 256, 256, 256})),
                HasSubstr("beyond any shared memory"));
    EXPECT_THAT(trouble(tensor(x, {32, 8}, {128}, {3, 8})), HasSubstr("no multiple of 16"));
    EXPECT_THAT(trouble(tensor(x, {32, 8}, {128}, {32, 8}, 48)), HasSubstr("no swizzle of 48 bytes"));
}

TEST(PhaseBarriers, CountThreadsBytesAndPhases) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    Kernel kernel{compiled(with_covers(R"(
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ alignas(16) int data[64];
    __shared__ alignas(8) u64 all, full;
    const int i = threadIdx.x;
    if (i == 0) { init(&all, 64); init(&full, 1); }
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
                           "sm_90a"),
                  "sm_90"};
    std::vector<int> x(64);
    std::iota(x.begin(), x.end(), 0);
    const std::uint32_t in = kernel.buffer(x), out = kernel.empty(256);
    kernel.launch(launch_of({2}, {64}, {}, {BufferArgument{in}, BufferArgument{out}}));
    const std::vector<int> y = kernel.contents<int>(out);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(y[static_cast<std::size_t>(i)], 1 + 10 * (63 - i) + 3000) << i;
}

struct Faulty {
    const char* name;
    Kind kind;
    const char* words;
    const char* body;  ///< of kernel(float* x, float* y), 64 elements each; 64 threads; clusters of 2
};

const Faulty faults[] = {
    {"NeverInitialised", Kind::barrier_misuse, "no mbarrier that was initialised",
     "__shared__ alignas(8) u64 b;\narrive(&b);"},
    {"InitialisedTwice", Kind::barrier_misuse, "initialised again",
     "__shared__ alignas(8) u64 b;\nif (i == 0) { init(&b, 1); init(&b, 1); }"},
    {"TooManyArrivals", Kind::barrier_misuse, "arrive at an mbarrier that expects 0 more",
     "__shared__ alignas(8) u64 b;\nif (i == 0) { init(&b, 2); expect(&b, 16); arrive(&b); arrive(&b); }"},
    {"MisalignedBarrier", Kind::invalid_access, "misaligned",
     "__shared__ alignas(8) char b[32];\nif (i == 0) init((u64*)(b + 4), 1);"},
    {"PlainReadOfABarrier", Kind::invalid_access, "touches an mbarrier",
     "__shared__ alignas(8) volatile u64 b;\nif (i == 0) { init((u64*)&b, 1); y[0] = b; }"},
    {"NeverArrives", Kind::deadlock, "waits for 1 more arrivals and 0 more bytes",
     "__shared__ alignas(8) u64 b;\nif (i == 0) init(&b, 1);\n__syncthreads();\nwait(&b, 0);"},
    {"FewerBytesThanExpected", Kind::deadlock, "0 more arrivals and 128 more bytes",
     "__shared__ alignas(8) u64 b;\n__shared__ alignas(16) float s[32];\nif (i == 0) { init(&b, 1); expect(&b, 256); "
     "load(s, x, 128, &b); }\n__syncthreads();\nwait(&b, 0);"},
    {"BarrierUsedBeforeItIsThere", Kind::race, "without a barrier between that and where",
     "__shared__ alignas(8) u64 b;\nif (i == 0) init(&b, 64);\n__syncwarp();\narrive(&b);"},
    {"CopyNotWaitedFor", Kind::race, "not waited for",
     "__shared__ alignas(8) u64 b;\n__shared__ alignas(16) float s[32];\nif (i == 0) { init(&b, 1); expect(&b, 128); "
     "load(s, x, 128, &b); }\n__syncthreads();\ny[i] = s[i % 32];\nwait(&b, 0);"},
    {"SlotUsedAgainTooEarly", Kind::race, "without a barrier between",
     "__shared__ alignas(8) u64 b, c;\n__shared__ alignas(16) float s[32];\nif (i == 0) { init(&b, 1); init(&c, 1); "
     "}\n__syncthreads();\nif (i == 0) { expect(&b, 128); load(s, x, 128, &b); }\nwait(&b, 0);\nif (i < 32) y[i] = "
     "s[i];\nif (i == 32) { expect(&c, 128); load(s, x, 128, &c); }\nwait(&c, 0);"},
    {"SizeOfACopy", Kind::invalid_access, "20 bytes, no multiple of 16",
     "__shared__ alignas(8) u64 b;\n__shared__ alignas(16) float s[32];\nif (i == 0) { init(&b, 1); expect(&b, 20); "
     "load(s, x, 20, &b); }"},
    {"CopyOutOfBounds", Kind::out_of_bounds, "out of bounds",
     "__shared__ alignas(8) u64 b;\n__shared__ alignas(16) float s[32];\nif (i == 0) { init(&b, 1); expect(&b, 128); "
     "load(s, x + 48, 128, &b); }"},
    {"NoProxyFence", Kind::race, "no fence.proxy.async",
     "__shared__ alignas(16) float s[64];\ns[i] = i;\n__syncthreads();\nif (i == 0) { store(y, s, 256); commit(); "
     "wait_read(); }"},
    {"SourceOverwritten", Kind::race, "overwrites what an asynchronous",
     "__shared__ alignas(16) float s[64];\ns[i] = i;\nfence_async();\n__syncthreads();\nif (i == 0) { store(y, s, "
     "256); "
     "commit(); s[0] = 5; wait_read(); }"},
    {"ExitBeforeTheSourceIsRead", Kind::race, "has not waited for a bulk copy",
     "__shared__ alignas(16) float s[64];\ns[i] = i;\nfence_async();\n__syncthreads();\nif (i == 0) { store(y, s, "
     "256); "
     "commit(); }"},
    {"ClusterBarrierDeadlock", Kind::deadlock, "the cluster's barrier waits",
     "if (rank() == 0) meet();\nelse asm volatile(\"bar.sync 1, 128;\" ::: \"memory\");"},
    {"WaitWithoutArriving", Kind::barrier_misuse, "did not arrive there",
     "asm volatile(\"barrier.cluster.wait;\" ::: \"memory\");"},
    {"ArriveTwice", Kind::barrier_misuse, "again",
     "asm volatile(\"barrier.cluster.arrive;\" ::: \"memory\");\nasm volatile(\"barrier.cluster.arrive;\" ::: "
     "\"memory\");"},
    {"PeerHasExited", Kind::invalid_access, "exited",
     "__shared__ float s[64];\ns[i] = i;\nmeet();\nif (rank() == 0) y[i] = far(map(s + i, 1));"},
    {"PeerHasNotStarted", Kind::race, "need not have started",
     "__shared__ float s[64];\ns[i] = i;\nif (rank() == 0) y[i] = far(map(s + i, 1));\nmeet();"},
    {"PeerHasLongExited", Kind::invalid_access, "which has exited",
     "__shared__ float s[64];\ns[i] = i;\nmeet();\nif (rank() == 1) return;\nfor (int k = 0; k < 100000; ++k) asm "
     "volatile(\"nanosleep.u32 20;\");\ny[i] = far(map(s + i, 1));"},
    {"RankOutsideTheCluster", Kind::invalid_access, "block 2 of a cluster of 2",
     "__shared__ float s[64];\ns[i] = i;\nmeet();\ny[i] = far(map(s + i, 2));\nmeet();"},
    {"FarOutOfBounds", Kind::out_of_bounds, "out of bounds",
     "__shared__ float s[64];\ns[i] = i;\nmeet();\ny[i] = far(map(s + i, 1 - rank()) + 4096);\nmeet();"},
};

class HopperFaults : public testing::TestWithParam<Faulty> {};

TEST_P(HopperFaults, AreReportedWithTheirLine) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    const Faulty& fault = GetParam();
    const std::string source =
        with_covers(std::string{"extern \"C\" __global__ void kernel(float* x, float* y) {\nconst "
                                "int i = threadIdx.x;\n"} +
                    fault.body + "\n}\n");
    EmulatorOptions options;
    options.steps = 2'000'000;
    Kernel kernel{compiled(source, "sm_90a"), "sm_90", options};
    kernel.buffer(floats(64));
    kernel.empty(256);
    const auto first =
        std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(source.find("extern")), '\n');
    try {
        kernel.launch(launch_of({2}, {64}, {2}, {BufferArgument{0}, BufferArgument{1}}));
        FAIL() << "nothing was reported";
    } catch (const DeviceFailure& failure) {
        EXPECT_EQ(failure.fault().kind, fault.kind) << failure.what();
        EXPECT_THAT(failure.what(), HasSubstr(fault.words));
        // The line of the kernel, whether or not a cover was inlined into it.
        const std::string told = failure.what();
        bool named = false;
        for (long line = first + 1; line <= std::count(source.begin(), source.end(), '\n'); ++line)
            named |= told.find("kernel.cu:" + std::to_string(line)) != std::string::npos;
        EXPECT_TRUE(named) << told;
    }
}

INSTANTIATE_TEST_SUITE_P(All, HopperFaults, testing::ValuesIn(faults),
                         [](const testing::TestParamInfo<Faulty>& one) { return std::string{one.param.name}; });

// ---- wgmma: 64 x 64 x 64, for each swizzle and each orientation, from registers and from shared memory.

const char* const product = R"(
__device__ u64 place(const void* p, unsigned leading, unsigned stride, u64 layout) {
    return (u64)(at(p) >> 4 & 0x3fff) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | layout << 62;
}
#define D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define REGISTERS "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
__device__ void multiply(float (&d)[32], u64 a, u64 b, int keep) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " " REGISTERS ", %32, %33, p, 1, 1, %35, %36;}"
        : D8(0), D8(8), D8(16), D8(24) : "l"(a), "l"(b), "r"(keep), "n"(TURNED_A), "n"(TURNED_B));
}
__device__ void multiply(float (&d)[32], const unsigned (&a)[4], u64 b, int keep) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " " REGISTERS ", {%32, %33, %34, %35}, %36, p, 1, 1, %38;}"
        : D8(0), D8(8), D8(16), D8(24) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep), "n"(TURNED_B));
}
__device__ void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void close() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ void finish() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
// Tiles as tensor maps bring them: SPAN bytes wide, so that a matrix of 64 x 64 takes 128 / SPAN of them.
extern "C" __global__ void kernel(const __grid_constant__ TensorMap ma, const __grid_constant__ TensorMap mb, float* c) {
    __shared__ alignas(1024) unsigned short a[64 * 64], b[64 * 64];
    __shared__ alignas(8) u64 full;
    if (threadIdx.x == 0) init(&full, 1);
    __syncthreads();
    constexpr int parts = 128 / SPAN, wide = 64 / parts;
    if (threadIdx.x == 0) {
        expect(&full, 2 * 8192);
        for (int i = 0; i < parts; ++i) { load2(a + i * 64 * wide, &ma, i * wide, 0, &full); load2(b + i * 64 * wide, &mb, i * wide, 0, &full); }
    }
    wait(&full, 0);
    float d[32];
    const u64 layout = SPAN == 128 ? 1 : SPAN == 64 ? 2 : SPAN == 32 ? 3 : 0;
    begin();
    for (int k = 0; k < 64; k += 16) {
        // Along k: 32 bytes on, in the tile that has them. Across: 16 rows on.
        const auto spot = [&](const unsigned short* m, bool turned) {
            if (SPAN == 16) return turned ? place(m + k * wide, 128, 1024, layout) : place(m + k / wide * 64 * wide, 1024, 128, layout);
            return turned ? place(m + k * wide, 64 * SPAN, 8 * SPAN, layout) : place(m + k / wide * 64 * wide + k % wide, 0, 8 * SPAN, layout);
        };
#ifdef FROM_REGISTERS
        const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
        unsigned r[4];
        for (int i = 0; i < 4; ++i) {
            // Swizzled as the tile is.
            const int line = row + 8 * (i % 2), depth = k + 2 * (lane % 4) + 8 * (i / 2);
            unsigned byte = depth / wide * 64 * SPAN + line * SPAN + depth % wide * 2;
            byte ^= byte >> 3 & (SPAN - 16);
            r[i] = *(const unsigned*)((const char*)a + byte);
        }
        begin();
        multiply(d, r, spot(b, TURNED_B), k > 0);
        close();
        finish();
#else
        multiply(d, spot(a, TURNED_A), spot(b, TURNED_B), k > 0);
#endif
    }
    close();
    finish();
    for (int j = 0; j < 32; ++j) {
        const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + j / 2 % 2 * 8, column = j / 4 * 8 + threadIdx.x % 4 * 2 + j % 2;
        c[row * 64 + column] = d[j];
    }
}
)";

struct Product {
    int span;  ///< bytes of the swizzle; 16: none
    bool turned_a, turned_b, registers;
    DType dtype;
};

void PrintTo(const Product& one, std::ostream* out) {
    *out << "span " << one.span << (one.turned_a ? ", a by columns" : "") << (one.turned_b ? ", b by rows" : "")
         << (one.registers ? ", a in registers" : "") << (one.dtype == DType::f16 ? ", f16" : ", bf16");
}

std::uint16_t small_float(float x, DType dtype) {  // of small whole numbers
    if (dtype == DType::bf16) return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
    if (x == 0) return 0;
    int exponent = 0;
    const float fraction = std::frexp(std::fabs(x), &exponent);
    return static_cast<std::uint16_t>((x < 0 ? 0x8000 : 0) | (exponent + 14) << 10 |
                                      (static_cast<int>(fraction * 2048) & 0x3ff));
}

class Products : public testing::TestWithParam<Product> {};

TEST_P(Products, AreThoseOfPlainLoops) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    const Product& one = GetParam();
    const std::string head = "#define SPAN " + std::to_string(one.span) + "\n#define TURNED_A " +
                             (one.turned_a ? "1" : "0") + "\n#define TURNED_B " + (one.turned_b ? "1" : "0") +
                             "\n#define TYPE " + (one.dtype == DType::f16 ? "\"f16\"" : "\"bf16\"") + "\n" +
                             (one.registers ? "#define FROM_REGISTERS\n" : "");
    Kernel kernel{compiled(head + covers + product, "sm_90a"), "sm_90"};
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

INSTANTIATE_TEST_SUITE_P(All, Products, testing::ValuesIn(products()));

TEST(Wgmma, IsNotToBeTouchedBeforeItWasWaitedFor) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    const std::string head = "#define SPAN 128\n#define TURNED_A 0\n#define TURNED_B 0\n#define TYPE \"bf16\"\n";
    const auto trouble = [&](const std::string& body) {
        Kernel kernel{compiled(head + covers + product +
                                   "extern \"C\" __global__ void early(float* c) {\n__shared__ alignas(1024) unsigned "
                                   "short a[4096];\nfor (int i = threadIdx.x; i < 4096; i += blockDim.x) a[i] = "
                                   "0x3f80;\nfloat d[32] = {};\n" +
                                   body + "\nfor (int i = 0; i < 32; ++i) c[threadIdx.x * 32 + i] = d[i];\n}",
                               "sm_90a"),
                      "sm_90"};
        kernel.empty(4 * 32 * 128);
        try {
            kernel.run("early", {1}, {128}, {BufferArgument{0}});
            return std::string{"ran"};
        } catch (const DeviceFailure& failure) {
            return std::string{failure.what()};
        }
    };
    const std::string both = "multiply(d, place(a, 0, 1024, 1), place(a, 0, 1024, 1), 0);";
    EXPECT_EQ(trouble("fence_async(); __syncthreads(); begin(); " + both + " close(); finish();"), "ran");
    EXPECT_THAT(trouble("fence_async(); __syncthreads(); begin(); " + both + " close(); d[0] += 1; finish();"),
                HasSubstr("touches an accumulator of a wgmma that was not waited for"));
    EXPECT_THAT(trouble("__syncthreads(); begin(); " + both + " close(); finish();"),
                HasSubstr("no fence.proxy.async"));
    EXPECT_THAT(trouble("fence_async(); __syncthreads(); begin(); " + both + " close(); a[threadIdx.x] = 0; finish();"),
                HasSubstr("overwrites what an asynchronous"));
    EXPECT_THAT(
        trouble("fence_async(); __syncthreads(); if (threadIdx.x < 96) { begin(); " + both + " close(); finish(); }"),
        HasSubstr("warps of its warpgroup that never arrive"));
}

}  // namespace
}  // namespace autotune
