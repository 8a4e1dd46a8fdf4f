#include "tuner/worker/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/occupancy.h"

namespace autotune {
namespace {

using testing::HasSubstr;

DeviceLimits limits() {
    DeviceLimits made = *limits_of_capability(90);
    made.sm_count = 132;
    made.l2_bytes = 50 << 20;
    return made;
}

Binaries binaries(KernelInfo kernel) {
    kernel.name = kernel.symbol = "k";
    Artefact artefact{.arch = "sm_90"};
    artefact.kernels = {kernel};
    return {.sources = {"k.cu"}, .artefacts = {artefact}};
}

LaunchSequence launched(std::uint32_t threads, std::uint32_t shared_bytes = 0) {
    LaunchSequence sequence;
    sequence.launches.push_back(
        {.entry = "k", .source = "k.cu", .block = {threads, 1, 1}, .shared_bytes = shared_bytes});
    return sequence;
}

std::string reason(const std::optional<Outcome>& outcome) { return outcome ? outcome->reason : "it passed"; }

TEST(Gate, StaticAndDynamicSharedMemoryCountTogether) {
    const int most = limits().max_shared;
    const auto with_dynamic = [&](int bytes) {
        return gate({}, binaries({.registers = 32, .static_shared_bytes = 1024}),
                    launched(256, static_cast<std::uint32_t>(bytes)), limits());
    };
    EXPECT_FALSE(with_dynamic(most - 1024));
    const auto beyond = with_dynamic(most - 1023);
    ASSERT_TRUE(beyond);
    EXPECT_EQ(beyond->ending, Ending::does_not_fit);
    EXPECT_THAT(beyond->reason, HasSubstr("needs 232449 bytes of shared memory a block, this GPU allows 232448"));
}

TEST(Gate, RegistersTimesThreadsMustFit) {
    EXPECT_FALSE(gate({}, binaries({.registers = 64}), launched(1024), limits()));
    const auto beyond = gate({}, binaries({.registers = 72}), launched(1024), limits());
    ASSERT_TRUE(beyond);
    EXPECT_EQ(beyond->ending, Ending::does_not_fit);
    EXPECT_THAT(beyond->reason, HasSubstr("1024 threads with 72 registers each"));
}

TEST(Gate, ALaunchBoundIsHeld) {
    EXPECT_THAT(reason(gate({}, binaries({.registers = 32, .max_threads = 128}), launched(256), limits())),
                HasSubstr("launched with 256 threads a block and was compiled for at most 128"));
}

TEST(Gate, SpillsEndWhereTheVariantSaysSo) {
    Variant variant;
    variant.name = "tiled";
    EXPECT_FALSE(gate(variant, binaries({.registers = 32, .spill_bytes = 8}), launched(256), limits()));
    variant.spill_bytes = 8;
    EXPECT_FALSE(gate(variant, binaries({.registers = 32, .spill_bytes = 8}), launched(256), limits()));
    variant.spill_bytes = 4;
    const auto outcome = gate(variant, binaries({.registers = 32, .spill_bytes = 8}), launched(256), limits());
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->ending, Ending::spilled);
    EXPECT_EQ(outcome->reason, "'k' spills 8 bytes, 'tiled' allows 4");
}

TEST(Gate, ASerialisedPipelineEndsWhereThereShouldBeOne) {
    Binaries made = binaries({.registers = 32});
    made.artefacts[0].log =
        "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized";
    Variant variant;
    EXPECT_FALSE(gate(variant, made, launched(256), limits()));
    variant.pipelined = true;
    const auto outcome = gate(variant, made, launched(256), limits());
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->ending, Ending::serialised);
    EXPECT_THAT(outcome->reason, HasSubstr("C7511"));
}

TEST(Gate, ResourcesAreThoseOfTheHungriestLaunch) {
    LaunchSequence sequence = launched(128, 1000);
    sequence.launches.push_back({.entry = "k", .source = "k.cu", .block = {512, 1, 1}, .shared_bytes = 40000});
    const Resources used = resources_of(binaries({.registers = 40, .static_shared_bytes = 100}), sequence, limits());
    EXPECT_EQ(used.registers, 40);
    EXPECT_EQ(used.shared_bytes, 40100);
    EXPECT_EQ(used.blocks_per_sm, 3);
}

TEST(Floor, IsTheLargerOfWorkAndTraffic) {
    DeviceIdentity device;
    device.limits = limits();
    device.core_khz = 1'980'000;
    const double cached = static_cast<double>(device.limits.l2_bytes);
    EXPECT_DOUBLE_EQ(floor_us(0, cached + 4e9, device, 4000, 4), 900);
    EXPECT_DOUBLE_EQ(floor_us(0, cached, device, 4000, 4), 0);
    // 2 * 8192^3 operations on 16-bit elements: a little over 1 ms at 132 * 4096 * 1.98 GHz.
    EXPECT_NEAR(floor_us(2.0 * 8192 * 8192 * 8192, 0, device, 4000, 2), 0.9 * 1027, 2);
}

}  // namespace
}  // namespace autotune
