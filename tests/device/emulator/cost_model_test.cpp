// Goal: a predicted time is the same in every run, moves the way that a GPU's would, and is never changed in silence.
// Method: the formula on made-up work, and kernels of which one is slower than the other on any GPU.
#include "device/emulator/cost_model.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/device/emulator/kernel.h"

namespace autotune {
namespace {

using emulator::LaunchWork;
using emulator::Machine;
using emulator::ModelWeights;
using emulator::Unit;

LaunchWork sample() {
    LaunchWork work{.entry = "made_up", .blocks = 1000, .warps = 4, .resident = 4};
    work.interior = {.blocks = 3, .slots = 4000, .path_clocks = 5000, .l1_miss_bytes = 65536, .written_bytes = 8192};
    work.interior.clocks.fill(500);
    work.edge = work.interior;
    work.last_path = work.interior.path_clocks;
    work.dram_bytes = 1 << 24;
    return work;
}

double time_of(const LaunchWork& work, const Machine& machine = {}) {
    return emulator::predict(work, machine, ModelWeights{}).total;
}

TEST(CostModel, MoreOfAnyWorkIsNeverFaster) {
    const double before = time_of(sample());
    EXPECT_GT(before, 0);
    const auto grown = [](auto grow) {
        LaunchWork work = sample();
        for (emulator::BlockWork* block : {&work.interior, &work.edge}) grow(work, *block);
        return time_of(work);
    };
    EXPECT_GE(grown([](LaunchWork&, auto& block) { block.slots *= 20; }), 2 * before);
    EXPECT_GE(grown([](LaunchWork&, auto& block) { block.path_clocks *= 20; }), 2 * before);
    EXPECT_GE(grown([](LaunchWork&, auto& block) { block.l1_miss_bytes *= 50; }), 2 * before);
    EXPECT_GE(grown([](LaunchWork& work, auto&) { work.dram_bytes *= 50; }), 2 * before);
    EXPECT_GE(grown([](LaunchWork& work, auto&) { work.blocks *= 2; }), 2 * before);
    for (std::size_t unit = 1; unit < emulator::units; ++unit)
        EXPECT_GE(grown([&](LaunchWork&, auto& block) { block.clocks[unit] *= 50; }), 2 * before) << unit;
}

TEST(CostModel, AFasterMachineIsFaster) {
    const double before = time_of(sample());
    EXPECT_LT(time_of(sample(), {.sm_count = 4}), before);
    EXPECT_LT(time_of(sample(), {.clock_mhz = 2000}), before);
    EXPECT_LE(time_of(sample(), {.l2_gbs = 4000, .dram_gbs = 400}), before);
}

TEST(CostModel, ResidentBlocksHideEachOthersLatency) {
    LaunchWork work = sample();
    work.interior.path_clocks = work.edge.path_clocks = work.last_path = 50000;
    const double four = time_of(work);
    work.resident = 1;
    EXPECT_GT(time_of(work), 3 * four);
}

TEST(CostModel, LongBlocksThatComeLastCostMore) {
    LaunchWork work = sample();
    work.blocks = 1002;  // the last round is nearly empty
    const double even = time_of(work);
    work.last_path *= 2;
    EXPECT_GT(time_of(work), even);
}

TEST(CostModel, NoBlocksTakeNoTimeButTheLaunch) {
    LaunchWork work = sample();
    work.blocks = 0;
    EXPECT_EQ(time_of(work), 0);
    EXPECT_EQ(emulator::predicted_us({work, work}, {}, {.launch_us = 3}), 6);
}

/// A kernel at a config, timed on an emulated part.
class Timed {
public:
    Timed(const std::string& source, Dim3 grid, Dim3 block, const std::string& arch = "sm_86")
        : device_{make_emulated_device(arch, {.steps = 1 << 20})} {
        constexpr std::uint64_t bytes = std::uint64_t{1} << 26;
        for (int i = 0; i < 2; ++i) buffers_.push_back(device_->reserve(bytes, 0, DType::f32, nullptr));
        Launch launch;
        launch.entry = "kernel";
        launch.grid = grid;
        launch.block = block;
        launch.arguments = {BufferArgument{0}, BufferArgument{1}};
        sequence_.launches.push_back(std::move(launch));
        bound_.sequence = &sequence_;
        bound_.module = device_->load(compiled(source, arch));
        bound_.buffers = buffers_;
    }
    /// Scratch that is zero at first, as one more argument.
    void with_words(std::uint64_t bytes) {
        sequence_.launches[0].arguments.push_back(BufferArgument{static_cast<std::uint32_t>(buffers_.size())});
        sequence_.scratch.push_back({.name = "words", .bytes = bytes, .zeroed = true});
        buffers_.push_back(device_->reserve(bytes, 0, DType::u8, nullptr));
        bound_.buffers = buffers_;
    }
    double us() {
        const Samples samples = device_->time({&bound_, 1}, {}, {});
        EXPECT_TRUE(samples.predicted);
        return samples.time_us.at(0);
    }
    std::vector<LaunchWork> works() { return device_->launch_works(bound_); }

private:
    std::unique_ptr<EmulatedDevice> device_;
    std::vector<Buffer> buffers_;
    LaunchSequence sequence_;
    BoundSequence bound_;
};

class CostModelOfKernels : public testing::Test {
protected:
    void SetUp() override {
        if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    }
};

std::string copy(const std::string& index) {
    return "extern \"C\" __global__ void kernel(float* y, const float* x) {\n"
           "    const unsigned i = blockIdx.x * 256 + threadIdx.x;\n"
           "    y[" +
           index + "] = x[" + index + "];\n}\n";
}

// Method: each block takes a number, from the start anew, and stops where there are more numbers than blocks.
TEST_F(CostModelOfKernels, ScratchIsZeroEachTimeThatItIsToBe) {
    Timed one{
        "extern \"C\" __global__ void kernel(float* y, const float* x, unsigned* words) {\n"
        "    if (atomicAdd(words + 5000, 1u) >= gridDim.x) __trap();\n}\n",
        {8},
        {1}};
    one.with_words(1 << 20);
    const auto first = one.works();
    EXPECT_NO_THROW(EXPECT_EQ(one.works(), first));
}

TEST_F(CostModelOfKernels, IsTheSameInEveryRun) {
    Timed one{copy("i"), {65536}, {256}}, other{copy("i"), {65536}, {256}};
    EXPECT_EQ(one.works(), one.works());
    EXPECT_EQ(one.works(), other.works());
    EXPECT_EQ(one.us(), other.us());
}

TEST_F(CostModelOfKernels, BoundByMemoryTakesWhatItsBytesTake) {
    const double us = Timed{copy("i"), {65536}, {256}}.us();
    const double floor_us = 2.0 * 65536 * 256 * 4 / 768e3;  // an A6000 has 768 GB/s
    EXPECT_GT(us, floor_us);
    EXPECT_LT(us, 1.5 * floor_us);
}

TEST_F(CostModelOfKernels, ScatteredSectorsCostMoreThanWholeLines) {
    const double whole = Timed{copy("i"), {65536}, {256}}.us();
    EXPECT_GT((Timed{copy("(i * 32u) % (1u << 24) + i / (1u << 19)"), {65536}, {256}}.us()), 2 * whole);
}

/// 256 steps over shared memory, each after the one before.
std::string chase(int stride) {
    return "extern \"C\" __global__ void kernel(float* y, const float* x) {\n"
           "    __shared__ float tile[32 * 33];\n"
           "    for (int i = threadIdx.x; i < 32 * 33; i += 256) tile[i] = x[i];\n"
           "    __syncthreads();\n"
           "    float sum = 0;\n"
           "#pragma unroll 1\n"
           "    for (int i = 0; i < 256; ++i) sum += tile[(threadIdx.x % 32 * " +
           std::to_string(stride) +
           " + i + (int)sum) % 1024];\n"
           "    y[blockIdx.x * 256 + threadIdx.x] = sum;\n}\n";
}

TEST_F(CostModelOfKernels, BankConflictsCost) {
    EXPECT_GT((Timed{chase(32), {2048}, {256}}.us()), 2 * Timed(chase(33), {2048}, {256}).us());
}

TEST_F(CostModelOfKernels, ASequenceThatWaitsForOtherBlocksIsRunWhole) {
    const std::string source =
        "extern \"C\" __global__ void kernel(unsigned* y, const float*) {\n"
        "    if (blockIdx.x == 0) { __threadfence(); atomicAdd(y, 1u); }\n"
        "    else while (*(volatile unsigned*)y == 0) {}\n}\n";
    Timed run{source, {4}, {32}};
    EXPECT_EQ(run.works().at(0).interior.blocks, 4);
}

// Method: blocks that take numbers from a counter until there are no more.
TEST_F(CostModelOfKernels, BlocksThatTakeWorkFromOneAnotherAreRunTogether) {
    Timed run{
        "extern \"C\" __global__ void kernel(float*, const float*, unsigned* words) {\n"
        "    while (atomicAdd(words, 1u) < 4096) {}\n}\n",
        {64},
        {1}};
    run.with_words(1 << 20);
    EXPECT_EQ(run.works().at(0).interior.blocks, 64);
}

// Predictions of different models are not compared: model_version in parts.h tells them apart, so whoever changes this
// number changes that one.
TEST_F(CostModelOfKernels, ThisVersionGivesThisTime) {
    EXPECT_EQ(emulator::model_version, 2);
    LaunchWork work = sample();
    EXPECT_NEAR(time_of(work), 1436.2354534740591, 1e-6);
    EXPECT_NEAR(emulator::predict(work, {}, emulator::weights_of(90)).total, 1899.6680098402194, 1e-6);
}

}  // namespace
}  // namespace autotune
