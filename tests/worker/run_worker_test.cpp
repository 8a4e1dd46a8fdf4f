#include "tuner/worker/run_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "autotune/error.h"
#include "tests/support/host_device.h"

namespace autotune {
namespace {

using testing::HasSubstr;

constexpr std::int64_t rows = 8, cols = 128;

/// y = 2 x on a device whose kernels are host functions: the problem of every test here.
class RunWorkerTest : public testing::Test {
protected:
    RunWorkerTest() {
        device.told.limits.l2_bytes = 8192;  // three times this is three sets of the problem
        device.define(
            "good", [](const HostCall& call) { scale(call, 0, rows * cols); }, 20);
        worker.prepare(problem());
        give_reference(worker);
    }

    static void scale(const HostCall& call, std::int64_t begin, std::int64_t end) {
        const auto* x = call.pointer<const float>(0);
        auto* y = call.pointer<float>(1);
        for (std::int64_t i = begin; i < end; ++i) y[i] = 2 * x[i];
    }

    static ProblemTask problem() {
        TensorTask x{.name = "x",
                     .role = Role::in,
                     .shape = {rows, cols},
                     .strides = {cols, 1},
                     .elements = rows * cols,
                     .bytes = rows * cols * 4,
                     .fill = {.kind = FillSpec::Kind::normal, .seed = 7, .stream = 0}};
        TensorTask y = x;
        y.name = "y";
        y.role = Role::out;
        y.bound = {.of_value = 1e-6, .of_magnitude = 0, .absolute = 1e-30};
        return {.slot = 0, .tensors = {x, y}};
    }

    /// 2 x in double, from the inputs that the generator makes.
    static void give_reference(RunWorker& to, int slot = 0) {
        std::vector<float> x(rows * cols);
        HostDevice scratch;  // the same bits on every device
        const Buffer buffer = scratch.allocate(x.size() * 4, 0);
        scratch.fill(buffer, DType::f32, x.size(), problem().tensors[0].fill);
        scratch.read(buffer, 0, std::as_writable_bytes(std::span{x}));
        std::vector<double> value, magnitude;
        for (const float v : x) value.push_back(2.0 * static_cast<double>(v));
        for (const double v : value) magnitude.push_back(std::abs(v));
        std::vector<MappedMemory> values;
        values.emplace_back(sealed_memory(std::as_bytes(std::span{value})), 1 << 20);
        values.emplace_back(sealed_memory(std::as_bytes(std::span{magnitude})), 1 << 20);
        to.set_reference({.slot = slot}, std::move(values));
    }

    static CandidateTask candidate(const std::string& entry) {
        CandidateTask task{.sources = {"scale.cu"}, .artefacts = {Artefact{.arch = "sm_90"}}};
        task.sequence.launches.push_back(
            {.entry = entry, .source = "scale.cu", .arguments = {BufferArgument{0}, BufferArgument{1}}});
        return task;
    }

    static TrialTask trial(const std::string& entry) {
        return {.candidate = candidate(entry), .plan = {.warmup = 1, .samples = 5}};
    }

    Outcome run(const std::string& entry, HostKernel kernel, double time_us = 20) {
        device.define(entry, std::move(kernel), time_us);
        return worker.trial(trial(entry));
    }

    HostDevice device;
    RunWorker worker{device};
};

TEST_F(RunWorkerTest, ARightCandidateIsTimed) {
    const Outcome outcome = worker.trial(trial("good"));
    EXPECT_EQ(outcome.ending, Ending::timed) << outcome.reason;
    EXPECT_EQ(outcome.samples_us.size(), 5u);
    EXPECT_DOUBLE_EQ(outcome.time_us, 20);
    EXPECT_EQ(outcome.method, "graph");
    EXPECT_LT(outcome.max_error, 1);
}

TEST_F(RunWorkerTest, ACandidateThatWritesNothingIsNotSavedByAnEarlierOne) {
    EXPECT_TRUE(worker.trial(trial("good")).ok());
    const Outcome outcome = run("nothing", writing_nothing());
    EXPECT_EQ(outcome.ending, Ending::no_output);
    EXPECT_EQ(outcome.reason, "nothing was written to 'y': every element still holds the poison value");
}

TEST_F(RunWorkerTest, UnwrittenElementsAreCountedAndNamed) {
    const Outcome outcome = run("half", [](const HostCall& call) { scale(call, 0, rows * cols / 2); });
    EXPECT_EQ(outcome.ending, Ending::wrong_result);
    EXPECT_THAT(outcome.reason, HasSubstr("y[4,0] is nan, reference "));
    EXPECT_THAT(outcome.reason, HasSubstr("512 of 1024 elements differ"));
    EXPECT_THAT(outcome.reason, HasSubstr("all bad elements still hold the poison value"));
}

TEST_F(RunWorkerTest, OneWrongElementIsEnough) {
    const Outcome outcome = run("one", [](const HostCall& call) {
        scale(call, 0, rows * cols);
        call.pointer<float>(1)[777] *= 1.001f;
    });
    EXPECT_EQ(outcome.ending, Ending::wrong_result);
    EXPECT_THAT(outcome.reason, HasSubstr("y[6,9] is "));
    EXPECT_THAT(outcome.reason, HasSubstr("1 of 1024 elements differ"));
    EXPECT_GT(outcome.max_error, 1);
}

TEST_F(RunWorkerTest, NanNeverPasses) {
    const Outcome outcome = run("nan", writing_nan([](const HostCall& call) { scale(call, 0, rows * cols); }, 1, 5));
    EXPECT_EQ(outcome.ending, Ending::wrong_result);
    EXPECT_THAT(outcome.reason, HasSubstr("y[0,5] is nan"));
}

TEST_F(RunWorkerTest, AByteBehindABufferIsSeenOnEitherSide) {
    const HostKernel good = [](const HostCall& call) { scale(call, 0, rows * cols); };
    const Outcome behind = run("behind", writing_outside(good, 1, 0));
    EXPECT_EQ(behind.ending, Ending::out_of_bounds);
    EXPECT_EQ(behind.reason, "it writes outside of 'y', 1 bytes behind its last");
    const Outcome before = run("before", writing_outside(good, 0, -1));
    EXPECT_EQ(before.ending, Ending::out_of_bounds);
    EXPECT_EQ(before.reason, "it writes outside of 'x', 1 bytes before its start");
    EXPECT_TRUE(worker.trial(trial("good")).ok());
}

TEST_F(RunWorkerTest, AnInputMayNotBeWritten) {
    const Outcome outcome = run("writes_x", [](const HostCall& call) {
        scale(call, 0, rows * cols);
        call.pointer<float>(0)[3] = 1;
    });
    EXPECT_EQ(outcome.ending, Ending::wrong_result);
    EXPECT_EQ(outcome.reason, "it writes its input 'x'");
    EXPECT_TRUE(worker.trial(trial("good")).ok());
}

TEST_F(RunWorkerTest, TwoRunsThatDifferAreNotDeterministic) {
    const auto wobbling = [](const HostCall& call) {
        scale(call, 0, rows * cols);
        static int turn = 0;
        auto* y = call.pointer<float>(1);
        y[9] = std::nextafter(y[9], static_cast<float>(turn++ % 2 ? 10 : -10));
    };
    EXPECT_EQ(run("wobbling", wobbling).ending, Ending::not_deterministic);
    TrialTask allowed = trial("wobbling");
    allowed.candidate.deterministic = false;
    EXPECT_EQ(worker.trial(allowed).ending, Ending::timed);
}

TEST_F(RunWorkerTest, WhatAKernelReadsBeforeItWritesItShows) {
    // y keeps what it held where the poison is a plain number: right in the first run, wrong in the second.
    const Outcome outcome = run("reads_poison", [](const HostCall& call) {
        auto* y = call.pointer<float>(1);
        const float before = y[0];
        scale(call, 0, rows * cols);
        if (!std::isnan(before)) y[0] = before;
    });
    EXPECT_EQ(outcome.ending, Ending::wrong_result) << outcome.reason;
}

TEST_F(RunWorkerTest, AResultThatOnlyTheFirstLaunchGetsRightIsSeen) {
    const Outcome outcome = run("first_only", [](const HostCall& call) {
        scale(call, 0, rows * cols);
        static int launches = 0;
        if (++launches > 4) call.pointer<float>(1)[0] = 0;
    });
    EXPECT_EQ(outcome.ending, Ending::wrong_result);
    EXPECT_THAT(outcome.reason, HasSubstr("after launches in a row"));
}

// Goal: a stray write that only later launches make is found, and blamed on nobody else.
// Method: a kernel whose two checked launches are clean; once it is timed, once dropped after a sample.
TEST_F(RunWorkerTest, AStrayWriteOfALaterLaunchIsItsOwn) {
    int launches = 0;
    device.define(
        "stray",
        [&](const HostCall& call) {
            scale(call, 0, rows * cols);
            if (++launches > 2) call.pointer<unsigned char>(1)[rows * cols * 4] = 1;
        },
        20);
    const Outcome timed = worker.trial(trial("stray"));
    EXPECT_EQ(timed.ending, Ending::out_of_bounds);
    EXPECT_EQ(timed.reason, "after launches in a row it writes outside of 'y', 1 bytes behind its last");
    EXPECT_TRUE(worker.trial(trial("good")).ok());

    TrialTask slow = trial("stray");
    slow.plan.drop_above_us = 15;
    launches = 0;
    EXPECT_EQ(worker.trial(slow).ending, Ending::dropped);
    ASSERT_GT(launches, 2);
    const Outcome next = worker.trial(trial("good"));
    EXPECT_TRUE(next.ok()) << next.reason;
}

// Method: nothing is timed, as where a winner is checked again, so that no later look finds it.
TEST_F(RunWorkerTest, AStrayWriteOfTheSecondRunAloneIsFound) {
    int launches = 0;
    device.define(
        "stray",
        [&](const HostCall& call) {
            scale(call, 0, rows * cols);
            if (++launches == 2) call.pointer<unsigned char>(1)[rows * cols * 4] = 1;
        },
        20);
    TrialTask task = trial("stray");
    task.measure = false;
    const Outcome outcome = worker.trial(task);
    EXPECT_EQ(outcome.ending, Ending::out_of_bounds);
    EXPECT_EQ(outcome.reason, "it writes outside of 'y', 1 bytes behind its last");
}

TEST_F(RunWorkerTest, AHopelesslySlowCandidateIsDropped) {
    TrialTask task = trial("good");
    task.plan.drop_above_us = 15;
    const Outcome outcome = worker.trial(task);
    EXPECT_EQ(outcome.ending, Ending::dropped);
    EXPECT_DOUBLE_EQ(outcome.time_us, 20);
}

// Goal: a candidate that its one checked run shows to be slow costs that run and no sample.
// Method: a limit well below the time of the run, one that it just misses, and one that it meets.
TEST_F(RunWorkerTest, ALongCandidateIsDroppedByTheTimeOfItsCheckedRun) {
    const auto tried = [&](double limit_us) {
        device.define(
            "long", [](const HostCall& call) { scale(call, 0, rows * cols); }, 10'000);
        TrialTask task = trial("long");
        task.plan.drop_above_us = limit_us;
        device.launches = 0;
        return worker.trial(task);
    };
    const Outcome slow = tried(8'000);
    EXPECT_EQ(slow.ending, Ending::dropped);
    EXPECT_EQ(device.launches, 1);
    EXPECT_LE(slow.time_us, 10'000) << "a lower bound";
    EXPECT_GT(slow.time_us, 8'000);
    EXPECT_EQ(tried(9'500).ending, Ending::dropped);
    EXPECT_GT(device.launches, 1) << "a first launch may cost so much";
    EXPECT_EQ(tried(10'500).ending, Ending::timed);
    device.told.emulated = true;
    EXPECT_EQ(tried(8'000).ending, Ending::dropped);
    EXPECT_GT(device.launches, 1) << "by a sample, since an emulation has a clock of its own";
}

// Goal: a trial beside another process or a slowdown is marked. Method: a watch that says so.
TEST_F(RunWorkerTest, ATrialThatIsDisturbedIsMarked) {
    for (const DeviceState& state :
         {DeviceState{.other_processes = 1}, DeviceState{.throttled = true}, DeviceState{}}) {
        int looks = 0;
        RunWorker watched{device, {}, [&] {
                              ++looks;
                              return state;
                          }};
        watched.prepare(problem());
        give_reference(watched);
        for (int i = 0; i < 2; ++i)
            EXPECT_EQ(watched.trial(trial("good")).tainted, state.other_processes > 0 || state.throttled);
        EXPECT_GE(looks, 1);
    }
}

TEST_F(RunWorkerTest, FasterThanTheDeviceCanBeIsAnError) {
    TrialTask task = trial("good");
    task.floor_us = 25;
    const Outcome outcome = worker.trial(task);
    EXPECT_EQ(outcome.ending, Ending::below_floor);
    EXPECT_THAT(outcome.reason, HasSubstr("20 us is faster than the device can be"));
}

TEST_F(RunWorkerTest, AFaultThatTheContextSurvivesCostsOneCandidate) {
    const Outcome outcome = run("too_large", not_fitting());
    EXPECT_EQ(outcome.ending, Ending::does_not_fit);
    EXPECT_FALSE(worker.lost());
    EXPECT_TRUE(worker.trial(trial("good")).ok());
}

TEST_F(RunWorkerTest, AfterAStickyFaultTheWorkerIsLost) {
    const Outcome outcome = run("faulting", faulting());
    EXPECT_EQ(outcome.ending, Ending::invalid_access);
    EXPECT_THAT(outcome.reason, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
    EXPECT_TRUE(worker.lost());
}

TEST_F(RunWorkerTest, AStrayWriteIntoTheReferenceBlamesNobodyElse) {
    // Goal: a candidate that overwrites the reference and passes must not make the next one fail.
    // Method: the write goes through the buffer's number.
    // The reference's buffers stand behind x's pristine copy and y's saved run: ids 3 and 4 of a fresh device.
    HostDevice fresh;
    fresh.told.limits = device.told.limits;
    RunWorker other{fresh};
    fresh.define(
        "good", [](const HostCall& call) { scale(call, 0, rows * cols); }, 20);
    Buffer reference{};
    fresh.define("stray", [&](const HostCall& call) {
        scale(call, 0, rows * cols);
        const double wrong = 1e9;
        if (reference.id) fresh.write(reference, 0, std::as_bytes(std::span{&wrong, 1}));
    });
    other.prepare(problem());
    give_reference(other);
    reference.id = 3;
    EXPECT_EQ(other.trial(trial("stray")).ending, Ending::wrong_result);  // it fails by its own deed
    reference.id = 0;
    EXPECT_TRUE(other.trial(trial("good")).ok());
}

TEST_F(RunWorkerTest, AMissingKernelIsALaunchThatFails) {
    EXPECT_EQ(worker.trial(trial("absent")).ending, Ending::launch_failed);
}

TEST_F(RunWorkerTest, ScratchBeyondTheMemoryIsOutOfMemory) {
    TrialTask task = trial("good");
    task.candidate.sequence.scratch.push_back({.name = "partial", .bytes = 1ull << 40});
    EXPECT_EQ(worker.trial(task).ending, Ending::out_of_memory);
    EXPECT_TRUE(worker.trial(trial("good")).ok());
}

TEST_F(RunWorkerTest, ThousandsOfCandidatesLeaveNothingBehind) {
    TrialTask task = trial("good");
    task.candidate.sequence.scratch.push_back({.name = "partial", .bytes = 1000});
    worker.trial(task);
    const int buffers = device.live_buffers();
    for (int i = 0; i < 1000; ++i) worker.trial(task);
    EXPECT_EQ(device.live_buffers(), buffers);
    EXPECT_EQ(device.live_modules(), 0);
}

TEST_F(RunWorkerTest, ScratchIsGuardedAndPoisoned) {
    TrialTask task = trial("with_scratch");
    task.candidate.sequence.scratch.push_back({.name = "partial", .bytes = 64});
    task.candidate.sequence.launches[0].arguments.push_back(BufferArgument{2});
    bool poisoned = false;
    device.define("with_scratch", [&](const HostCall& call) {
        poisoned = poisoned || call.pointer<unsigned char>(2)[0] == first_poison;
        scale(call, 0, rows * cols);
        call.pointer<unsigned char>(2)[64] = 1;
    });
    const Outcome outcome = worker.trial(task);
    EXPECT_EQ(outcome.ending, Ending::out_of_bounds);
    EXPECT_THAT(outcome.reason, HasSubstr("'partial'"));
    EXPECT_TRUE(poisoned);
}

TEST_F(RunWorkerTest, AProblemBeyondTheMemoryIsAnErrorWithItsParts) {
    HostDevice small;
    small.memory = 10'000;
    RunWorker other{small};
    try {
        other.prepare(problem());
        FAIL() << "it was prepared";
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), Error::Kind::device);
        EXPECT_THAT(e.what(), HasSubstr("on the GPU (tensors twice "));
        EXPECT_THAT(e.what(), HasSubstr(", which has 10.0 kB free"));
    }
    EXPECT_EQ(small.live_buffers(), 0);
}

TEST_F(RunWorkerTest, BuffersRotateUntilTheCacheIsCold) {
    EXPECT_FALSE(worker.warm(0));
    device.told.limits.l2_bytes = 1 << 26;  // more than the most sets that are made hold
    ProblemTask task = problem();
    task.slot = 5;
    worker.prepare(task);
    EXPECT_TRUE(worker.warm(5));
}

TEST_F(RunWorkerTest, FinalistsAreTimedInTheOrderAsked) {
    device.define(
        "other", [](const HostCall& call) { scale(call, 0, rows * cols); }, 30);
    CandidateTask first = candidate("good"), second = candidate("other");
    second.id = 1;
    worker.load(first);
    worker.load(second);
    const RoundSamples round = worker.round({.order = {1, 0, 1}, .plan = {.warmup = 0, .samples = 1}});
    ASSERT_EQ(round.samples.size(), 3u);
    EXPECT_DOUBLE_EQ(round.samples[0].time_us[0], 30);
    EXPECT_DOUBLE_EQ(round.samples[1].time_us[0], 20);
    worker.unload();
    EXPECT_THROW(worker.round({.order = {0}}), Error);
}

TEST_F(RunWorkerTest, WhatLiesBetweenTheRowsOfAPitchedOutputIsNoResult) {
    ProblemTask task = problem();
    task.slot = 3;
    task.tensors[1].strides = {cols + 8, 1};
    task.tensors[1].bytes = ((rows - 1) * (cols + 8) + cols) * 4;
    worker.prepare(task);
    give_reference(worker, 3);
    device.define("pitched", [](const HostCall& call) {
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < cols; ++c)
                call.pointer<float>(1)[r * (cols + 8) + c] = 2 * call.pointer<const float>(0)[r * cols + c];
    });
    TrialTask pitched = trial("pitched");
    pitched.candidate.slot = 3;
    const Outcome outcome = worker.trial(pitched);
    EXPECT_TRUE(outcome.ok()) << outcome.reason;
}

// Goal: a pitch is other people's memory.
// Method: one byte right behind a row, or right before the next, of rows and of columns that lie apart.
TEST_F(RunWorkerTest, WhatLiesBetweenTheRowsOfAnOutputIsNotToBeWritten) {
    const auto outcome_of = [&](std::int64_t row, std::int64_t column, std::int64_t byte) {
        ProblemTask task = problem();
        task.slot = 3;
        task.tensors[1].strides = {row, column};
        task.tensors[1].bytes = static_cast<std::uint64_t>((rows - 1) * row + (cols - 1) * column + 1) * 4;
        worker.prepare(task);
        give_reference(worker, 3);
        device.define("spills_over", [=](const HostCall& call) {
            for (std::int64_t i = 0; i < rows * cols; ++i)
                call.pointer<float>(1)[i / cols * row + i % cols * column] = 2 * call.pointer<const float>(0)[i];
            if (byte > 0) call.pointer<unsigned char>(1)[byte] = 1;
        });
        TrialTask spills = trial("spills_over");
        spills.candidate.slot = 3;
        return worker.trial(spills);
    };
    constexpr std::int64_t pitch = cols + 8, high = rows + 3;
    EXPECT_TRUE(outcome_of(pitch, 1, 0).ok());
    for (const std::int64_t byte : {(2 * pitch + cols) * 4, 3 * pitch * 4 - 1}) {
        const Outcome outcome = outcome_of(pitch, 1, byte);
        EXPECT_EQ(outcome.ending, Ending::out_of_bounds);
        EXPECT_EQ(outcome.reason, "it writes between the rows of 'y', behind y[2,127]");
    }
    EXPECT_TRUE(outcome_of(1, high, 0).ok());
    EXPECT_EQ(outcome_of(1, high, (5 * high + rows) * 4).reason, "it writes between the rows of 'y', behind y[7,5]");
    EXPECT_TRUE(outcome_of(2, 2 * high, 0).ok());
    EXPECT_EQ(outcome_of(2, 2 * high, 4).reason, "it writes between the rows of 'y', behind y[0,0]");
}

// ---- In-place tensors: z = z + 1.

class InPlaceTest : public testing::Test {
protected:
    InPlaceTest() {
        device.told.limits.l2_bytes = 256;
        TensorTask z{.name = "z",
                     .role = Role::inout,
                     .shape = {64},
                     .strides = {1},
                     .elements = 64,
                     .bytes = 256,
                     .fill = {.kind = FillSpec::Kind::constant, .low = 5},
                     .bound = {.of_value = 1e-6}};
        worker.prepare({.slot = 0, .tensors = {z}});
        const std::vector<double> six(64, 6.0);
        std::vector<MappedMemory> values;
        values.emplace_back(sealed_memory(std::as_bytes(std::span{six})), 1 << 20);
        values.emplace_back(sealed_memory(std::as_bytes(std::span{six})), 1 << 20);
        worker.set_reference({.slot = 0}, std::move(values));
    }
    HostDevice device;
    RunWorker worker{device};
};

TEST_F(InPlaceTest, EachRunFindsThePristineValue) {
    std::vector<float> found;
    device.define("add", [&](const HostCall& call) {
        auto* z = call.pointer<float>(0);
        found.push_back(z[0]);
        for (int i = 0; i < 64; ++i) z[i] += 1;
    });
    CandidateTask add{.sources = {"add.cu"}, .artefacts = {Artefact{}}};
    add.sequence.launches.push_back({.entry = "add", .source = "add.cu", .arguments = {BufferArgument{0}}});
    const Outcome outcome = worker.trial({.candidate = add, .plan = {.warmup = 1, .samples = 4}});
    EXPECT_EQ(outcome.ending, Ending::timed) << outcome.reason;
    EXPECT_GT(found.size(), 6u);
    EXPECT_THAT(found, testing::Each(5.0f));
}

// ---- References that the device computes.

TEST_F(RunWorkerTest, ADeviceReferenceIsHeldAgainstTheCpusFirst) {
    device.define("reference", [](const HostCall& call) {
        const auto* x = call.pointer<const float>(0);
        for (std::int64_t i = 0; i < rows * cols; ++i) {
            call.pointer<double>(1)[i] = 2.0 * static_cast<double>(x[i]);
            call.pointer<double>(2)[i] = std::abs(2.0 * static_cast<double>(x[i]));
        }
    });
    ReferenceTask task{.slot = 0, .kind = ReferenceTask::Kind::device, .candidate = candidate("reference")};
    task.candidate.sequence.scratch = {{.name = "value", .bytes = rows * cols * 8},
                                       {.name = "magnitude", .bytes = rows * cols * 8}};
    task.candidate.sequence.launches[0].arguments = {BufferArgument{0}, BufferArgument{2}, BufferArgument{3}};
    for (const Comparison& comparison : worker.anchor(task)) EXPECT_EQ(comparison.bad, 0u);
    worker.set_reference(task);
    EXPECT_TRUE(worker.trial(trial("good")).ok());

    device.define("reference", [](const HostCall& call) {
        for (std::int64_t i = 0; i < rows * cols; ++i) call.pointer<double>(1)[i] = call.pointer<double>(2)[i] = 1;
    });
    EXPECT_GT(worker.anchor(task).front().bad, 0u);
}

TEST_F(RunWorkerTest, AReferenceWithNanIsRefused) {
    device.define("nan_reference", [](const HostCall& call) {
        for (std::int64_t i = 0; i < rows * cols; ++i)
            call.pointer<double>(1)[i] = call.pointer<double>(2)[i] = i == 130 ? NAN : 1;
    });
    ReferenceTask task{.slot = 0, .kind = ReferenceTask::Kind::device, .candidate = candidate("nan_reference")};
    task.candidate.sequence.scratch = {{.name = "value", .bytes = rows * cols * 8},
                                       {.name = "magnitude", .bytes = rows * cols * 8}};
    task.candidate.sequence.launches[0].arguments = {BufferArgument{0}, BufferArgument{2}, BufferArgument{3}};
    try {
        worker.set_reference(task);
        FAIL() << "it was taken";
    } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("the reference gives nan at y[1,2]"));
    }
}

TEST_F(RunWorkerTest, AKernelAsReferenceGivesMagnitudesFromAbsoluteInputs) {
    worker.set_reference({.slot = 0, .kind = ReferenceTask::Kind::kernel, .candidate = candidate("good")});
    EXPECT_TRUE(worker.trial(trial("good")).ok());
    EXPECT_EQ(run("nothing", writing_nothing()).ending, Ending::no_output);
}

}  // namespace
}  // namespace autotune
