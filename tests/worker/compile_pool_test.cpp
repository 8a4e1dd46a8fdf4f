#include "tuner/worker/compile_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <future>
#include <iterator>
#include <mutex>

#include "device/nvrtc.h"
#include "device/occupancy.h"
#include "tests/support/test_data.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/worker/compiled_sources.h"
#include "tuner/worker/gates.h"

namespace autotune {
namespace {

using testing::HasSubstr;

CompileTask task(const std::string& entry, const std::string& text = "") {
    CompileTask made;
    made.source.source = entry + ".cu";
    made.source.text = text;
    made.source.entries = {entry};
    made.arch = "sm_90";
    return made;
}

CompilePoolOptions options(const char* worker, std::size_t workers, double limit_s) {
    return {.worker = std::filesystem::path{AUTOTUNE_BINARY_DIR} / "bin" / worker,
            .workers = workers,
            .limit_s = limit_s,
            .memory_bytes = 1ull << 30};
}

/// Collects answers from the pool's thread.
class Answers {
public:
    CompilePool::Done take() {
        return [this](Compiled result) {
            const std::lock_guard lock{mutex_};
            all_.push_back(std::move(result));
            arrived_.notify_all();
        };
    }
    std::vector<Compiled> wait_for(std::size_t count) {
        std::unique_lock lock{mutex_};
        arrived_.wait(lock, [&] { return all_.size() >= count; });
        return all_;
    }

private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::vector<Compiled> all_;
};

// ---- With a scripted compiler.

TEST(CompilePool, CompilesWhatItIsGiven) {
    CompilePool pool{options("host_worker", 2, 30)};
    const Compiled result = pool.compile(task("good"));
    ASSERT_TRUE(result.ok) << result.failure.reason;
    EXPECT_EQ(result.artefact.arch, "sm_90");
    EXPECT_EQ(result.artefact.kernels.front().name, "good");
    EXPECT_EQ(pool.replaced(), 0);
}

TEST(CompilePool, ASourceThatDoesNotCompileIsAnAnswerWithItsFirstError) {
    CompilePool pool{options("host_worker", 1, 30)};
    const Compiled result = pool.compile(task("does_not_compile"));
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.failure.ending, Ending::compile_failed);
    EXPECT_EQ(result.failure.reason, "does_not_compile.cu:2: identifier \"half16\" is undefined");
    EXPECT_EQ(pool.replaced(), 0);
}

TEST(CompilePool, ACompileBombByTimeHurtsNoOther) {
    CompilePool pool{options("host_worker", 2, 1)};
    Answers bomb, others;
    pool.submit(task("time_bomb"), bomb.take());
    for (int i = 0; i < 20; ++i) pool.submit(task("good"), others.take());
    for (const Compiled& result : others.wait_for(20)) EXPECT_TRUE(result.ok) << result.failure.reason;
    const Compiled late = bomb.wait_for(1).front();
    EXPECT_EQ(late.failure.ending, Ending::compile_timeout);
    EXPECT_EQ(late.failure.reason, "the compiler was ended after 1.0 s");
    EXPECT_TRUE(pool.compile(task("good")).ok);
    EXPECT_EQ(pool.replaced(), 1);
}

TEST(CompilePool, ACompileBombByMemoryHurtsNoOther) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's shadow memory counts as data";
#endif
    CompilePoolOptions tight = options("host_worker", 2, 60);
    tight.memory_bytes = 256 << 20;
    CompilePool pool{tight};
    Answers bomb, others;
    pool.submit(task("memory_bomb"), bomb.take());
    for (int i = 0; i < 20; ++i) pool.submit(task("good"), others.take());
    for (const Compiled& result : others.wait_for(20)) EXPECT_TRUE(result.ok) << result.failure.reason;
    const Compiled failed = bomb.wait_for(1).front();
    EXPECT_EQ(failed.failure.ending, Ending::compile_failed);
    EXPECT_EQ(failed.failure.reason, "the compiler ran out of memory, the limit is 256 MiB");
    EXPECT_TRUE(pool.compile(task("good")).ok);
}

TEST(CompilePool, ACompilerThatCrashesIsReplaced) {
    CompilePool pool{options("host_worker", 1, 60)};
    for (int i = 0; i < 5; ++i) {  // more often than a compiler that does not start is tried
        const Compiled failed = pool.compile(task("crashes_the_compiler"));
        EXPECT_EQ(failed.failure.ending, Ending::compile_failed);
        EXPECT_THAT(failed.failure.reason, HasSubstr("signal 6"));
        EXPECT_FALSE(failed.failure.tainted);
    }
    EXPECT_TRUE(pool.compile(task("good")).ok);
    EXPECT_EQ(pool.replaced(), 5);
    EXPECT_EQ(pool.trouble(), "");
}

// Goal: a source is not blamed, and so not remembered, for what the machine did to its compiler.
TEST(CompilePool, ACompilerThatIsKilledOrHasNoRoomIsNoSourcesFailure) {
    CompilePool pool{options("host_worker", 1, 60)};
    const Compiled killed = pool.compile(task("is_killed"));
    EXPECT_THAT(killed.failure.reason, HasSubstr("signal 9"));
    EXPECT_TRUE(killed.failure.tainted);
    EXPECT_FALSE(killed.obstacle);
    const Compiled full = pool.compile(task("has_no_room"));
    ASSERT_TRUE(full.obstacle);
    EXPECT_THAT(full.obstacle->what(), HasSubstr("NVRTC has no room for temporary files in '"));
    EXPECT_TRUE(pool.compile(task("good")).ok);
}

TEST(CompilePool, AProgramThatIsNoCompilerFailsItsTasksInsteadOfWaiting) {
    CompilePool pool{{.worker = "/bin/false", .workers = 2}};
    const Compiled failed = pool.compile(task("good"));
    EXPECT_EQ(failed.failure.ending, Ending::compile_failed);
    ASSERT_TRUE(failed.obstacle);
    EXPECT_THAT(failed.obstacle->what(), HasSubstr("the compiler does not start"));
    EXPECT_NE(pool.trouble(), "");
}

TEST(CompilePool, ACompilerThatCannotWorkHereIsNoSourcesFailure) {
    CompilePool pool{options("host_worker", 2, 30)};
    const Compiled failed = pool.compile(task("no_headers"));
    EXPECT_FALSE(failed.ok);
    ASSERT_TRUE(failed.obstacle);
    EXPECT_EQ(failed.obstacle->kind(), Error::Kind::compile);
    EXPECT_EQ(failed.obstacle->help(), "pip");
    EXPECT_FALSE(pool.compile(task("does_not_compile")).obstacle);
    EXPECT_EQ(pool.replaced(), 0);
}

TEST(CompilePool, WhatIsAbandonedIsAnsweredAndKeepsNoWorkerBusy) {
    CompilePool pool{options("host_worker", 2, 3600)};
    Answers bombs;
    for (int i = 0; i < 4; ++i) pool.submit(task("time_bomb"), bombs.take());
    EXPECT_TRUE(pool.trouble().empty());
    pool.abandon();
    for (const Compiled& result : bombs.wait_for(4)) {
        EXPECT_FALSE(result.ok);
        EXPECT_EQ(result.failure.reason, "the search ended before it was compiled");
    }
    EXPECT_TRUE(pool.compile(task("good")).ok);
}

// Goal: what was abandoned is not remembered as a failure.
TEST(CompiledSources, WhatIsAbandonedIsCompiledAnewWhenAskedForAgain) {
    CompiledSources sources{options("host_worker", 1, 3600)};
    const SourceSpec bomb = task("time_bomb").source;
    for (int i = 0; i < 2; ++i) {
        std::promise<BinariesResult> answer;
        sources.want({bomb}, "sm_90", [&](BinariesResult result) { answer.set_value(std::move(result)); });
        std::future<BinariesResult> answered = answer.get_future();
        EXPECT_EQ(answered.wait_for(std::chrono::milliseconds{50}), std::future_status::timeout);
        sources.abandon();
        EXPECT_EQ(answered.get().failure.ending, Ending::compile_timeout);
    }
    EXPECT_TRUE(sources.get({task("good").source}, "sm_90").binaries);
}

TEST(CompilePool, EndsWhileCompilesRun) {
    Answers ignored;
    CompilePool pool{options("host_worker", 2, 60)};
    for (int i = 0; i < 8; ++i) pool.submit(task("time_bomb"), ignored.take());
}

// ---- With NVRTC, which needs no GPU.

class RealCompiler : public testing::Test {
protected:
    void SetUp() override {
        std::string why;
        if (!nvrtc_if_present(&why)) GTEST_SKIP() << why;
    }
    static CompileTask from_folder(const std::string& file, const std::string& entry) {
        std::ifstream in{test_data("bad_kernels") / file};
        CompileTask made = task(entry, {std::istreambuf_iterator<char>{in}, {}});
        made.source.source = file;
        return made;
    }
};

TEST_F(RealCompiler, GivesCubinPtxAndResources) {
    CompilePool pool{options("autotune-worker", 1, 60)};
    const Compiled result = pool.compile(from_folder("bad.cu", "good"));
    ASSERT_TRUE(result.ok) << result.failure.reason << result.failure.log;
    EXPECT_GT(result.artefact.cubin.size(), 1000u);
    EXPECT_THAT(result.artefact.ptx, HasSubstr(".visible .entry good"));
    EXPECT_GT(result.artefact.kernels.size(), 5u);
}

TEST_F(RealCompiler, ErrorsNameTheUsersLine) {
    CompilePool pool{options("autotune-worker", 1, 60)};
    const Compiled failed = pool.compile(from_folder("does_not_compile.cu", "does_not_compile"));
    EXPECT_EQ(failed.failure.ending, Ending::compile_failed);
    EXPECT_EQ(failed.failure.reason, "does_not_compile.cu:2: identifier \"half16\" is undefined");
    const Compiled missing = pool.compile(from_folder("missing_header.cu", "missing_header"));
    EXPECT_THAT(missing.failure.reason, HasSubstr("nowhere/to_be_found.h"));
}

TEST_F(RealCompiler, ABlockOfTooMuchSharedMemoryDoesNotFitAndOtherErrorsOfPtxasAreItsOwn) {
    CompilePool pool{options("autotune-worker", 1, 60)};
    const Compiled large = pool.compile(task("large",
                                             "extern \"C\" __global__ void large(float* y) { __shared__ float "
                                             "s[1 << 20]; s[threadIdx.x] = y[0]; __syncthreads(); y[1] = "
                                             "s[threadIdx.x ^ 1]; }"));
    EXPECT_EQ(large.failure.ending, Ending::does_not_fit) << large.failure.reason;
    EXPECT_EQ(large.failure.reason,
              "'large' declares 4194304 bytes of shared memory a block, of which a source may declare 49152");
    const Compiled wrong = pool.compile(task("wrong", "extern \"C\" __global__ void wrong() { asm(\"no.such;\"); }"));
    EXPECT_EQ(wrong.failure.ending, Ending::compile_failed);
    EXPECT_THAT(wrong.failure.reason, testing::StartsWith("ptxas"));
}

// Goal: what the tuner asks the pool for is what the ops need. Method: each op's default and its device reference, by
// way of the store of binaries and the gates, for a GPU of capability 9.0.
TEST_F(RealCompiler, DefaultsAndReferencesOfAllOpsCompileAndPassTheGates) {
    CompiledSources store{options("autotune-worker", 2, 120)};
    DeviceLimits limits = *limits_of_capability(90);
    limits.sm_count = 132;
    for (const Op& op : builtin_ops()) {
        const Instance instance = Instance::make(op, {}, limits);
        const Config config = instance.default_config();
        const BinariesResult result = store.get(instance.sources(config), "sm_90");
        ASSERT_TRUE(result.binaries) << op.name << ": " << result.failure.reason << result.failure.log;
        const LaunchSequence sequence = instance.launches(config, 1);
        for (const Launch& launch : sequence.launches)
            EXPECT_NE(result.binaries->kernel_of(launch), nullptr) << op.name << ' ' << launch.entry;
        const std::optional<Outcome> failure = gate(*op.variant(config.variant), *result.binaries, sequence, limits);
        EXPECT_FALSE(failure) << op.name << ": " << failure->reason;
        EXPECT_GT(resources_of(*result.binaries, sequence, limits).blocks_per_sm, 0) << op.name;
        if (op.reference.launches.empty()) continue;
        const BinariesResult reference = store.get(instance.reference_sources(), "sm_90");
        EXPECT_TRUE(reference.binaries) << op.name << ": " << reference.failure.reason;
    }
}

TEST_F(RealCompiler, SurvivesBombsByTimeAndMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's shadow memory counts as data";
#endif
    CompilePool pool{options("autotune-worker", 2, 12)};
    Answers memory, time;
    pool.submit(from_folder("memory_bomb.cu", "memory_bomb"), memory.take());
    pool.submit(from_folder("time_bomb.cu", "time_bomb"), time.take());
    const Outcome by_memory = memory.wait_for(1).front().failure, by_time = time.wait_for(1).front().failure;
    EXPECT_EQ(by_memory.ending, Ending::compile_failed);
    EXPECT_EQ(by_memory.reason, "the compiler ran out of memory, the limit is 1024 MiB");
    EXPECT_EQ(by_time.ending, Ending::compile_timeout);
    EXPECT_EQ(by_time.reason, "the compiler was ended after 12.0 s");
    EXPECT_TRUE(pool.compile(from_folder("bad.cu", "good")).ok);
}

}  // namespace
}  // namespace autotune
