// Goal: what an emulator beside a GPU says of the kernels of tests/bad_kernels is their line, thread and buffer.
// Method: the desk alone, with the real worker program and compiler; which GPU it stands beside is only told to it.
#include "tuner/worker/emulator_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "device/emulator/parts.h"
#include "device/nvrtc.h"
#include "tests/worker/bad_op.h"

namespace autotune {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

const std::string worker = std::string{AUTOTUNE_BINARY_DIR} + "/bin/autotune-worker";

class EmulatorDeskTest : public testing::Test {
protected:
    void SetUp() override {
        std::string why;
        if (!nvrtc_if_present(&why)) GTEST_SKIP() << why;
    }

    std::string explain(const std::string& variant) { return desk.explain(gpu, instance, bad_kernel(variant)); }

    const WorkerOptions options{.worker = worker, .emulation_limit_s = 2, .seed = 3};
    const DeviceIdentity gpu = *emulated_device("emulated:a6000");
    const Instance instance = bad_problem(gpu.limits);
    StageLog log;
    RunLane lane{worker, "emulated:a6000", log};  // of the GPU, which nothing here asks
    CompiledSources store{{.worker = worker, .workers = 2, .limit_s = 60}};
    ReferenceDesk references{worker, {}, lane, store, log};
    EmulatorDesk desk{options, store, references, log};
};

TEST_F(EmulatorDeskTest, NamesLineThreadAndBuffer) {
    const std::map<std::string, std::string> expected{
        {"out_of_bounds", "0 bytes behind the end of argument 1"},
        {"null_write", "null pointer at bad.cu:"},
        {"misaligned", "misaligned at bad.cu:"},
        {"traps", "a trap at bad.cu:"},
    };
    for (const auto& [variant, found] : expected)
        EXPECT_THAT(explain(variant), AllOf(StartsWith("emulated: "), HasSubstr(found),
                                            ContainsRegex("bad\\.cu:[0-9]+ of '" + variant + "', block .*, thread ")));
    EXPECT_EQ(explain("good"), "emulated with the same inputs: nothing was found");
    EXPECT_EQ(explain("hang"), "emulated with the same inputs: nothing was found; it was ended after 2.0 s of running");
}

TEST_F(EmulatorDeskTest, CountsOnTheProblemAtHand) {
    const Outcome counted = desk.count(gpu, instance, bad_kernel("good"));
    ASSERT_EQ(counted.counters.size(), 1u) << counted.reason;
    EXPECT_EQ(counted.counters[0].blocks, 256u);
    EXPECT_GT(counted.counters[0].resources.registers, 0);
}

TEST_F(EmulatorDeskTest, SaysThatItKnowsNoSuchGpu) {
    DeviceIdentity newer = gpu;
    newer.limits.cc = 120;
    EXPECT_EQ(desk.explain(newer, instance, bad_kernel("traps")),
              "not emulated: no GPU of compute capability 12.0 is emulated");
    EXPECT_EQ(desk.count(newer, instance, bad_kernel("good")).reason, "no GPU of compute capability 12.0 is emulated");
    EXPECT_THAT(desk.explain(gpu, instance, bad_kernel("does_not_compile")), StartsWith("not emulated: "));
}

}  // namespace
}  // namespace autotune
