#include "tests/support/host_device.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "autotune/error.h"
#include "tests/support/test_data.h"

namespace autotune {
namespace {

/// y = 2 x over the floats of two buffers.
void doubling(const HostCall& call) {
    const auto count = call.buffer(1).bytes / sizeof(float);
    for (std::size_t i = 0; i < count; ++i) call.pointer<float>(1)[i] = 2 * call.pointer<float>(0)[i];
}

class HostDeviceTest : public ::testing::Test {
protected:
    HostDeviceTest() {
        x = device.allocate(64 * sizeof(float), 0);
        y = device.allocate(64 * sizeof(float), 0);
        value = device.allocate(64 * sizeof(double), 0);
        device.fill(x, DType::f32, 64, {.kind = FillSpec::Kind::normal, .seed = 3});
        device.set(y, 0xff);
        std::array<float, 64> in{};
        std::array<double, 64> want{};
        device.read(x, 0, std::as_writable_bytes(std::span{in}));
        for (std::size_t i = 0; i < in.size(); ++i) want[i] = 2.0 * in[i];
        device.write(value, 0, std::as_bytes(std::span{want}));
        plan.launches.push_back({.entry = "k",
                                 .source = {},
                                 .grid = {},
                                 .block = {},
                                 .cluster = {},
                                 .arguments = {BufferArgument{0}, BufferArgument{1}}});
        module = device.load({});
    }
    BoundSequence bound() const { return {.sequence = &plan, .module = module, .buffers = {x, y}}; }
    Comparison judge() {
        const std::array<std::int64_t, 1> shape{64}, strides{1};
        return device.compare(y, DType::f32, shape, strides, value, value, {}, 0xff);
    }

    HostDevice device;
    Buffer x, y, value;
    LaunchSequence plan;
    Module module;
};

TEST_F(HostDeviceTest, RunsTheKernelAndJudgesItsOutput) {
    device.define("k", doubling);
    EXPECT_EQ(judge().bad, 64U);
    EXPECT_EQ(judge().still_poison, 64U);
    device.run(bound());
    EXPECT_EQ(judge().bad, 0U);
    EXPECT_EQ(device.launches, 1);
}

TEST_F(HostDeviceTest, SeesOneByteOutsideOnEitherSide) {
    for (const std::int64_t distance : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{4000}}) {
        device.define("k", writing_outside(doubling, 1, distance));
        device.run(bound());
        std::int64_t where = 99;
        EXPECT_FALSE(device.guards_intact(y, where));
        EXPECT_EQ(where, distance);
        EXPECT_TRUE(device.guards_intact(y, where)) << "mended";
    }
}

TEST_F(HostDeviceTest, NanIsBadAndCounted) {
    device.define("k", writing_nan(doubling, 1, 7));
    device.run(bound());
    const Comparison compared = judge();
    EXPECT_EQ(compared.bad, 1U);
    EXPECT_EQ(compared.first_bad, 7U);
    EXPECT_EQ(compared.not_finite, 1U);
}

TEST_F(HostDeviceTest, StickyFaultEndsTheDevice) {
    device.define("k", faulting());
    EXPECT_THROW(device.run(bound()), DeviceFailure);
    EXPECT_THROW(device.set(y, 0), DeviceFailure);
}

TEST_F(HostDeviceTest, KernelThatDoesNotFitLeavesItUsable) {
    device.define("k", not_fitting());
    EXPECT_THROW(device.run(bound()), DeviceFailure);
    device.set(y, 0);
}

TEST_F(HostDeviceTest, TimesAsToldAndDropsTheHopeless) {
    device.define("k", doubling, 25);
    const BoundSequence one = bound();
    const Samples all = device.time(std::span{&one, 1}, {}, {.samples = 3});
    EXPECT_EQ(all.time_us, (std::vector<double>{25, 25, 25}));
    const Samples dropped = device.time(std::span{&one, 1}, {}, {.samples = 3, .drop_above_us = 20});
    EXPECT_TRUE(dropped.dropped);
    EXPECT_EQ(dropped.time_us.size(), 1U);
}

TEST_F(HostDeviceTest, BuffersAreAlignedAndMisalignedAsAsked) {
    EXPECT_EQ(x.address % 256, 0U);
    EXPECT_EQ(device.allocate(10, 3).address % 256, 3U);
    EXPECT_THROW(device.allocate(std::uint64_t{1} << 40, 0), DeviceFailure);
}

TEST(TestData, LiesWhereTheEnvironmentSaysOrWhereTheBuildWas) {
    const std::filesystem::path built = std::filesystem::path{AUTOTUNE_SOURCE_DIR} / "tests/bad_kernels";
    unsetenv("AUTOTUNE_TEST_DATA");
    EXPECT_EQ(test_data("bad_kernels"), built);
    setenv("AUTOTUNE_TEST_DATA", "/carried/tests", 1);
    EXPECT_EQ(test_data("bad_kernels"), "/carried/tests/bad_kernels");
    setenv("AUTOTUNE_TEST_DATA", "", 1);
    EXPECT_EQ(test_data("bad_kernels"), built);
    unsetenv("AUTOTUNE_TEST_DATA");
}

}  // namespace
}  // namespace autotune
