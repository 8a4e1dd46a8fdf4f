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

#include "tests/device/emulator/hopper_kernels.h"
#include "tests/device/emulator/kernel_cases.h"

namespace autotune {
namespace {

using namespace hopper;
using Kind = DeviceFault::Kind;
using testing::ContainsRegex;
using testing::HasSubstr;

class HopperKernels : public testing::TestWithParam<KernelCase> {};

TEST_P(HopperKernels, DoWhatPlainCodeDoes) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    GetParam().run(emulated_ground("sm_90"));
}

INSTANTIATE_TEST_SUITE_P(All, HopperKernels, testing::ValuesIn(hopper_cases()),
                         [](const testing::TestParamInfo<KernelCase>& one) { return one.param.name; });

TEST(Clusters, OfAShapeThatNoGridHasAreRefused) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    Kernel kernel{compiled("extern \"C\" __global__ void kernel(unsigned* y) { y[0] = 1; }", "sm_90a"), "sm_90"};
    const std::uint32_t out = kernel.empty(16 * 4);
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

// Goal: a warp that waits for a copy is not kept from it by one that polls for what the first does then.
// Method: the first waits before the copy starts, and the last, which gives up after a hundred sleeps, comes after
// both.
TEST(Mbarriers, OpenWhileAnotherWarpPolls) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    Kernel kernel{compiled(with_covers("extern \"C\" __global__ void kernel(const float* x, volatile unsigned* y) {\n"
                                       "__shared__ alignas(16) float to[32];\n__shared__ u64 full;\n"
                                       "if (threadIdx.x == 0) { init(&full, 1); init_done(); }\n__syncthreads();\n"
                                       "if (threadIdx.x == 0) { wait(&full, 0); y[0] = 1; }\n"
                                       "if (threadIdx.x == 32) { expect(&full, 128); load(to, x, 128, &full); }\n"
                                       "if (threadIdx.x == 64) {\n"
                                       "for (int tries = 0; y[0] == 0 && tries < 100; ++tries) __nanosleep(100);\n"
                                       "y[1] = y[0];\n}\n}"),
                           "sm_90a"),
                  "sm_90"};
    const std::uint32_t x = kernel.buffer(floats(32)), y = kernel.buffer(std::vector<std::uint32_t>{0, 0});
    kernel.run("kernel", {1}, {96}, {BufferArgument{x}, BufferArgument{y}});
    EXPECT_EQ(kernel.contents<std::uint32_t>(y), (std::vector<std::uint32_t>{1, 1}));
}

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
