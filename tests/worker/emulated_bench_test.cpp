// Goal: without a GPU a candidate's failure is told with its kind and its line, and the next one is tried all the same.
// Method: the kernels of tests/bad_kernels through the real worker program, compiled by NVRTC, on an emulated GPU.
#include "tuner/worker/emulated_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "autotune/error.h"
#include "device/nvrtc.h"
#include "tests/worker/bad_op.h"

namespace autotune {
namespace {

using testing::HasSubstr;

WorkerOptions emulated(const std::string& part) {
    return {.worker = std::filesystem::path{AUTOTUNE_BINARY_DIR} / "bin/autotune-worker",
            .device = "emulated:" + part,
            .compile_workers = 2,
            .trial_limit_s = 3};
}

class EmulatedBenchTest : public testing::Test {
protected:
    void SetUp() override {
        std::string why;
        if (!nvrtc_if_present(&why)) GTEST_SKIP() << why;
    }
    static Outcome try_one(Bench& bench, const Config& config) {
        bench.submit(config);
        return bench.next({});
    }
};

TEST_F(EmulatedBenchTest, EachKindOfFailureIsToldWithItsPlace) {
    const std::map<std::string, std::pair<Ending, std::string>> expected{
        {"null_write", {Ending::invalid_access, "null pointer at bad.cu:"}},
        {"out_of_bounds", {Ending::out_of_bounds, "0 bytes behind the end of argument 1"}},
        {"writes_nothing", {Ending::no_output, "nothing was written to 'y'"}},
        {"writes_half", {Ending::wrong_result, "the kernel never writes them"}},
        {"writes_nan", {Ending::wrong_result, "is nan"}},
        {"writes_input", {Ending::wrong_result, "it writes its input 'x'"}},
        {"misaligned", {Ending::invalid_access, "misaligned at bad.cu:"}},
        {"traps", {Ending::crashed, "a trap at bad.cu:"}},
        {"not_repeatable", {Ending::not_deterministic, "other bits in 'y'"}},
        {"too_much_shared", {Ending::does_not_fit, ""}},
        {"spills", {Ending::spilled, ""}},
        {"does_not_compile", {Ending::compile_failed, "half16"}},
        {"hang", {Ending::timed_out, ""}},
    };
    const auto bench = make_worker_bench(emulated("sm_86"));
    const Instance instance = bad_problem(bench->device().limits);
    EXPECT_EQ(bench->prepare(instance).method, "modelled");
    for (const auto& [variant, ending] : expected) {
        const Outcome outcome = try_one(*bench, bad_kernel(variant));
        EXPECT_EQ(info(outcome.ending).name, info(ending.first).name) << variant << ": " << outcome.reason;
        EXPECT_THAT(outcome.reason, HasSubstr(ending.second)) << variant;
    }
    const Outcome good = try_one(*bench, bad_kernel("good"));
    EXPECT_TRUE(good.ok()) << good.reason;
    EXPECT_TRUE(good.predicted);
    const Verification ragged = bench->verify(bad_kernel("ragged"));
    ASSERT_TRUE(ragged.failure);
    EXPECT_EQ(ragged.failure->ending, Ending::wrong_result);
    EXPECT_FALSE(bench->verify(bad_kernel("good")).failure);
}

// Goal: a kernel that is taken for right and is not is told as its author's fault.
TEST_F(EmulatedBenchTest, AReferenceThatFailsIsNamedWithItsPlace) {
    const auto bench = make_worker_bench(emulated("sm_86"));
    Op op = bad_op();
    op.reference.kind = Reference::Kind::kernel;
    op.reference.kernel = "null_write";
    try {
        bench->prepare(Instance::make(op, {{"n", std::int64_t{3000}}}, bench->device().limits));
        try_one(*bench, bad_kernel("good"));
        ADD_FAILURE() << "it is taken for right";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage) << error.what();
        EXPECT_THAT(error.what(), testing::StartsWith("the reference kernel 'null_write' of bad.cu failed: "));
        EXPECT_THAT(error.what(), HasSubstr("null pointer at bad.cu:"));
    }
}

TEST_F(EmulatedBenchTest, AnEntryThatIsNoneIsSaidToBe) {
    const auto bench = make_worker_bench(emulated("sm_86"));
    Op op = bad_op();
    Variant& good = *std::ranges::find(op.variants, "good", &Variant::name);
    good.entry = "nonsuch";
    for (LaunchSpec& launch : good.launches) launch.entry.clear();
    const Instance instance = Instance::make(op, {{"n", std::int64_t{3000}}}, bench->device().limits);
    bench->prepare(instance);
    const Outcome outcome = try_one(*bench, bad_kernel("good"));
    EXPECT_EQ(info(outcome.ending).name, "compile_failed");
    EXPECT_THAT(outcome.reason, testing::StartsWith("an entry names no kernel of the source: identifier \"nonsuch\""));
}

TEST_F(EmulatedBenchTest, ATimeIsTheSameInEveryRunAndGrowsWithTheProblem) {
    const auto time_of = [](std::int64_t n) {
        const auto bench = make_worker_bench(emulated("a100"));
        bench->prepare(bad_problem(bench->device().limits, n));
        const Outcome outcome = try_one(*bench, bad_kernel("good"));
        EXPECT_TRUE(outcome.ok()) << outcome.reason;
        const std::vector<Config> finalists{bad_kernel("good")};
        EXPECT_EQ(bench->rounds(finalists, 7).front().time_us, outcome.time_us);
        return outcome.time_us;
    };
    const double once = time_of(1 << 24);
    EXPECT_EQ(time_of(1 << 24), once);
    EXPECT_GT(time_of(1 << 28), 10 * once);
}

// A problem of 2 x 16 GB, of which a few blocks are looked at.
TEST_F(EmulatedBenchTest, AProblemLargerThanThisMachineIsModelled) {
    const auto bench = make_worker_bench(emulated("h200"));
    bench->prepare(bad_problem(bench->device().limits, std::int64_t{1} << 30));
    EXPECT_GT(try_one(*bench, bad_kernel("good")).time_us, 1000);
}

TEST_F(EmulatedBenchTest, AProblemBeyondThePartsMemoryIsRefused) {
    const auto bench = make_worker_bench(emulated("t4"));
    try {
        bench->prepare(bad_problem(bench->device().limits, std::int64_t{1} << 33));
        FAIL() << "it was prepared";
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), Error::Kind::device);
    }
}

TEST_F(EmulatedBenchTest, APredictionIsTheTimeOfTheTrialAndWhatCannotRunHasNone) {
    const auto bench = make_worker_bench(emulated("a100"));
    bench->prepare(bad_problem(bench->device().limits, 1 << 20));
    const std::vector<Config> configs{bad_kernel("does_not_compile"), bad_kernel("good"), bad_kernel("too_much_shared"),
                                      bad_kernel("spills"), bad_kernel("null_write")};
    int looks = 0;
    const Predictions predictions = bench->predict(configs, [&] { return ++looks > 0; });
    EXPECT_EQ(predictions.model, "NVIDIA A100-SXM4-40GB");
    ASSERT_EQ(predictions.time_us.size(), configs.size());
    ASSERT_TRUE(predictions.time_us[1]);
    for (const std::size_t none : {0u, 2u, 3u, 4u}) EXPECT_FALSE(predictions.time_us[none]) << configs[none].text();
    EXPECT_EQ(try_one(*bench, bad_kernel("good")).time_us, *predictions.time_us[1]);
    EXPECT_GT(looks, 0);
}

TEST_F(EmulatedBenchTest, PredictionsThatAreNotWantedAnyMoreAreGivenUp) {
    const auto bench = make_worker_bench(emulated("a100"));
    bench->prepare(bad_problem(bench->device().limits));
    const std::vector<Config> configs{bad_kernel("good"), bad_kernel("writes_half")};
    EXPECT_FALSE(bench->predict(configs, [] { return false; }).time_us[1]);
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok()) << "the bench is fit for trials after it";
}

}  // namespace
}  // namespace autotune
