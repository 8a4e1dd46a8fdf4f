// Goal: what the emulator says of a launch without running all of it.
// Method: a kernel small enough to count by hand, in PTX, so that no compiler is needed.
#include "device/emulator/counters.h"

#include <gtest/gtest.h>

#include "tests/device/emulator/kernel.h"

namespace autotune {
namespace {

/// y[i] = 2 * x[i] for i < n; a thread an element.
constexpr const char* doubling = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry doubling(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .f32 %f<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<7>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mul.wide.u32 %rd5, %r5, 4;
    add.s64 %rd3, %rd3, %rd5;
    add.s64 %rd4, %rd4, %rd5;
    ld.global.f32 %f1, [%rd3];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd4], %f2;
DONE:
    ret;
}
)";

/// The kernel over `elements` of x and y, blocks of 32.
struct Doubling {
    explicit Doubling(std::uint32_t elements, const std::string& part = "sm_80")
        : device{make_emulated_device(part)}, x{device->allocate(elements * 4)}, y{device->allocate(elements * 4)} {
        Launch launch;
        launch.entry = "doubling";
        launch.grid = {(elements + 31) / 32};
        launch.block = {32};
        launch.arguments = {BufferArgument{0}, BufferArgument{1}, value(elements)};
        sequence.launches.push_back(std::move(launch));
        bound.sequence = &sequence;
        bound.module = device->load(ptx_only(doubling));
        bound.buffers = {x, y};
    }

    std::unique_ptr<EmulatedDevice> device;
    Buffer x, y;
    LaunchSequence sequence;
    BoundSequence bound;
};

std::vector<emulator::CountedLaunch> count_launches(Doubling& run) {
    run.device->launch_works(run.bound);
    return run.device->counted();
}

TEST(Counters, OfALaunchTellWhatSomeBlocksAndTheLastDo) {
    Doubling run{100};
    const std::vector<emulator::CountedLaunch> counted = count_launches(run);
    ASSERT_EQ(counted.size(), 1u);
    const emulator::CountedLaunch& one = counted.front();
    EXPECT_EQ(one.entry, "doubling");
    EXPECT_EQ(one.blocks, 4u);
    EXPECT_EQ(one.interior.blocks, 3u);
    EXPECT_EQ(one.interior.global_load_bytes, 3 * 128u);
    EXPECT_EQ(one.interior.global_load_sectors, 3 * 4u);
    EXPECT_EQ(one.interior.flops, 3 * 32u);
    EXPECT_EQ(one.edge.blocks, 1u);
    EXPECT_EQ(one.edge.global_load_bytes, 16u);
    EXPECT_EQ(one.edge.global_load_sectors, 1u);
    EXPECT_EQ(one.edge.flops, 4u);
    EXPECT_EQ(one.interior.divergent_branches, 0u);
    EXPECT_EQ(one.edge.divergent_branches, 1u);
}

TEST(Counters, OfAGridOfOneBlockStandWithTheLast) {
    Doubling run{32};
    const std::vector<emulator::CountedLaunch> counted = count_launches(run);
    EXPECT_EQ(counted.at(0).interior, emulator::Counters{});
    EXPECT_EQ(counted.at(0).edge.flops, 32u);
}

TEST(Counters, OfALaunchInClustersTellOfWholeClusters) {
    Doubling run{100, "sm_90"};
    run.sequence.launches.front().cluster = {2};
    const emulator::CountedLaunch two = count_launches(run).at(0);
    EXPECT_EQ(two.interior.blocks, 2u);
    EXPECT_EQ(two.interior.flops, 64u);
    EXPECT_EQ(two.edge.blocks, 2u);
    EXPECT_EQ(two.edge.flops, 36u);
    run.sequence.launches.front().cluster = {4};
    const emulator::CountedLaunch one = count_launches(run).at(0);
    EXPECT_EQ(one.interior, emulator::Counters{}) << "the last block's cluster is the whole grid";
    EXPECT_EQ(one.edge.blocks, 4u);
    EXPECT_EQ(one.edge.flops, 100u);
}

TEST(Counters, OfALaunchLeaveTheDeviceAsWatchfulAsItWas) {
    Doubling run{100};
    run.device->options().counters = true;
    EXPECT_NO_THROW(count_launches(run)) << "x was never written, and nobody looks";
    EXPECT_EQ(run.device->take_counters(), emulator::Counters{});
    EXPECT_THROW(run.device->run(run.bound), DeviceFailure);
}

TEST(Counters, OfALaunchThatFailsLeaveTheDeviceAsWatchfulAsItWas) {
    Doubling run{100};
    run.sequence.launches.front().entry = "tripling";
    EXPECT_THROW(count_launches(run), DeviceFailure);
    run.sequence.launches.front().entry = "doubling";
    EXPECT_THROW(run.device->run(run.bound), DeviceFailure) << "x was never written";
}

TEST(Counters, OfALaunchFindScratchZeroed) {
    Doubling run{64};
    run.bound.buffers = {run.y, run.x};  // x, read from, is scratch; y takes the place of a tensor
    run.sequence.scratch = {{.name = "x", .bytes = 256, .zeroed = true}};
    run.sequence.launches.front().arguments = {BufferArgument{1}, BufferArgument{0}, value(std::uint32_t{64})};
    run.device->set(run.x, 0xff);
    count_launches(run);
    std::vector<std::uint32_t> got(64);
    run.device->read(run.y, 0, std::as_writable_bytes(std::span{got}));
    EXPECT_EQ(got, std::vector<std::uint32_t>(64, 0)) << "2 * 0, not 2 * NaN";
}

TEST(Counters, AddUpEachSumAndEachClass) {
    emulator::Counters one;
    std::uint64_t next = 1;
    for (const emulator::CounterSum& sum : emulator::counter_sums) one.*sum.value = next++;
    for (emulator::Counters::Class& kind : one.classes) kind = {next, next + 100}, ++next;
    emulator::Counters twice = one;
    twice += one;
    next = 1;
    for (const emulator::CounterSum& sum : emulator::counter_sums) EXPECT_EQ(twice.*sum.value, 2 * next++) << sum.name;
    for (const emulator::Counters::Class& kind : twice.classes) {
        EXPECT_EQ(kind.warps, 2 * next);
        EXPECT_EQ(kind.lanes, 2 * (next + 100));
        ++next;
    }
}

}  // namespace
}  // namespace autotune
