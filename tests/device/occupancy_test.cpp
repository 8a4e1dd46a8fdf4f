#include "device/occupancy.h"

#include <gtest/gtest.h>

#include <random>

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define HAVE_CALCULATOR 1
#endif

namespace autotune {
namespace {

TEST(Occupancy, NamesTheTightestLimit) {
    const DeviceLimits hopper = *limits_of_capability(90);
    const auto of = [&](const BlockDemand& block) { return occupancy(hopper, block); };
    EXPECT_EQ(of({.threads = 1024, .registers = 32}).blocks, 2);
    EXPECT_EQ(of({.threads = 1024, .registers = 32}).limit, Occupancy::Limit::warps);
    EXPECT_EQ(of({.threads = 256, .registers = 255}).blocks, 1);
    EXPECT_EQ(of({.threads = 256, .registers = 255}).limit, Occupancy::Limit::registers);
    EXPECT_EQ(of({.threads = 128, .registers = 32, .dynamic_shared_bytes = 100 * 1024}).blocks, 2);
    EXPECT_EQ(of({.threads = 128, .registers = 32, .dynamic_shared_bytes = 100 * 1024}).limit,
              Occupancy::Limit::shared);
    EXPECT_EQ(of({.threads = 32, .registers = 16, .barriers = 16}).limit, Occupancy::Limit::barriers);
    EXPECT_EQ(of({.threads = 32, .registers = 16}).limit, Occupancy::Limit::blocks);
}

TEST(Occupancy, BlockThatDoesNotFitCountsZero) {
    const DeviceLimits ampere = *limits_of_capability(86);
    EXPECT_EQ(occupancy(ampere, {.threads = 1025, .registers = 1}).blocks, 0);
    EXPECT_EQ(occupancy(ampere, {.threads = 1024, .registers = 80}).blocks, 0);
    EXPECT_EQ(occupancy(ampere, {.threads = 32, .registers = 1, .dynamic_shared_bytes = 99 * 1024}).blocks, 1);
    EXPECT_EQ(occupancy(ampere, {.threads = 32, .registers = 1, .dynamic_shared_bytes = 99 * 1024 + 1}).blocks, 0);
    EXPECT_EQ(
        occupancy(ampere,
                  {.threads = 32, .registers = 1, .static_shared_bytes = 16, .dynamic_shared_bytes = 99 * 1024 - 15})
            .blocks,
        0);
}

TEST(Occupancy, CapabilityOutsideTheTableHasNoRow) {
    EXPECT_EQ(capability_row(70), nullptr);
    EXPECT_FALSE(limits_of_capability(130));
}

#ifdef HAVE_CALCULATOR
// Goal: the formula is NVIDIA's own. Method: its calculator, which needs no driver, on random launches of every row.
TEST(Occupancy, AgreesWithNvidiasCalculatorOnRandomLaunches) {
    std::mt19937 random{7};
    const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n + 1)); };
    for (const CapabilityRow& row : capabilities) {
        const DeviceLimits limits = *limits_of_capability(row.cc);
        cudaOccDeviceProp device;
        device.computeMajor = row.cc / 10;
        device.computeMinor = row.cc % 10;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = row.threads_per_sm;
        device.regsPerBlock = device.regsPerMultiprocessor = 65536;
        device.warpSize = 32;
        device.sharedMemPerBlock = 48 * 1024;
        device.sharedMemPerMultiprocessor = static_cast<std::size_t>(limits.shared_per_sm);
        device.sharedMemPerBlockOptin = static_cast<std::size_t>(limits.max_shared);
        device.reservedSharedMemPerBlock = static_cast<std::size_t>(limits.reserved_shared);
        device.numSms = 1;
        for (int round = 0; round < 20000; ++round) {
            const BlockDemand block{.threads = 1 + upto(1023),
                                    .registers = 1 + upto(254),
                                    .static_shared_bytes = round % 3 ? upto(4096) : 0,
                                    .dynamic_shared_bytes = upto(round % 2 ? 8192 : limits.max_shared),
                                    .barriers = upto(16)};
            cudaOccFuncAttributes kernel;
            kernel.maxThreadsPerBlock = 1024;
            kernel.numRegs = block.registers;
            kernel.sharedSizeBytes = static_cast<std::size_t>(block.static_shared_bytes);
            kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
            kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
            kernel.maxDynamicSharedSizeBytes = static_cast<std::size_t>(limits.max_shared);
            kernel.numBlockBarriers = block.barriers;
            const cudaOccDeviceState state{};
            cudaOccResult result{};
            const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
                &result, &device, &kernel, &state, block.threads, static_cast<std::size_t>(block.dynamic_shared_bytes));
            const int want = error == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : 0;
            ASSERT_EQ(occupancy(limits, block).blocks, want)
                << row.cc << ": " << block.threads << " threads, " << block.registers << " registers, "
                << block.static_shared_bytes << "+" << block.dynamic_shared_bytes << " bytes, " << block.barriers;
        }
    }
}
#else
TEST(Occupancy, AgreesWithNvidiasCalculatorOnRandomLaunches) { GTEST_SKIP() << "no cuda_occupancy.h here"; }
#endif

}  // namespace
}  // namespace autotune
