#include "tuner/worker/worker_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "device/identity.h"
#include "device/nvrtc.h"
#include "tests/worker/bad_op.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/tune.h"

namespace autotune {
namespace {

using testing::HasSubstr;

/// Why these tests cannot run here; empty: they can.
const std::string& obstacle() {
    static const std::string why = [] {
        std::string reason;
        if (present_devices().empty()) return std::string{"no GPU here"};
        return nvrtc_if_present(&reason) ? std::string{} : reason;
    }();
    return why;
}

WorkerOptions options() {
    WorkerOptions made;
    made.compile_workers = 4;
    made.compile_limit_s = 10;
    made.trial_limit_s = 3;
    made.cache_dir = std::filesystem::temp_directory_path() / "autotune-gpu-test";
    return made;
}

class WorkerOnGpu : public testing::Test {
protected:
    void SetUp() override {
        if (!obstacle().empty()) GTEST_SKIP() << obstacle();
        bench = make_worker_bench(options());
    }
    void prepare(std::int64_t n = 65536) { bench->prepare(bad_problem(bench->device().limits, n)); }
    std::unique_ptr<WorkerBench> bench;
};

// Goal: whatever a kernel does to the GPU is its outcome, and the kernel after it is timed all the same.
// Method: every variant of tests/bad_kernels, each followed by the good one; afterwards no process is left.
TEST_F(WorkerOnGpu, EachBadKernelEndsAsItShould) {
    const std::map<std::string, std::set<Ending>> expected{
        {"good", {Ending::timed, Ending::dropped}},
        {"hang", {Ending::timed_out}},
        {"null_write", {Ending::invalid_access}},
        {"out_of_bounds", {Ending::out_of_bounds}},
        {"writes_nothing", {Ending::no_output}},
        {"writes_half", {Ending::wrong_result}},
        {"writes_nan", {Ending::wrong_result}},
        {"writes_input", {Ending::wrong_result}},
        {"ragged", {Ending::timed, Ending::dropped}},
        {"misaligned", {Ending::invalid_access}},
        {"traps", {Ending::crashed}},
        {"not_repeatable", {Ending::not_deterministic}},
        {"too_much_shared", {Ending::does_not_fit}},
        {"spills", {Ending::spilled}},
        {"does_not_compile", {Ending::compile_failed}},
        {"missing_header", {Ending::compile_failed}},
        {"time_bomb", {Ending::compile_timeout}},
        {"memory_bomb", {Ending::compile_failed}},
    };
    prepare();
    ASSERT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    for (const Variant& variant : bad_op().variants) {
        bench->submit(bad_kernel(variant.name));
        bench->submit(bad_kernel("good"));
        const Outcome outcome = bench->next({}), good = bench->next({});
        EXPECT_TRUE(expected.at(variant.name).contains(outcome.ending))
            << variant.name << " ended as '" << info(outcome.ending).words << "': " << outcome.reason;
        EXPECT_TRUE(good.ok() || good.ending == Ending::dropped) << "after " << variant.name << ": " << good.reason;
        RecordProperty(variant.name, std::string{info(outcome.ending).name} + ": " + outcome.reason);
        std::printf("  %-16s %s: %s\n", variant.name.c_str(), std::string{info(outcome.ending).words}.c_str(),
                    outcome.reason.c_str());
    }
    bench.reset();
    EXPECT_THAT(children(), testing::IsEmpty());
}

// Goal: where a GPU tells no more than that a kernel failed, the emulator beside it names the line, the thread and the
// buffer.
TEST_F(WorkerOnGpu, TheEmulatorNamesTheLineOfWhatTheGpuOnlyNoticed) {
    prepare();
    ASSERT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    const std::map<std::string, std::string> expected{
        {"out_of_bounds", "0 bytes behind the end of argument 1"},
        {"null_write", "null pointer at bad.cu:"},
        {"misaligned", "misaligned at bad.cu:"},
        {"traps", "a trap at bad.cu:"},
    };
    for (const auto& [variant, found] : expected) {
        Outcome outcome = try_one(*bench, bad_kernel(variant));
        const std::string said = outcome.reason;
        explain(*bench, bad_kernel(variant), outcome);
        EXPECT_THAT(outcome.reason, testing::StartsWith(said));
        EXPECT_THAT(outcome.reason, HasSubstr(found)) << variant;
        EXPECT_THAT(outcome.reason, testing::ContainsRegex("bad\\.cu:[0-9]+ of '" + variant + "', block .*, thread "));
        std::printf("  %-16s %s\n", variant.c_str(), outcome.reason.c_str());
    }
    const Outcome counted = bench->count(bad_kernel("good"));
    ASSERT_EQ(counted.counters.size(), 1u) << counted.reason;
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
}

// Goal: an emulated part of the GPU's capability predicts, and its processes are gone before anything is timed.
TEST_F(WorkerOnGpu, AModelPredictsBeforeTheFirstTrial) {
    prepare(1 << 24);
    const std::size_t before = children().size();
    const std::vector<Config> configs{bad_kernel("good"), bad_kernel("does_not_compile"), bad_kernel("spills")};
    const Predictions predictions = bench->predict(configs, [] { return true; });
    EXPECT_LE(children().size(), before);
    if (predictions.model.empty()) GTEST_SKIP() << "no part is like " << bench->device().name;
    EXPECT_GT(predictions.time_us[0].value_or(0), 0);
    EXPECT_FALSE(predictions.time_us[1]);
    EXPECT_FALSE(predictions.time_us[2]) << *predictions.time_us[2] << " us, and " << try_one(*bench, configs[2]).reason;
    const Outcome measured = try_one(*bench, bad_kernel("good"));
    EXPECT_TRUE(measured.ok() && !measured.predicted) << measured.reason;
    std::printf("  predicted as on %s %.1f us, measured %.1f us\n", predictions.model.c_str(),
                predictions.time_us[0].value_or(0), measured.time_us);
}

TEST_F(WorkerOnGpu, TheNextCandidateAfterAHangIsTimedWithinTheLimitAndASecond) {
    prepare();
    ASSERT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    const auto start = std::chrono::steady_clock::now();
    bench->submit(bad_kernel("hang"));
    bench->submit(bad_kernel("good"));
    EXPECT_EQ(bench->next({}).ending, Ending::timed_out);
    const Outcome good = bench->next({});
    EXPECT_TRUE(good.ok() || good.ending == Ending::dropped);
    const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("  a hang, its end and the next candidate: %.2f s\n", took_s);  // said, not judged
}

TEST_F(WorkerOnGpu, AKernelThatIsWrongOnlyAtRaggedSizesFailsItsRecheck) {
    prepare();
    ASSERT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    const Verification ragged = bench->verify(bad_kernel("ragged"));
    ASSERT_TRUE(ragged.failure);
    EXPECT_EQ(ragged.failure->ending, Ending::wrong_result);
    EXPECT_FALSE(bench->verify(bad_kernel("good")).failure);
}

TEST_F(WorkerOnGpu, ASearchOverBadKernelsFindsTheGoodOne) {
    prepare();
    TuneOptions search;
    search.strategy = "exhaustive";
    const Tuning tuning = tune(*bench, bad_problem(bench->device().limits), search);
    ASSERT_TRUE(tuning.best);
    EXPECT_EQ(tuning.best->config.variant, "good");
    EXPECT_FALSE(tuning.verification.failure);
}

/// An op's default on a problem of some size: it is timed, its reference is what is expected, and it holds its
/// re-check.
void expect_default_holds(WorkerBench& bench, const char* name,
                          const std::vector<std::pair<std::string, Value>>& fields, const char* reference) {
    const auto ops = builtin_ops();
    const auto op = std::ranges::find(ops, name, &Op::name);
    ASSERT_NE(op, ops.end());
    const Instance instance = Instance::make(*op, fields, bench.device().limits);
    const Preparation preparation = bench.prepare(instance);
    EXPECT_EQ(preparation.reference, reference) << name;
    const Config config = instance.default_config();
    const Outcome outcome = try_one(bench, config);
    EXPECT_TRUE(outcome.ok()) << name << ' ' << config.text() << ": " << info(outcome.ending).words << ": "
                              << outcome.reason << outcome.log;
    const std::vector<Outcome> rounds = bench.rounds(std::span{&config, 1}, 5);
    EXPECT_EQ(rounds.at(0).samples_us.size(), 5u);
    const Verification verification = bench.verify(config);
    EXPECT_FALSE(verification.failure) << name << " on " << verification.failed_on << ": "
                                       << verification.failure->reason;
    std::printf("  %s: %.2f us, clock %.0f MHz, floor %.2f us, largest error %.3f of the bound, %d problems\n", name,
                rounds[0].time_us, rounds[0].clock_mhz, preparation.floor_us, verification.largest_error,
                verification.problems);
}

TEST_F(WorkerOnGpu, BuiltInOpsAreTimedAndHoldTheirRecheck) {
    using namespace std::string_literals;
    const auto size = [](std::int64_t n) { return Value{n}; };
    expect_default_holds(*bench, "softmax", {{"rows", size(513)}, {"cols", size(1000)}, {"dtype", "bf16"s}},
                         "CPU, fp64");
    expect_default_holds(*bench, "gemm", {{"m", size(2048)}, {"n", size(2048)}, {"k", size(2048)}, {"dtype", "bf16"s}},
                         "device, fp64, anchored");
    expect_default_holds(*bench, "gemm", {{"m", size(2048)}, {"n", size(2048)}, {"k", size(2048)}, {"dtype", "f32"s}},
                         "device, fp64, anchored");
}

}  // namespace
}  // namespace autotune
