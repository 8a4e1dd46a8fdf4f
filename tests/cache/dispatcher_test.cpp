// Goal: a call gets the best kernel that can be had, and never none for want of tuning.
// Method: a database of made-up records, binaries whose bytes are their config's text, and a driver that is a table.
#include "autotune/dispatcher.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <new>
#include <numeric>
#include <set>
#include <thread>

#include "autotune/error.h"
#include "cache/dispatch/call_site.h"
#include "cache/dispatch/snapshot.h"
#include "device/identity.h"
#include "tests/cache/dispatch_samples.h"

namespace {

std::atomic<std::uint64_t> allocations{0};

}  // namespace

// Counts every allocation of this program: the hit path makes none.
void* operator new(std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
    throw std::bad_alloc{};
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    const auto align = static_cast<std::size_t>(alignment);
    if (void* memory = std::aligned_alloc(align, (bytes + align - 1) / align * align)) return memory;
    throw std::bad_alloc{};
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {  // of temporary buffers
    allocations.fetch_add(1, std::memory_order_relaxed);
    return std::malloc(bytes ? bytes : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace autotune {
namespace {

using namespace samples;

// What other languages and stored decisions hold.
static_assert(static_cast<int>(Rung::exact) == 0 && static_cast<int>(Rung::exact_stale) == 1 &&
              static_cast<int>(Rung::nearest) == 2 && static_cast<int>(Rung::sibling) == 3 &&
              static_cast<int>(Rung::sibling_nearest) == 4 && static_cast<int>(Rung::robust) == 5 &&
              static_cast<int>(Rung::family) == 6 && static_cast<int>(Rung::predicted) == 7 &&
              static_cast<int>(Rung::default_config) == 8 && static_cast<int>(Rung::none) == 9);
static_assert(static_cast<int>(Layer::pinned) == 0 && static_cast<int>(Layer::user) == 1 &&
              static_cast<int>(Layer::project) == 2 && static_cast<int>(Layer::system) == 3 &&
              static_cast<int>(Layer::embedded) == 4 && static_cast<int>(Layer::op) == 5);

class Dispatching : public testing::Test, protected DispatchSetting {
protected:
    /// The default of n (a multiple of 4) is stored too, as after any search.
    void SetUp() override {
        put_binary(vector_config(4), 1024);
        put_binary(naive_config(), 1024);
    }
    std::string last_binary() const { return driver.launches.empty() ? "nothing" : driver.launches.back().binary; }
};

CUstream stream_number(std::uintptr_t number) { return reinterpret_cast<CUstream>(number); }

TEST_F(Dispatching, LaunchesTheWinnerOfAnExactProblem) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    const Decision decision = launch(dispatcher, dispatcher.prepare("scale"), 1024, stream_number(9));
    EXPECT_EQ(decision.rung, Rung::exact);
    EXPECT_TRUE(decision.launched);
    EXPECT_TRUE(decision.verified);
    EXPECT_FALSE(decision.stale);
    EXPECT_EQ(decision.config, "vector VEC=8 THREADS=128 SPLIT=1");
    ASSERT_EQ(driver.launches.size(), 1u);
    const fake::SeenLaunch& seen = driver.launches.front();
    EXPECT_EQ(seen.binary, vector_config(8, 128).text());
    EXPECT_EQ(seen.entry, "scale_vector");
    EXPECT_EQ(seen.grid, (Dim3{1, 1, 1}));
    EXPECT_EQ(seen.block, (Dim3{128, 1, 1}));
    EXPECT_EQ(seen.stream, stream_number(9));
    EXPECT_EQ(seen.arguments[0], 0x100000u);
    EXPECT_EQ(seen.arguments[1], 0x200000u);
    EXPECT_EQ(static_cast<std::uint32_t>(seen.arguments[2]), 1024u);
    EXPECT_EQ(static_cast<std::uint32_t>(seen.arguments[3]), std::bit_cast<std::uint32_t>(2.0f));
}

TEST_F(Dispatching, RunsTheDefaultAndListsTheMissWhereNothingIsTuned) {
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    for (int i = 0; i < 3; ++i) {
        const Decision decision = launch(dispatcher, handle, 1024);
        EXPECT_EQ(decision.rung, Rung::default_config);
        EXPECT_TRUE(decision.launched) << decision.why;
    }
    EXPECT_EQ(last_binary(), vector_config(4).text());
    ASSERT_EQ(dispatcher.misses().size(), 1u);
    EXPECT_EQ(dispatcher.misses().front().problem, "n=1024 dtype=f32");
    EXPECT_EQ(dispatcher.counts()[static_cast<std::size_t>(Rung::default_config)], 3u);
    EXPECT_EQ(logged.size(), 1u) << "said more than once";
    EXPECT_EQ(driver.loads.size(), 1u) << "a kernel is loaded once";
}

TEST_F(Dispatching, ScalarsAndAddressesComeWithEachCall) {
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    launch(dispatcher, handle, 1024, nullptr, 0, 2.0);
    launch(dispatcher, handle, 1024, nullptr, 4096, 5.0);
    ASSERT_EQ(driver.launches.size(), 2u);
    EXPECT_EQ(driver.launches[1].arguments[0], 0x101000u);
    EXPECT_EQ(static_cast<std::uint32_t>(driver.launches[1].arguments[3]), std::bit_cast<std::uint32_t>(5.0f));
}

// A plan finds its scalars by what changes with them; it may not matter which number a first call brings.
TEST_F(Dispatching, NoValueOfAScalarIsKeptForLaterCalls) {
    for (int number = 9'900; number < 10'200; ++number) {
        Dispatcher dispatcher{options()};
        const Handle handle = dispatcher.prepare("scale");
        launch(dispatcher, handle, 1024, nullptr, 0, number);
        launch(dispatcher, handle, 1024, nullptr, 0, 5.0);
        ASSERT_EQ(static_cast<std::uint32_t>(driver.launches.back().arguments[3]), std::bit_cast<std::uint32_t>(5.0f))
            << "after a call with " << number;
    }
}

TEST_F(Dispatching, RecordsAreOfOneAlignmentAndLayoutOnly) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
    const Decision shifted = launch(dispatcher, handle, 1024, nullptr, 4);
    EXPECT_EQ(shifted.rung, Rung::default_config) << "a kernel of aligned loads was launched on unaligned memory";
    EXPECT_EQ(last_binary(), naive_config().text());
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
}

TEST_F(Dispatching, TheSecondRankRunsWhereTheFirstCannot) {
    tuned(1024, {{vector_config(8, 128), 40.0}, {vector_config(2, 64), 40.5}});
    put_binary(vector_config(8, 128), 1024);
    put_binary(vector_config(2, 64), 1024);
    const std::string winner = vector_config(8, 128).text();
    driver.on_launch = [winner](const std::string& binary) {
        return binary == winner ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
    };
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    const Decision decision = launch(dispatcher, handle, 1024);
    EXPECT_EQ(decision.rung, Rung::exact);
    EXPECT_EQ(last_binary(), vector_config(2, 64).text());
    driver.on_launch = {};
    launch(dispatcher, handle, 1024);
    EXPECT_EQ(last_binary(), vector_config(2, 64).text()) << "what failed once is not tried again";
}

TEST_F(Dispatching, AKernelThatBeginsToFailIsReplacedInTheSameCall) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
    const std::string winner = vector_config(8, 128).text();
    driver.on_launch = [winner](const std::string& binary) {
        return binary == winner ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
    };
    const Decision decision = launch(dispatcher, handle, 1024);
    EXPECT_TRUE(decision.launched);
    EXPECT_EQ(decision.rung, Rung::default_config);
    EXPECT_EQ(last_binary(), vector_config(4).text());
}

TEST_F(Dispatching, ABrokenContextIsReportedAndNoConfigIsBlamed) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    launch(dispatcher, handle, 1024);
    driver.on_launch = [](const std::string&) { return CUDA_ERROR_ILLEGAL_ADDRESS; };
    const Decision decision = launch(dispatcher, handle, 1024);
    EXPECT_EQ(decision.rung, Rung::none);
    EXPECT_FALSE(decision.launched);
    EXPECT_EQ(decision.error, CUDA_ERROR_ILLEGAL_ADDRESS);
    driver.on_launch = {};
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
}

TEST_F(Dispatching, ABinaryThatDoesNotLoadGivesWayToTheDefault) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    const std::string winner = vector_config(8, 128).text();
    driver.on_load = [winner](const std::string& binary) {
        return binary == winner ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS;
    };
    Dispatcher dispatcher{options()};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::default_config);
}

// The driver of the tests loads anything, so what does not run was never handed to it.
TEST_F(Dispatching, CodeForOnePartOrFamilyAnswersForNoOther) {
    struct Case {
        std::string arch;
        std::vector<int> runs_on, not_on;
    };
    for (const Case& one :
         {Case{"sm_90a", {90}, {89, 93, 100, 120}}, Case{"sm_100f", {100, 103}, {90, 110, 120}},
          Case{"sm_103f", {103}, {100}}, Case{"sm_100a", {100}, {103}}, Case{"sm_90", {90, 93}, {89, 100}}}) {
        Op op = scale_op();
        op.variants.front().arch = one.arch;
        ASSERT_EQ(op.variants.front().name, "vector");
        ops = OpSet::of({op});
        std::vector<std::pair<int, bool>> parts;
        for (const int cc : one.runs_on) parts.emplace_back(cc, true);
        for (const int cc : one.not_on) parts.emplace_back(cc, false);
        for (const auto& [cc, runs] : parts) {
            driver.cc = cc;
            tuned(1024, {{vector_config(8, 128), 40.0}});
            put_binary(vector_config(8, 128), 1024, {13, 0}, one.arch);
            put_binary(naive_config(), 1024, {13, 0}, arch_name(cc));
            driver.loads.clear();
            Dispatcher dispatcher{options()};
            const Decision decision = launch(dispatcher, dispatcher.prepare("scale"), 1024);
            EXPECT_TRUE(decision.launched) << one.arch << " on " << cc << ": " << decision.why;
            EXPECT_EQ(decision.rung, runs ? Rung::exact : Rung::default_config) << one.arch << " on " << cc;
            EXPECT_EQ(driver.loads, std::vector{(runs ? vector_config(8, 128) : naive_config()).text()})
                << one.arch << " on " << cc;
        }
    }
}

TEST_F(Dispatching, ABinaryForOnePartIsNoneOfTheGeneralSource) {
    std::filesystem::remove_all(folder / "binaries");
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024, {13, 0}, "sm_90a");
    put_binary(vector_config(4), 1024, {13, 0}, "sm_90f");
    Dispatcher dispatcher{options()};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::none);
    EXPECT_EQ(driver.loads.size(), 0u);
}

TEST_F(Dispatching, SaysThatThereIsNoCompilerWhereNoBinaryIsStored) {
    std::filesystem::remove_all(folder / "binaries");
    Dispatcher dispatcher{options()};
    const Decision decision = launch(dispatcher, dispatcher.prepare("scale"), 1024);
    EXPECT_EQ(decision.rung, Rung::none);
    EXPECT_FALSE(decision.launched);
    EXPECT_NE(decision.error, 0);
    EXPECT_NE(decision.why.find("no binary of 'scale.cu' is stored"), std::string_view::npos) << decision.why;
}

TEST_F(Dispatching, ARowThatIsInvalidTodayIsPassedOver) {
    tuned(1022, {{vector_config(8, 128), 40.0}, {vector_config(2, 64), 40.5}});  // 1022 is no multiple of 8
    put_binary(vector_config(8, 128), 1022);
    put_binary(vector_config(2, 64), 1022);
    Dispatcher dispatcher{options()};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1022).rung, Rung::exact);
    EXPECT_EQ(last_binary(), vector_config(2, 64).text());
}

TEST_F(Dispatching, AValueThatIsNotDeclaredNeverReachesACompiler) {
    tuned(1024, {{vector_config(928, 128), 40.0}});
    Dispatcher dispatcher{options()};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::default_config);
    const Explanation why = dispatcher.explain("scale", {{"n", std::int64_t{1024}}});
    ASSERT_FALSE(why.rows.empty());
    EXPECT_FALSE(why.rows.front().refused.empty());
}

TEST_F(Dispatching, ConfigsThatFailedTheirTrialsAreNotDispatched) {
    {
        Store store = Store::open({.path = folder / "tune.db"});
        const RunId run = store.begin_run(start(1024));
        store.record_trial(run, vector_config(8, 128), failed(Ending::race));
        store.finish_run(run, {.evaluated = 20, .space_size = 64});
    }
    {
        Store store = Store::open({.path = folder / "tune.db"});
        const RunId run = store.begin_run(start(1024));
        store.finish_run(run,
                         {.finalists = {finalist(vector_config(8, 128), 40.0)}, .evaluated = 20, .space_size = 64});
    }
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::default_config);
}

TEST_F(Dispatching, AConfigThatFailsOnEveryProblemIsDispatchedOnNone) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Store::open({.path = folder / "tune.db"})
        .put_negative({.device_fp = identify(0).fp,
                       .source = template_of(op(), *op().variant("vector")),
                       .config = vector_config(8, 128),
                       .ending = Ending::race},
                      environment());
    Dispatcher dispatcher{options()};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::default_config);
}

TEST_F(Dispatching, AStaleRowIsStillBetterThanTheDefaultAndSaysSo) {
    Store store = Store::open({.path = folder / "tune.db"});
    RunStart old = start(1024);
    for (TemplateIdentity& t : old.templates) t.source_hash = "as it was";
    const RunId run = store.begin_run(old);
    store.finish_run(run, {.finalists = {finalist(vector_config(8, 128), 40.0)}, .evaluated = 20, .space_size = 64});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    const Decision decision = launch(dispatcher, dispatcher.prepare("scale"), 1024);
    EXPECT_EQ(decision.rung, Rung::exact_stale);
    EXPECT_TRUE(decision.stale);
    EXPECT_NE(decision.why.find("the source of 'vector' has changed"), std::string_view::npos) << decision.why;
    // A fresh row wins though it is slower.
    tuned(1024, {{vector_config(2, 64), 70.0}});
    put_binary(vector_config(2, 64), 1024);
    dispatcher.refresh();
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::exact);
    EXPECT_EQ(last_binary(), vector_config(2, 64).text());
}

TEST_F(Dispatching, ANewWinnerIsSeenAfterRefresh) {
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::default_config);
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    dispatcher.refresh();
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
}

TEST_F(Dispatching, AForeignFileIsIgnoredWithOneLine) {
    std::ofstream{folder / "tune.db"} << "not a database";
    Dispatcher dispatcher{options()};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::default_config);
    EXPECT_EQ(std::filesystem::file_size(folder / "tune.db"), 14u) << "it was touched";
    EXPECT_EQ(logged.size(), 2u) << "the file once, the miss once";
}

TEST_F(Dispatching, ALogThatThrowsCostsItsLineOnly) {
    std::ofstream{folder / "tune.db"} << "not a database";
    auto with_log = options();
    with_log.log = [](const std::string&) { throw 42; };
    Dispatcher dispatcher{with_log};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::default_config);
}

TEST_F(Dispatching, ALockedDatabaseCostsOnlyTheCallsUntilItIsFree) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open((folder / "tune.db").c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::default_config);
    sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
    sqlite3_close(other);
    dispatcher.refresh();
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
}

// -- capture

TEST_F(Dispatching, UnderCaptureLoadedKernelsRunAndNothingIsLoadedOrAllocated) {
    tuned(1024, {{vector_config(4, 256, 2), 40.0}});  // with scratch
    put_binary(vector_config(4, 256, 2), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    const CUstream stream = stream_number(5);
    EXPECT_FALSE(ready(dispatcher, handle, 1024, stream).launched);
    EXPECT_TRUE(driver.launches.empty());
    EXPECT_EQ(driver.allocations.size(), 1u);
    driver.capturing = {stream};
    const Decision decision = launch(dispatcher, handle, 1024, stream);
    EXPECT_EQ(decision.rung, Rung::exact) << decision.why;
    EXPECT_EQ(driver.launches.size(), 1u);
    EXPECT_TRUE(driver.calls_in_capture.empty());
}

TEST_F(Dispatching, UnderCaptureAProblemThatIsNotReadyGetsTheLoadedDefault) {
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    launch(dispatcher, handle, 1024);  // loads the default
    tuned(2048, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 2048);
    dispatcher.refresh();
    const CUstream stream = stream_number(5);
    driver.capturing = {stream};
    EXPECT_EQ(launch(dispatcher, handle, 2048, stream).rung, Rung::default_config);
    EXPECT_TRUE(driver.calls_in_capture.empty());
    driver.capturing.clear();
    EXPECT_EQ(launch(dispatcher, handle, 2048, stream).rung, Rung::exact) << "the lesser answer outlived the capture";
}

TEST_F(Dispatching, UnderCaptureWithNothingLoadedItSaysWhatToDoBeforeAnyCall) {
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    const CUstream stream = stream_number(5);
    driver.capturing = {stream};
    const Decision decision = launch(dispatcher, handle, 1024, stream);
    EXPECT_EQ(decision.rung, Rung::none);
    EXPECT_EQ(decision.error, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_NE(decision.why.find("ready()"), std::string_view::npos);
    EXPECT_TRUE(driver.calls_in_capture.empty());
    {
        driver.capturing.clear();
        const CaptureScope scope;
        EXPECT_EQ(launch(dispatcher, handle, 1024, stream).rung, Rung::none) << "the thread's own flag counts as well";
    }
    EXPECT_EQ(launch(dispatcher, handle, 1024, stream).rung, Rung::default_config);
}

// Goal: a capture is not the time to read a database, however old what is known is.
TEST_F(Dispatching, UnderCaptureTheDatabaseIsNotReadAgain) {
    put_binary(vector_config(8, 128), 1024);
    tuned(4096, {{vector_config(8, 128), 40.0}});
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    const CUstream stream = stream_number(5);
    launch(dispatcher, handle, 1024, stream);
    launch(dispatcher, handle, 4096, stream);  // both kernels are loaded
    tuned(262144, {{vector_config(8, 128), 40.0}});
    std::this_thread::sleep_for(std::chrono::milliseconds{1100});  // as long as looks are apart
    driver.capturing = {stream};
    const Decision captured = launch(dispatcher, handle, 262144, stream);
    EXPECT_TRUE(captured.launched);
    EXPECT_NE(captured.rung, Rung::exact);
    driver.capturing.clear();
    EXPECT_EQ(launch(dispatcher, handle, 131072, stream).rung, Rung::nearest) << "the next miss does not look";
    EXPECT_TRUE(driver.calls_in_capture.empty());
}

TEST_F(Dispatching, EachStreamHasWorkingMemoryOfItsOwn) {
    tuned(1024, {{vector_config(4, 256, 2), 40.0}});
    put_binary(vector_config(4, 256, 2), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    for (const std::uintptr_t stream : {1, 2, 1, 2}) launch(dispatcher, handle, 1024, stream_number(stream));
    ASSERT_EQ(driver.launches.size(), 4u);
    EXPECT_NE(driver.launches[0].arguments[1], driver.launches[1].arguments[1]);
    EXPECT_EQ(driver.launches[0].arguments[1], driver.launches[2].arguments[1]);
    EXPECT_EQ(driver.allocations.size(), 2u);
}

TEST_F(Dispatching, ThePerThreadStreamIsAnotherOneInEachThread) {
    tuned(1024, {{vector_config(4, 256, 2), 40.0}});
    put_binary(vector_config(4, 256, 2), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    launch(dispatcher, handle, 1024, CU_STREAM_PER_THREAD);
    std::thread{[&] { launch(dispatcher, handle, 1024, CU_STREAM_PER_THREAD); }}.join();
    launch(dispatcher, handle, 1024, CU_STREAM_PER_THREAD);
    ASSERT_EQ(driver.launches.size(), 3u);
    EXPECT_NE(driver.launches[0].arguments[1], driver.launches[1].arguments[1]) << "two streams share working memory";
    EXPECT_EQ(driver.launches[0].arguments[1], driver.launches[2].arguments[1]);
}

// -- the call

TEST_F(Dispatching, RefusesArgumentsThatContradictTheOp) {
    Dispatcher dispatcher{options()};
    EXPECT_THROW(dispatcher.prepare("scael"), Error);
    EXPECT_THROW(dispatcher.prepare("scale", {{"m", std::int64_t{1}}}), Error);
    EXPECT_THROW(dispatcher.prepare("scale", {{"dtype", std::string{"f64"}}}), Error);
    EXPECT_THROW(dispatcher.prepare("scale", {{"n", std::int64_t{-1}}}), Error);
    EXPECT_THROW(dispatcher.prepare("scale", {{"n", std::string{"many"}}}), Error);
    const Handle handle = dispatcher.prepare("scale");
    const std::int64_t n[] = {1024}, other[] = {512};
    const TensorArgument x{.data = reinterpret_cast<const void*>(0x1000), .shape = n};
    const TensorArgument short_y{.data = reinterpret_cast<const void*>(0x2000), .shape = other};
    const TensorArgument one[] = {x}, disagreeing[] = {x, short_y};
    EXPECT_THROW(dispatcher.launch(handle, one, {}, nullptr), Error);
    EXPECT_THROW(dispatcher.launch(handle, disagreeing, {}, nullptr), Error);
    EXPECT_THROW(dispatcher.launch(Handle{}, one, {}, nullptr), Error);
    EXPECT_TRUE(driver.launches.empty());
}

TEST_F(Dispatching, SeveralDevicesOfDifferentKindsEachGetTheirOwnAnswer) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    driver.devices = 2;
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
    driver.current_device = 1;
    driver.sm_count = 66;
    put_binary(vector_config(4), 1024, {13, 0}, "sm_80");
    driver.attributes[{1, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR}] = 8;
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::default_config);
    driver.current_device = 0;
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
}

TEST_F(Dispatching, WhatFailsOnOneDeviceStillRunsOnAnotherOfItsKind) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    const std::string winner = vector_config(8, 128).text();
    driver.devices = 2;
    driver.on_launch = [&](const std::string& binary) {
        return binary == winner && driver.current_device == 1 ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
    };
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    driver.current_device = 1;
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::default_config);
    driver.current_device = 0;
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
}

TEST_F(Dispatching, WantOfMemoryPassesAndTheWinnerRunsAgain) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
    const std::string winner = vector_config(8, 128).text();
    driver.on_launch = [winner](const std::string& binary) {
        return binary == winner ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    };
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::default_config);
    driver.on_launch = {};
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
}

TEST_F(Dispatching, WantOfMemoryForABinaryPassesToo) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    const std::string winner = vector_config(8, 128).text();
    driver.on_load = [winner](const std::string& binary) {
        return binary == winner ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    };
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::default_config);
    driver.on_load = {};
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
}

TEST_F(Dispatching, ATunedConfigRunsWhereNoDefaultDoes) {
    Op op = scale_op();
    for (Variant& variant : op.variants)
        for (Parameter& parameter : variant.parameters)
            if (parameter.name == "VEC") parameter.fallback = Expression::parse("3");
    op.variants.pop_back();  // the one that always runs
    ops = OpSet::of({op});
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
    const Decision none = launch(dispatcher, handle, 1022);  // 8 does not divide it
    EXPECT_EQ(none.rung, Rung::none);
    EXPECT_NE(none.why.find("no variant of 'scale' runs at its defaults"), std::string_view::npos) << none.why;
    const Explanation why = dispatcher.explain("scale", {{"n", std::int64_t{1022}}});
    EXPECT_EQ(why.rung, Rung::none);
    EXPECT_EQ(why.why, none.why);
}

TEST_F(Dispatching, BinariesThatOthersMayHavePlacedAreNotLoaded) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    std::filesystem::permissions(folder / "binaries", std::filesystem::perms::all);
    Dispatcher dispatcher{options()};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::none);
    EXPECT_TRUE(driver.loads.empty());
    ASSERT_FALSE(logged.empty());
    EXPECT_NE(logged.front().find("may be written to by others"), std::string::npos) << logged.front();
}

TEST_F(Dispatching, AFileInPlaceOfTheFolderOfBinariesIsNamed) {
    std::filesystem::remove_all(folder / "binaries");
    std::ofstream{folder / "binaries"} << "no folder";
    const Dispatcher dispatcher{options()};
    ASSERT_FALSE(logged.empty());
    EXPECT_NE(logged.front().find("binaries' is no folder, so no binary is found or kept there"), std::string::npos)
        << logged.front();
}

// Goal: where anybody may make files, a folder of binaries that comes later is looked at as one that was there.
TEST_F(Dispatching, BinariesThatComeLaterAreJudgedToo) {
    namespace fs = std::filesystem;
    for (const bool folder_is_shared : {true, false}) {
        const Folder sticky;
        ASSERT_EQ(::chmod(sticky.path().c_str(), 01777), 0);
        Dispatcher::Options given = options();
        given.databases = {(sticky / "tune.db").string()};
        driver.loads.clear();
        Dispatcher dispatcher{given};
        fs::copy(folder / "binaries", sticky / "binaries");
        if (folder_is_shared)
            fs::permissions(sticky / "binaries", fs::perms::all);
        else
            for (const auto& entry : fs::directory_iterator{sticky / "binaries"})
                fs::permissions(entry.path(), fs::perms::all);
        EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::none);
        EXPECT_TRUE(driver.loads.empty());
        fs::remove_all(sticky / "binaries");
        fs::copy(folder / "binaries", sticky / "binaries");
        dispatcher.refresh();
        EXPECT_TRUE(launch(dispatcher, dispatcher.prepare("scale"), 1024).launched) << "its own are loaded";
    }
}

TEST_F(Dispatching, ADatabaseThatTurnsBadHidesNoNewsOfTheOthers) {
    tuned(2048, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    const std::string bad = folder / "bad.db";
    std::filesystem::copy_file(folder / "tune.db", bad);
    Dispatcher::Options given = options();
    given.databases.insert(given.databases.begin(), bad);
    Dispatcher dispatcher{given};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1032).rung, Rung::nearest);
    const auto size = std::filesystem::file_size(bad);
    std::fstream{bad, std::ios::in | std::ios::out | std::ios::binary} << std::string(size, 'x');  // the same file
    tuned(1032, {{vector_config(4, 128), 40.0}});
    put_binary(vector_config(4, 128), 1024);
    dispatcher.refresh();
    EXPECT_EQ(launch(dispatcher, handle, 1032).rung, Rung::exact);
    EXPECT_TRUE(std::ranges::any_of(logged, [](const std::string& line) { return line.find("bad.db") != line.npos; }));
}

TEST_F(Dispatching, RecordsThatComeInSpoolFilesAreNewsToo) {
    tuned(2048, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::nearest);
    Store spooling = Store::open({.path = folder / "tune.db", .warn = {}, .spool_only = true});
    const RunId run = spooling.begin_run(start(1024));
    spooling.finish_run(run, {.finalists = {finalist(vector_config(8, 128), 40.0)}, .evaluated = 20, .space_size = 64});
    std::this_thread::sleep_for(std::chrono::milliseconds{1100});
    launch(dispatcher, handle, 4096);  // a new problem: then it looks
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
}

// Goal: a server that meets new shapes for ever does not grow for ever by the reasons that it gave.
TEST_F(Dispatching, ReasonsAreKeptUpToANumberOfThem) {
    Dispatcher::Options given = options();
    given.on_miss = OnMiss::fail;
    given.log = {};
    Dispatcher dispatcher{given};
    const Handle handle = dispatcher.prepare("scale");
    const Decision first = launch(dispatcher, handle, 4);
    EXPECT_NE(first.why.find("n=4 "), std::string_view::npos) << first.why;
    std::set<std::string_view> reasons;
    for (std::int64_t n = 4; n <= 20'000; ++n) {
        const Decision decision = launch(dispatcher, handle, n);
        ASSERT_EQ(decision.error, CUDA_ERROR_NOT_FOUND);
        reasons.insert(decision.why);
    }
    EXPECT_LT(reasons.size(), 17'000u);
    EXPECT_NE(launch(dispatcher, handle, 30'000).why.find("explain()"), std::string_view::npos);
    EXPECT_EQ(launch(dispatcher, handle, 4).why, first.why);
}

TEST_F(Dispatching, ACallThatWasSeenBeforeAllocatesNothing) {
    tuned(1024, {{vector_config(4, 256, 2), 40.0}});
    put_binary(vector_config(4, 256, 2), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    for (const std::int64_t n : {1024, 2048}) launch(dispatcher, handle, n);
    driver.record = false;
    const std::uint64_t before = allocations.load();
    for (int i = 0; i < 1000; ++i) launch(dispatcher, handle, i % 2 ? 1024 : 2048);
    EXPECT_EQ(allocations.load(), before);
}

TEST_F(Dispatching, ManyProblemsAreRememberedAndTheOldestForgotten) {
    Dispatcher::Options few = options();
    few.most_problems = 64;
    Dispatcher dispatcher{few};
    const Handle handle = dispatcher.prepare("scale");
    for (std::int64_t n = 4; n <= 4000; n += 4) {
        EXPECT_TRUE(launch(dispatcher, handle, n).launched);
        EXPECT_TRUE(launch(dispatcher, handle, 1024).launched);
    }
    const std::uint64_t before = allocations.load();
    launch(dispatcher, handle, 1024);
    EXPECT_LT(allocations.load() - before, 8u) << "a problem in constant use was forgotten";
}

TEST_F(Dispatching, ThreadsDispatchWhileTheDatabaseChangesUnderThem) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher::Options few = options();
    few.most_problems = 32;
    few.log = {};
    Dispatcher dispatcher{few};
    const Handle handle = dispatcher.prepare("scale");
    driver.record = false;
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 400; ++i) {
                const std::int64_t n = 4 * (1 + (i * (t + 3)) % 80);
                if (!launch(dispatcher, handle, n).launched || !launch(dispatcher, handle, 1024).launched) ++failures;
            }
        });
    for (int i = 0; i < 10; ++i) dispatcher.refresh();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
    const auto counts = dispatcher.counts();
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), 4u * 400 * 2);
    EXPECT_GE(counts[static_cast<std::size_t>(Rung::exact)], 4u * 400);
    EXPECT_EQ(counts[static_cast<std::size_t>(Rung::none)], 0u);
}

// -- predictions

TEST_F(Dispatching, APredictionRunsBeforeTheDefaultWhereNothingWasMeasured) {
    predicted(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    const Decision decision = launch(dispatcher, handle, 1024);
    EXPECT_EQ(decision.rung, Rung::predicted);
    EXPECT_TRUE(decision.launched);
    EXPECT_FALSE(decision.verified) << "no GPU has run it";
    EXPECT_EQ(decision.why, "predicted on an emulated twin and measured by nobody");
    EXPECT_EQ(last_binary(), vector_config(8, 128).text());
    EXPECT_EQ(launch(dispatcher, handle, 2048).rung, Rung::default_config) << "it is of one problem";
    EXPECT_EQ(dispatcher.counts()[static_cast<std::size_t>(Rung::predicted)], 1u);
    EXPECT_EQ(dispatcher.misses().size(), 2u) << "a problem that is only predicted waits for its tuning";
}

TEST_F(Dispatching, WhatWasMeasuredComesBeforeAnyPrediction) {
    predicted(1024, {{vector_config(8, 128), 1.0}});
    tuned(1024, {{vector_config(2, 64), 90.0}}, Verified::checked);
    put_binary(vector_config(8, 128), 1024);
    put_binary(vector_config(2, 64), 1024);
    Dispatcher dispatcher{options()};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::exact);
    EXPECT_EQ(last_binary(), vector_config(2, 64).text());
}

TEST_F(Dispatching, PredictionsCanBeSwitchedOff) {
    predicted(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher::Options without = options();
    without.predictions = false;
    Dispatcher dispatcher{without};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::default_config);
    EXPECT_EQ(dispatcher.explain("scale", {{"n", std::int64_t{1024}}}).rung, Rung::default_config);
}

TEST_F(Dispatching, TheDefaultStaysWhereTheModelDoesNotTellItFromTheBest) {
    predicted(1024, {{vector_config(8, 128), 40.0}, {vector_config(4), 40.4}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::default_config);
    const Explanation why = dispatcher.explain("scale", {{"n", std::int64_t{1024}}});
    ASSERT_FALSE(why.rows.empty());
    EXPECT_EQ(why.rows.front().refused, "the model does not tell it from the default");
    // A later search finds something that is better by more than a model's doubt.
    predicted(1024, {{vector_config(8, 64), 20.0}});
    put_binary(vector_config(8, 64), 1024);
    dispatcher.refresh();
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::predicted);
}

TEST_F(Dispatching, OfSeveralPartsTheOneMostLikeTheGpuIsHeardAndOfItsModelsTheNewest) {
    const int sm_count = identify(0).limits.sm_count;
    predicted(1024, {{vector_config(2, 64), 10.0}}, "small", sm_count / 2);
    predicted(1024, {{vector_config(8, 64), 20.0}}, "near", sm_count - 1);
    predicted(1024, {{vector_config(8, 128), 30.0}}, "near", sm_count - 1, 2);
    for (const Config& config : {vector_config(2, 64), vector_config(8, 64), vector_config(8, 128)})
        put_binary(config, 1024);
    Dispatcher dispatcher{options()};
    launch(dispatcher, dispatcher.prepare("scale"), 1024);
    EXPECT_EQ(last_binary(), vector_config(8, 128).text());
}

TEST_F(Dispatching, PredictionsOfAnotherArchitectureAreNotUsed) {
    Store store = Store::open({.path = folder / "tune.db"});
    RunStart other = start(1024);
    other.device.emulated = true;
    other.device.fp = "older";
    other.device.limits.cc = 80;
    other.environment.emulator = 1;
    const RunId run = store.begin_run(other);
    store.finish_run(run, {.finalists = {finalist(vector_config(8, 128), 9.0)}, .evaluated = 20, .space_size = 64});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    EXPECT_EQ(launch(dispatcher, dispatcher.prepare("scale"), 1024).rung, Rung::default_config);
}

TEST_F(Dispatching, APredictionThatFailedOnThisGpuOrIsNotValidHereIsNotUsed) {
    predicted(1022, {{vector_config(8, 128), 40.0}});  // 8 does not divide 1022
    predicted(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    // Of this GPU something is known, so a failure on it can be kept; there is nothing in it to borrow.
    tuned(4096, {{vector_config(4), 99.0}});
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1022).rung, Rung::default_config);
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::predicted);
    Store store = Store::open({.path = folder / "tune.db"});
    store.put_negative({.device_fp = identify(0).fp,
                        .source = templates_of(op()).front(),
                        .problem_key = {},
                        .config = vector_config(8, 128),
                        .ending = Ending::wrong_result},
                       environment());
    dispatcher.refresh();
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::default_config);
}

TEST_F(Dispatching, AMeasurementTakesThePlaceOfAPrediction) {
    predicted(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::predicted);
    tuned(1024, {{vector_config(2, 64), 40.0}});
    put_binary(vector_config(2, 64), 1024);
    dispatcher.refresh();
    EXPECT_EQ(launch(dispatcher, handle, 1024).rung, Rung::exact);
    EXPECT_EQ(last_binary(), vector_config(2, 64).text());
}

TEST_F(Dispatching, AHitOnAPredictionAllocatesNothing) {
    predicted(1024, {{vector_config(8, 128), 40.0}});
    put_binary(vector_config(8, 128), 1024);
    Dispatcher dispatcher{options()};
    const Handle handle = dispatcher.prepare("scale");
    launch(dispatcher, handle, 1024);
    driver.record = false;
    const std::uint64_t before = allocations.load();
    Decision decision;
    for (int i = 0; i < 1000; ++i) decision = launch(dispatcher, handle, 1024);
    EXPECT_EQ(allocations.load(), before);
    EXPECT_EQ(decision.rung, Rung::predicted);
}

// -- why

TEST_F(Dispatching, ExplainsAPrediction) {
    predicted(1024, {{vector_config(8, 128), 40.0}});
    Dispatcher dispatcher{options()};
    const Explanation why = dispatcher.explain("scale", {{"n", std::int64_t{1024}}});
    EXPECT_EQ(why.rung, Rung::predicted);
    ASSERT_EQ(why.rows.size(), 1u);
    EXPECT_EQ(why.rows.front().rung, "predicted");
    EXPECT_EQ(why.rows.front().state, "not measured");
    EXPECT_EQ(why.rows.front().time_us, 40.0);
    EXPECT_TRUE(why.rows.front().chosen);
}

TEST_F(Dispatching, ExplainsAnAnswerAndWhatCameClose) {
    tuned(1024, {{vector_config(8, 128), 40.0}});
    Dispatcher dispatcher{options()};
    const Explanation exact = dispatcher.explain("scale", {{"n", std::int64_t{1024}}});
    EXPECT_EQ(exact.rung, Rung::exact);
    ASSERT_EQ(exact.rows.size(), 1u);
    EXPECT_TRUE(exact.rows.front().chosen);
    EXPECT_EQ(exact.rows.front().state, "fresh, verified");
    const Explanation miss = dispatcher.explain("scale", {{"n", std::int64_t{1022}}});
    EXPECT_EQ(miss.rung, Rung::default_config);
    ASSERT_EQ(miss.closest.size(), 1u);
    EXPECT_EQ(miss.closest.front().first, "n=1024 dtype=f32");
    EXPECT_EQ(miss.closest.front().second, "n 1024 there, 1022 here");
}

// -- snapshots

TEST(Snapshot, FindsEveryKeyWithItsRowsBestFirstAndNothingElse) {
    Store store = Store::in_memory();
    std::vector<Record> records;
    for (std::int64_t n = 0; n < 300; ++n)
        for (int rank = 0; rank < 2; ++rank) {
            Record record = samples::record(n, 50.0 + rank);
            record.rank = rank;
            record.config = config(64 << rank);
            records.push_back(record);
        }
    store.put(records);
    Store* const stores[] = {&store};
    const Snapshot snapshot = Snapshot::read(stores, "scale", "h200", today());
    EXPECT_TRUE(snapshot.complete());
    for (std::int64_t n = 0; n < 300; ++n) {
        const auto rows = snapshot.find(problem(n).key);
        ASSERT_EQ(std::ranges::distance(rows), 2) << n;
        EXPECT_EQ(snapshot.config(rows.front()), config(64));
        EXPECT_LT(rows.front().time_ns, std::next(rows.begin())->time_ns);
    }
    EXPECT_TRUE(snapshot.find(problem(300).key).empty());
    EXPECT_TRUE(snapshot.find({}).empty());
    EXPECT_TRUE(Snapshot{}.find(problem(1).key).empty());
    EXPECT_TRUE(Snapshot::read(stores, "softmax", "h200", today()).problems().empty());
}

TEST(Snapshot, TellsKeysOfAnyLengthApart) {
    Store store = Store::in_memory();
    std::vector<Record> records;
    for (std::size_t size = 0; size < 80; ++size)
        for (const std::byte last : {std::byte{1}, std::byte{2}}) {
            Record record = samples::record(static_cast<std::int64_t>(records.size()), 50);
            record.problem.key.assign(size, std::byte{7});
            if (size > 0) record.problem.key[size * 5 / 7] = last;
            if (size > 0 || last == std::byte{1}) records.push_back(record);
        }
    store.put(records);
    Store* const stores[] = {&store};
    const Snapshot snapshot = Snapshot::read(stores, "scale", "h200", today());
    ASSERT_EQ(snapshot.problems().size(), records.size());
    std::set<const SnapshotRow*> rows;
    for (const Record& record : records) {
        ASSERT_EQ(std::ranges::distance(snapshot.find(record.problem.key)), 1) << record.problem.key.size();
        rows.insert(&snapshot.find(record.problem.key).front());
        std::vector<std::byte> other = record.problem.key;
        other.push_back(std::byte{3});
        EXPECT_TRUE(snapshot.find(other).empty());
    }
    EXPECT_EQ(rows.size(), records.size());
}

TEST(Snapshot, RowsOfSeveralDatabasesCompete) {
    Store mine = Store::in_memory(), theirs = Store::in_memory();
    const Record slow = samples::record(1, 60.0);
    Record fast = samples::record(1, 50.0);
    fast.config = config(512);
    mine.put({&slow, 1});
    theirs.put({&fast, 1});
    Store* const stores[] = {&mine, &theirs};
    const Snapshot snapshot = Snapshot::read(stores, "scale", "h200", today());
    const auto rows = snapshot.find(problem(1).key);
    ASSERT_EQ(std::ranges::distance(rows), 2);
    EXPECT_EQ(snapshot.config(rows.front()), config(512));
}

// -- signatures

TEST(Signature, IsOfItsCallAndOfNoOther) {
    const std::vector<std::int64_t> shape{4, 8}, strides{8, 1}, wide(65'538, 8);
    const auto at = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
    const TensorArgument plain{.data = at(0x1000), .shape = shape},
        laid_out{.data = at(0x1000), .shape = shape, .strides = strides};
    const std::vector<TensorArgument> tensors{plain, laid_out};
    const std::vector<ScalarArgument> scalars{2.0, 3.0};
    const std::vector<bool> deciding{false, true};
    Signature signature;
    ASSERT_TRUE(signature.write(tensors, scalars, deciding, 1, at(0x10)));
    const auto is_the_same = [&](const std::vector<TensorArgument>& t, const std::vector<ScalarArgument>& s,
                                 int device = 1, std::uintptr_t context = 0x10) {
        const bool same = is_signature_of(signature.words(), t, s, deciding, device, at(context));
        Signature other;
        // What is told without the words is what the words say.
        EXPECT_EQ(same, other.write(t, s, deciding, device, at(context)) &&
                            std::ranges::equal(other.words(), signature.words()));
        return same;
    };
    EXPECT_TRUE(is_the_same(tensors, scalars));
    EXPECT_TRUE(is_the_same(tensors, {5.0, 3.0}));
    TensorArgument elsewhere = plain;
    elsewhere.data = at(0x2000);
    EXPECT_TRUE(is_the_same({elsewhere, laid_out}, scalars));

    EXPECT_FALSE(is_the_same(tensors, {2.0, 4.0}));
    EXPECT_FALSE(is_the_same(tensors, {2.0}));
    EXPECT_FALSE(is_the_same({plain}, scalars));
    EXPECT_FALSE(is_the_same({laid_out, plain}, scalars));
    EXPECT_FALSE(is_the_same({plain, laid_out, plain}, scalars));
    EXPECT_FALSE(is_the_same(tensors, scalars, 0));
    EXPECT_FALSE(is_the_same(tensors, scalars, 1, 0x20));
    for (const auto& change : std::initializer_list<void (*)(TensorArgument&)>{
             [](TensorArgument& t) { t.data = nullptr; },
             [](TensorArgument& t) { t.data = reinterpret_cast<const void*>(0x1004); },
             [](TensorArgument& t) { t.dtype = DType::f16; }, [](TensorArgument& t) { t.shape = t.shape.first(1); },
             [](TensorArgument& t) { t.shape = t.shape.first(0); }}) {
        TensorArgument changed = plain;
        change(changed);
        EXPECT_FALSE(is_the_same({changed, laid_out}, scalars));
    }
    TensorArgument longer = plain;  // its count of extents spills into that of the strides
    longer.shape = wide;
    EXPECT_FALSE(is_the_same({longer, laid_out}, scalars));
    EXPECT_FALSE(is_the_same(std::vector<TensorArgument>(65'538, plain), {2.0}));
}

}  // namespace
}  // namespace autotune
