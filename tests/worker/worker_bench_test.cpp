#include "tuner/worker/worker_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>

#include "autotune/error.h"
#include "tests/worker/bad_op.h"
#include "tuner/model/space.h"
#include "tuner/tune.h"
#include "tuner/worker/final_rounds.h"

namespace autotune {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

WorkerOptions options() {
    return {.worker = std::string{AUTOTUNE_BINARY_DIR} + "/bin/host_worker",
            .compile_workers = 2,
            .compile_limit_s = 2,
            .trial_limit_s = 2,
            .emulation_limit_s = 2,
            .effort = Effort::normal,
            .seed = 3,
            .cache_dir = std::string{AUTOTUNE_BINARY_DIR} + "/test-cache"};
}

/// A bench on the host worker with the bad kernels' problem ready.
class WorkerBenchTest : public testing::Test {
protected:
    WorkerBenchTest() : bench{make_worker_bench(options())}, instance{bad_problem(bench->device().limits)} {
        preparation = bench->prepare(instance);
    }
    std::unique_ptr<WorkerBench> bench;
    Instance instance;
    Preparation preparation;
};

TEST_F(WorkerBenchTest, SaysWhatItMeasuresWith) {
    EXPECT_EQ(bench->device().name, "HostDevice");
    EXPECT_EQ(preparation.reference, "CPU, fp64");
    EXPECT_EQ(preparation.method, "graph");
    EXPECT_GE(bench->capacity(), 2u);
}

// Goal: a problem beyond the GPU's memory is one message with both sides, said before anything of its size is computed.
TEST_F(WorkerBenchTest, AProblemBeyondTheMemoryIsRefusedAtOnceAndTheNextOneIsTried) {
    try {
        bench->prepare(bad_problem(bench->device().limits, std::int64_t{1} << 38));
        FAIL() << "it was prepared";
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), Error::Kind::device);
        EXPECT_THAT(e.what(), HasSubstr("n=274877906944 needs 8796.1 GB on the GPU (tensors twice 4398.0 GB, reference "
                                        "4398.0 GB), and this one has 1.1 GB"));
    }
    bench->prepare(instance);
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
}

// Goal: whatever a candidate does is its outcome, and the next candidate is timed all the same.
// Method: every kernel of tests/bad_kernels in one run, each followed by the good one.
TEST_F(WorkerBenchTest, EachKindOfFailureIsToldAndSurvived) {
    const std::map<std::string, std::pair<Ending, std::string>> expected{
        {"hang", {Ending::timed_out, "of running"}},
        {"null_write", {Ending::invalid_access, "CUDA_ERROR_ILLEGAL_ADDRESS"}},
        {"out_of_bounds", {Ending::out_of_bounds, "outside of 'y'"}},
        {"writes_nothing", {Ending::no_output, "nothing was written to 'y'"}},
        {"writes_half", {Ending::wrong_result, "y[32768] is nan"}},
        {"writes_nan", {Ending::wrong_result, "y[128] is nan"}},
        {"writes_input", {Ending::wrong_result, "it writes its input 'x'"}},
        {"ragged", {Ending::timed, ""}},
        {"misaligned", {Ending::invalid_access, ""}},
        {"traps", {Ending::crashed, "signal 6"}},
        {"not_repeatable", {Ending::not_deterministic, "other bits in 'y'"}},
        {"too_much_shared", {Ending::does_not_fit, "this GPU allows 232448"}},
        {"spills", {Ending::spilled, "spills 64 bytes, 'spills' allows 0"}},
        {"does_not_compile", {Ending::compile_failed, "identifier \"half16\" is undefined"}},
        {"missing_header", {Ending::compile_failed, ""}},
        {"time_bomb", {Ending::compile_timeout, "the compiler was ended after 2.0 s"}},
        {"good", {Ending::timed, ""}},
    };
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    for (const Variant& variant : bad_op().variants) {
        if (variant.name == "memory_bomb") continue;  // compile_pool_test has it
        const auto row = expected.find(variant.name);
        ASSERT_NE(row, expected.end()) << variant.name << " is new: say what it should end as";
        bench->submit(bad_kernel(variant.name));
        bench->submit(bad_kernel("good"));
        const Outcome outcome = bench->next({}), good = bench->next({});
        EXPECT_EQ(info(outcome.ending).name, info(row->second.first).name) << variant.name << ": " << outcome.reason;
        EXPECT_THAT(outcome.reason, HasSubstr(row->second.second)) << variant.name;
        EXPECT_TRUE(good.ok()) << "after " << variant.name << ": " << good.reason;
    }
    EXPECT_GE(bench->use().workers_replaced, 5);
}

TEST_F(WorkerBenchTest, WhatACrashedKernelPrintedIsItsLog) {
    try_one(*bench, bad_kernel("good"));
    EXPECT_THAT(try_one(*bench, bad_kernel("traps")).log, HasSubstr("last words of a kernel"));
}

// ---- The emulator beside the GPU.

std::string explanation(Bench& bench, const std::string& variant) {
    return bench.explain(bad_kernel(variant), try_one(bench, bad_kernel(variant)));
}

TEST_F(WorkerBenchTest, WhatACrashDidIsNamedByTheEmulatorThatRunsItAgain) {
    try_one(*bench, bad_kernel("good"));
    EXPECT_THAT(explanation(*bench, "null_write"),
                AllOf(StartsWith("emulated: "), HasSubstr("bad.cu:27 of 'null_write', block (0,0,0), thread (0,0,0)")));
    EXPECT_THAT(explanation(*bench, "out_of_bounds"),
                AllOf(HasSubstr("bad.cu:34 of 'out_of_bounds'"), HasSubstr("behind the end of argument 1")));
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
}

TEST_F(WorkerBenchTest, AnEmulatorThatFindsNothingOrCannotLookSaysSo) {
    try_one(*bench, bad_kernel("good"));
    EXPECT_EQ(explanation(*bench, "traps"), "emulated with the same inputs: nothing was found");
    EXPECT_EQ(explanation(*bench, "misaligned"), "not emulated: there is no PTX of it");
}

TEST_F(WorkerBenchTest, ARunOnTheEmulatorHasALimitAndTheNextOneIsMadeAllTheSame) {
    try_one(*bench, bad_kernel("good"));
    EXPECT_EQ(explanation(*bench, "hang"),
              "emulated with the same inputs: nothing was found; it was ended after 2.0 s of running");
    EXPECT_THAT(explanation(*bench, "null_write"), HasSubstr("bad.cu:27"));
}

TEST_F(WorkerBenchTest, WhatIsTooLargeToBeInterpretedRunsOnASmallProblemNearIt) {
    bench->prepare(bad_problem(bench->device().limits, (1 << 23) + 1));
    try_one(*bench, bad_kernel("good"));
    EXPECT_THAT(explanation(*bench, "null_write"), AllOf(StartsWith("emulated on n="), HasSubstr("bad.cu:27")));
    EXPECT_THAT(explanation(*bench, "traps"),
                AllOf(StartsWith("emulated on n="),
                      HasSubstr(": nothing was found; this problem is too large to be interpreted")));
}

TEST_F(WorkerBenchTest, WhatTheGpuTellsByItselfIsNotEmulated) {
    try_one(*bench, bad_kernel("good"));
    for (const char* variant : {"good", "writes_nan", "does_not_compile", "too_much_shared"})
        EXPECT_EQ(explanation(*bench, variant), "") << variant;
}

TEST_F(WorkerBenchTest, AnOutcomeKeepsTheGpusWordsBeforeTheEmulators) {
    try_one(*bench, bad_kernel("good"));
    Outcome outcome = try_one(*bench, bad_kernel("null_write"));
    const std::string said = outcome.reason;
    explain(*bench, bad_kernel("null_write"), outcome);
    EXPECT_THAT(outcome.reason, StartsWith(said + "; emulated: "));
}

TEST_F(WorkerBenchTest, CountsOnTheEmulatorWhatTheGpuTimes) {
    const Outcome timed = try_one(*bench, bad_kernel("good")), counted = bench->count(bad_kernel("good"));
    EXPECT_FALSE(timed.predicted);
    EXPECT_TRUE(timed.counters.empty());
    ASSERT_EQ(counted.counters.size(), 1u) << counted.reason;
    EXPECT_EQ(counted.counters[0].blocks, 256u);
    EXPECT_EQ(counted.counters[0].interior.global_load_bytes, 1024 * counted.counters[0].interior.blocks);
    const Outcome none = bench->count(bad_kernel("ragged"));
    EXPECT_EQ(none.ending, Ending::not_emulated);
    EXPECT_EQ(none.reason, "there is no PTX of it");
    bench->prepare(bad_problem(bench->device().limits, 1024));
    EXPECT_EQ(bench->count(bad_kernel("good")).counters.at(0).blocks, 4u);
}

TEST_F(WorkerBenchTest, OutcomesComeInTheOrderOfSubmissions) {
    const std::vector<std::string> order{"good", "time_bomb", "writes_nan", "good", "does_not_compile", "writes_half"};
    for (const std::string& variant : order) bench->submit(bad_kernel(variant));
    std::vector<Ending> endings;
    int idle_calls = 0;
    for (std::size_t i = 0; i < order.size(); ++i) endings.push_back(bench->next([&] { ++idle_calls; }).ending);
    EXPECT_THAT(endings, testing::ElementsAre(Ending::timed, Ending::compile_timeout, Ending::wrong_result,
                                              Ending::timed, Ending::compile_failed, Ending::wrong_result));
    EXPECT_GT(idle_calls, 5);  // the bomb alone takes two seconds
}

TEST_F(WorkerBenchTest, WhatIsCancelledIsForgotten) {
    bench->submit(bad_kernel("good"));
    bench->submit(bad_kernel("time_bomb"));
    bench->submit(bad_kernel("writes_nan"));
    bench->cancel();
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
}

TEST_F(WorkerBenchTest, RoundsGiveEachFinalistAsManySamples) {
    const std::vector<Config> finalists{bad_kernel("good"), bad_kernel("ragged")};
    for (const Config& config : finalists) ASSERT_TRUE(try_one(*bench, config).ok());
    const std::vector<Outcome> outcomes = bench->rounds(finalists, 7);
    ASSERT_EQ(outcomes.size(), 2u);
    EXPECT_EQ(outcomes[0].samples_us.size(), 7u);
    EXPECT_EQ(outcomes[1].samples_us.size(), 7u);
    EXPECT_DOUBLE_EQ(outcomes[0].time_us, 20000);
    EXPECT_DOUBLE_EQ(outcomes[1].time_us, 18000);
    EXPECT_FALSE(outcomes[0].tainted);
}

TEST(Disturbance, IsOfProcessesOfHeatAndOfClocksThatDiffer) {
    const std::vector<double> alike{1980, 1965, 1980}, apart{1980, 1905, 1980};
    EXPECT_EQ(disturbance({}, {}), "");
    EXPECT_EQ(disturbance({}, alike), "");
    EXPECT_EQ(disturbance({}, apart), "the clock was 1905 MHz for one finalist and 1980 for another");
    EXPECT_EQ(disturbance({.other_processes = 1}, apart), "1 other process on the GPU");
    EXPECT_EQ(disturbance({.other_processes = 2, .throttled = true}, {}), "2 other processes on the GPU");
    EXPECT_EQ(disturbance({.throttled = true}, alike), "heat or the hardware slowed the GPU down");
}

TEST_F(WorkerBenchTest, RoundsEndWhenFinalistsAreToldApart) {
    const std::vector<Config> apart{bad_kernel("good"), bad_kernel("ragged")}, alike{apart[0], apart[0]};
    ASSERT_TRUE(try_one(*bench, apart[0]).ok());
    EXPECT_EQ(bench->rounds(apart, 15)[0].samples_us.size(), 7u);
    EXPECT_GT(bench->rounds(alike, 9)[1].samples_us.size(), 7u);
}

TEST_F(WorkerBenchTest, WhatAProblemTookIsItsOwn) {
    ASSERT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    const BenchUse first = bench->use();
    EXPECT_GT(first.check_s, 0);
    EXPECT_GT(first.gpu_idle_share, 0);  // while it was compiled
    bench->prepare(instance);
    EXPECT_EQ(bench->use().check_s, 0);
    EXPECT_EQ(bench->use().time_s, 0);
    EXPECT_EQ(bench->use().gpu_idle_share, 0);
}

TEST_F(WorkerBenchTest, SaysWhenEachStageWas) {
    ASSERT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    std::map<std::string, Stage> stages;
    for (const Stage& stage : bench->use().stages) stages[stage.name] = stage;
    for (const char* name : {"driver starts", "device opens", "reference on the CPU", "problem filled", "trials"}) {
        ASSERT_TRUE(stages.contains(name)) << name;
        EXPECT_LE(stages[name].begin_s, stages[name].end_s) << name;
    }
    EXPECT_LE(stages["device opens"].end_s, stages["trials"].begin_s);
}

TEST_F(WorkerBenchTest, AFinalistThatEndsTheWorkerIsLeftOut) {
    ASSERT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    const std::vector<Config> finalists{bad_kernel("traps"), bad_kernel("good")};
    const std::vector<Outcome> outcomes = bench->rounds(finalists, 3);
    EXPECT_EQ(outcomes[0].ending, Ending::crashed);
    EXPECT_TRUE(outcomes[1].ok());
    EXPECT_EQ(outcomes[1].samples_us.size(), 3u);
}

TEST_F(WorkerBenchTest, AKernelThatIsWrongOnlyAtRaggedSizesFailsItsRecheck) {
    ASSERT_TRUE(try_one(*bench, bad_kernel("ragged")).ok());
    const Verification ragged = bench->verify(bad_kernel("ragged"));
    ASSERT_TRUE(ragged.failure);
    EXPECT_EQ(ragged.failure->ending, Ending::wrong_result);
    EXPECT_THAT(ragged.failed_on, HasSubstr("n="));
    const Verification good = bench->verify(bad_kernel("good"));
    EXPECT_FALSE(good.failure) << good.failure->reason;
    EXPECT_GE(good.problems, 5);                // 1, n - 1, n + 1, a prime and the op's own, beside the problem itself
    EXPECT_EQ(good.inputs, good.problems + 1);  // two of the problem itself
}

TEST_F(WorkerBenchTest, GivesTheBinaryThatWasTimed) {
    ASSERT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    const std::vector<Artefact> artefacts = bench->artefacts(bad_kernel("good"));
    ASSERT_EQ(artefacts.size(), 1u);
    EXPECT_FALSE(artefacts.front().kernels.empty());
    EXPECT_TRUE(bench->artefacts(bad_kernel("does_not_compile")).empty());
}

TEST(WorkerBench, GivesEveryBinaryOfAConfigOfSeveralSources) {
    Op op = bad_op();
    op.files["half.cu"] = "// the other half\n";
    for (Variant& variant : op.variants) {
        if (variant.name != "good") continue;
        variant.launches.push_back(variant.launches.front());
        variant.launches.back().source = "half.cu";
        variant.launches.back().entry = "ragged";
    }
    auto bench = make_worker_bench(options());
    bench->prepare(Instance::make(op, {}, bench->device().limits));
    ASSERT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    const std::vector<Artefact> artefacts = bench->artefacts(bad_kernel("good"));
    ASSERT_EQ(artefacts.size(), 2u);
    EXPECT_EQ(artefacts[0].kernels.front().name, "good");
    EXPECT_EQ(artefacts[1].kernels.front().name, "ragged");
}

// A missing header folder must not be remembered as the failure of each config that met it.
TEST(WorkerBench, ACompilerThatCannotWorkHereEndsTheRun) {
    Op op = bad_op();
    for (Variant& variant : op.variants)
        if (variant.name == "spills") variant.launches.front().entry = "no_headers";
    auto bench = make_worker_bench(options());
    bench->prepare(Instance::make(op, {}, bench->device().limits));
    bench->submit(bad_kernel("good"));
    bench->submit(bad_kernel("spills"));
    EXPECT_TRUE(bench->next({}).ok());
    try {
        bench->next({});
        FAIL() << "it ended as an outcome";
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), Error::Kind::compile);
        EXPECT_THAT(e.what(), HasSubstr("cuda_fp16.h"));
    }
}

// A grid that no constraint forbids and that has no value is the config's own fault, and no compiler's.
TEST(WorkerBench, ALaunchWithoutAValueIsNotValid) {
    Op op = bad_op();
    for (Variant& variant : op.variants)
        if (variant.name == "writes_half") variant.launches.front().grid.front() = Expression::parse("n // (n - n)");
    auto bench = make_worker_bench(options());
    bench->prepare(Instance::make(op, {}, bench->device().limits));
    ASSERT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    const Outcome outcome = try_one(*bench, bad_kernel("writes_half"));
    EXPECT_EQ(info(outcome.ending).name, info(Ending::not_valid).name) << outcome.reason;
    EXPECT_THAT(outcome.reason, HasSubstr("n // (n - n)"));
}

TEST_F(WorkerBenchTest, AWholeSearchFindsTheOnlyRightKernel) {
    TuneOptions search;
    search.strategy = "exhaustive";
    search.budget.trials = 30;
    const Tuning tuning = tune(*bench, instance, search);
    ASSERT_TRUE(tuning.best);
    EXPECT_EQ(tuning.best->config.variant, "good");  // `ragged` is faster, and struck out by its re-check
    EXPECT_FALSE(tuning.verification.failure);
}

TEST_F(WorkerBenchTest, AnotherProblemFollowsOnTheSameWorkers) {
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    const Instance other = bad_problem(bench->device().limits, 1000);
    bench->prepare(other);
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    EXPECT_EQ(try_one(*bench, bad_kernel("ragged")).ending, Ending::wrong_result);
}

/// The bad kernels' op with so much work that its device reference is asked, and that reference's kernel.
Op op_with_device_reference(const std::string& entry) {
    Op op = bad_op();
    op.flops = Expression::parse("n * 100000");
    LaunchSpec launch{.entry = entry, .source = "bad.cu"};
    launch.grid = {Expression::parse("ceil_div(n, 256)")};
    launch.block = {Expression::parse("256")};
    launch.arguments = {{.expression = Expression::parse("x")},
                        {.kind = ArgumentSpec::Kind::reference_value, .tensor = "y"},
                        {.kind = ArgumentSpec::Kind::reference_magnitude, .tensor = "y"},
                        {.expression = Expression::parse("i32(n)")}};
    op.reference.launches = {launch};
    return op;
}

TEST(WorkerBench, WhereTheCpuWouldTakeLongADeviceReferenceStandsIn) {
    const Op op = op_with_device_reference("scale_reference");
    auto bench = make_worker_bench(options());
    const Preparation preparation = bench->prepare(Instance::make(op, {}, bench->device().limits));
    EXPECT_EQ(preparation.reference, "device, fp64, anchored");
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    EXPECT_EQ(try_one(*bench, bad_kernel("writes_half")).ending, Ending::wrong_result);
    // The worker's successor computes it again.
    EXPECT_EQ(try_one(*bench, bad_kernel("null_write")).ending, Ending::invalid_access);
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
}

TEST(WorkerBench, ADeviceReferenceThatDisagreesWithTheCpusIsRefused) {
    const Op op = op_with_device_reference("lying_reference");
    auto bench = make_worker_bench(options());
    try {
        bench->prepare(Instance::make(op, {}, bench->device().limits));
        FAIL() << "it was believed";
    } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("the device reference of 'bad' disagrees with its C++ reference on n=37"));
    }
}

TEST(WorkerBench, AKernelCanBeTheReference) {
    Op op = bad_op();
    op.reference.kind = Reference::Kind::kernel;
    op.reference.kernel = "good";
    auto bench = make_worker_bench(options());
    EXPECT_EQ(bench->prepare(Instance::make(op, {}, bench->device().limits)).reference, "kernel good");
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    EXPECT_EQ(try_one(*bench, bad_kernel("writes_nan")).ending, Ending::wrong_result);
}

TEST(WorkerBench, LeavesNoProcessBehind) {
    {
        auto bench = make_worker_bench(options());
        bench->prepare(bad_problem(bench->device().limits));
        EXPECT_FALSE(children().empty());
        bench->submit(bad_kernel("good"));
        bench->submit(bad_kernel("time_bomb"));
        bench->submit(bad_kernel("hang"));
        EXPECT_TRUE(bench->next({}).ok());
    }
    EXPECT_THAT(children(), testing::IsEmpty());
}

TEST(WorkerBench, ListsDevicesWithoutADeviceOfItsOwn) {
    const std::vector<DeviceIdentity> devices = list_devices(options());
    ASSERT_EQ(devices.size(), 1u);
    EXPECT_EQ(devices[0].name, "HostDevice");
    // The worker that was asked is the next bench's, and goes with it.
    EXPECT_EQ(children().size(), 1u);
    make_worker_bench(options())->device();
    EXPECT_THAT(children(), testing::IsEmpty());
}

TEST(WorkerBench, AGpuThatIsNotThereIsAnError) {
    WorkerOptions second = options();
    second.device = "1";
    auto bench = make_worker_bench(second);
    EXPECT_THROW(bench->device(), Error);
}

TEST(WorkerBench, AWorkerProgramThatIsNotThereIsAnError) {
    WorkerOptions nowhere = options();
    nowhere.worker = "/nowhere/autotune-worker";
    EXPECT_THROW(make_worker_bench(nowhere), Error);
}

TEST(WorkerBench, AReferenceThatCrashesIsAnErrorThatNamesTheOp) {
    Op op = bad_op();
    op.files["bad.cpp"] =
        "#include <autotune/reference.hpp>\n#include <csignal>\nAUTOTUNE_REFERENCE(bad) { (void)call; raise(SIGABRT); "
        "}\n";
    auto bench = make_worker_bench(options());
    const Instance instance = Instance::make(op, {{"n", std::int64_t{4096}}}, bench->device().limits);
    try {
        bench->prepare(instance);
        FAIL() << "it was prepared";
    } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("the C++ reference of 'bad' failed"));
        EXPECT_THAT(e.what(), HasSubstr("signal 6"));
    }
}

/// What an error says when the op's problem is completed and prepared.
std::string trouble_with(const Op& op) {
    auto bench = make_worker_bench(options());
    try {
        bench->prepare(bench->sized(Instance::make(op, {}, bench->device().limits)));
    } catch (const Error& e) {
        return e.what();
    }
    return {};
}

TEST(WorkerBench, AReferenceThatReadsJunkIsRefused) {
    Op op = bad_op();
    op.tensors.front().fill.junk_beyond = Expression::parse("n - 1");
    EXPECT_THAT(trouble_with(op), HasSubstr("the reference gives nan at y[65535]"));
}

// ---- Dims that the inputs say.

Op op_with_inputs(const std::string& code) {
    Op op = bad_op();
    op.fields.front().from_inputs = true;
    op.inputs_cpp = "inputs.cpp";
    op.files["inputs.cpp"] = "#include <autotune/reference.hpp>\n" + code +
                             "AUTOTUNE_INPUTS(bad) {\n"
                             "    const auto& x = call.tensor(\"x\");\n"
                             "    for (int i = 0; i < x.shape[0]; ++i) static_cast<float*>(x.data)[i] = float(i % 7);\n"
                             "}\n";
    return op;
}

// Goal: a dim that comes from the inputs is the generator's, for the problem and for each seed of the re-check.
TEST(WorkerBench, AnInputGeneratorSetsDims) {
    const Op op = op_with_inputs("AUTOTUNE_SIZES(bad) { call.set_size(\"n\", 1024 * std::int64_t(call.seed())); }\n");
    auto bench = make_worker_bench(options());
    const Instance asked = Instance::make(op, {}, bench->device().limits), instance = bench->sized(asked);
    EXPECT_EQ(instance.problem().text(), "n=3072");  // the seed is 3
    bench->prepare(instance);
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    const Verification good = bench->verify(bad_kernel("good"));
    EXPECT_FALSE(good.failure) << good.failure->reason;
    EXPECT_EQ(good.inputs, good.problems + 1);
    EXPECT_EQ(try_one(*bench, bad_kernel("writes_half")).reason.substr(0, 7), "y[1536]");
}

TEST(WorkerBench, AGeneratorThatSetsNoLegalDimIsRefused) {
    EXPECT_THAT(trouble_with(op_with_inputs("")),
                HasSubstr("the input generator of 'bad' has no AUTOTUNE_SIZES, which sets 'n'"));
    EXPECT_THAT(trouble_with(op_with_inputs("AUTOTUNE_SIZES(bad) {}\n")),
                HasSubstr("the input generator of 'bad' sets 'n' to 0, and a dim is from 1 to 2^40"));
}

TEST(WorkerBench, AReferenceThatGivesNanIsRefused) {
    Op op = bad_op();
    op.files["bad.cpp"] =
        "#include <autotune/reference.hpp>\n#include <cmath>\n"
        "AUTOTUNE_REFERENCE(bad) { auto y = call.output(\"y\"); for (int i = 0; i < 4096; ++i) y.set(i, i == 5 ? NAN : "
        "1); }\n";
    auto bench = make_worker_bench(options());
    try {
        bench->prepare(Instance::make(op, {{"n", std::int64_t{4096}}}, bench->device().limits));
        FAIL() << "it was prepared";
    } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("the reference gives nan at y[5]"));
    }
}

// Goal: what predicts is gone before anything is timed, and nothing that a config does there is a trial's outcome.
// Method: the host worker as the emulated part runs the PTX that it has of some kernels, which is harmless; the times
// of trials are what its script says.
TEST_F(WorkerBenchTest, PredictsInProcessesThatAreGoneBeforeTheFirstTrial) {
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
    const std::size_t before = children().size();
    std::size_t most = 0;
    const std::vector<Config> configs{bad_kernel("good"), bad_kernel("does_not_compile"), bad_kernel("spills"),
                                      bad_kernel("traps"), bad_kernel("ragged")};
    const Predictions predictions = bench->predict(configs, [&] {
        most = std::max(most, children().size());
        return true;
    });
    EXPECT_EQ(children().size(), before);
    EXPECT_GT(most, before);
    EXPECT_EQ(predictions.model, "NVIDIA H100 80GB HBM3") << "of capability 9.0, and the smaller one";
    ASSERT_EQ(predictions.time_us.size(), configs.size());
    EXPECT_GT(predictions.time_us[0].value_or(0), 0);
    EXPECT_GT(predictions.time_us[3].value_or(0), 0) << "it traps on the GPU alone";
    for (const std::size_t none : {1u, 2u, 4u}) EXPECT_FALSE(predictions.time_us[none]) << configs[none].text();
    EXPECT_NEAR(try_one(*bench, bad_kernel("good")).time_us, 20000, 1);
    EXPECT_EQ(try_one(*bench, bad_kernel("traps")).ending, Ending::crashed);
    EXPECT_THAT(bench->use().stages, testing::Contains(testing::Field(&Stage::name, "predictions")));
}

// Goal: a model that is at a loss or slow costs a search its seconds and nothing else.
TEST_F(WorkerBenchTest, PredictionsThatHangOrAreGivenUpLeaveTheBenchFitForTrials) {
    const std::vector<Config> configs{bad_kernel("hang"), bad_kernel("good")};
    EXPECT_FALSE(bench->predict(configs, [] { return true; }).time_us[0]);
    EXPECT_FALSE(bench->predict(configs, [] { return false; }).time_us[0]);
    EXPECT_TRUE(try_one(*bench, bad_kernel("good")).ok());
}

}  // namespace
}  // namespace autotune
