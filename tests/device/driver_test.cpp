#include "device/driver.h"

#include <gtest/gtest.h>

#include "autotune/error.h"
#include "device/shared_library.h"

namespace autotune {
namespace {

TEST(Driver, MissingDriverIsAnErrorThatSaysWhatWorksInstead) {
    std::string why;
    if (driver_if_present(&why)) GTEST_SKIP() << "a driver is present";
    EXPECT_FALSE(why.empty());
    try {
        driver();
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::device);
        EXPECT_EQ(error.what(), why);
        EXPECT_NE(error.help().find("emulated"), std::string::npos);
    }
}

TEST(Driver, EntryCanBeReplacedForAWhile) {
    DriverCalls calls;
    static int asked;
    asked = 0;
    calls.cuDeviceGetCount = [](int* count) {
        ++asked;
        *count = 7;
        return CUDA_SUCCESS;
    };
    {
        const DriverReplacement replaced{calls};
        int count = 0;
        check(driver().cuDeviceGetCount(&count), "counting");
        EXPECT_EQ(count, 7);
    }
    EXPECT_EQ(asked, 1);
    const DriverCalls* after = driver_if_present();
    EXPECT_TRUE(!after || after->cuDeviceGetCount != calls.cuDeviceGetCount);
}

TEST(Driver, FailedCallNamesTheStatusAndTheAction) {
    DriverCalls calls;
    calls.cuGetErrorName = [](CUresult, const char** name) {
        *name = "CUDA_ERROR_OUT_OF_MEMORY";
        return CUDA_SUCCESS;
    };
    const DriverReplacement replaced{calls};
    try {
        check(CUDA_ERROR_OUT_OF_MEMORY, "allocating {} bytes for '{}'", 12, "x");
        FAIL() << "no failure";
    } catch (const DeviceFailure& failure) {
        EXPECT_STREQ(failure.what(), "CUDA_ERROR_OUT_OF_MEMORY while allocating 12 bytes for 'x'");
        EXPECT_EQ(failure.fault().kind, DeviceFault::Kind::out_of_memory);
        EXPECT_FALSE(failure.fault().sticky);
    }
}

TEST(Driver, LostContextIsSticky) {
    for (const CUresult code : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_LAUNCH_FAILED,
                                CUDA_ERROR_ASSERT, CUDA_ERROR_ILLEGAL_INSTRUCTION}) {
        EXPECT_EQ(fault_row(code).action, FaultAction::replace_worker) << name_of(code);
        try {
            check(code, "running 'k'");
            FAIL() << "no failure";
        } catch (const DeviceFailure& failure) {
            EXPECT_TRUE(failure.fault().sticky);
            EXPECT_EQ(failure.fault().code, static_cast<int>(code));
        }
    }
}

TEST(Driver, CandidateThatDoesNotFitLeavesTheContextSound) {
    for (const CUresult code : {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                                CUDA_ERROR_INVALID_CLUSTER_SIZE}) {
        EXPECT_EQ(fault_row(code).action, FaultAction::candidate);
        EXPECT_EQ(fault_row(code).kind, DeviceFault::Kind::does_not_fit);
    }
}

TEST(Driver, UnfitDeviceEndsTheRun) {
    EXPECT_EQ(fault_row(CUDA_ERROR_ECC_UNCORRECTABLE).action, FaultAction::abort);
    EXPECT_THROW(check(CUDA_ERROR_ECC_UNCORRECTABLE, "waiting"), Error);
}

TEST(Driver, UnknownStatusReplacesTheWorker) {
    EXPECT_EQ(fault_row(static_cast<CUresult>(998)).action, FaultAction::replace_worker);
}

TEST(Driver, ASystemThatIsNotReadyIsAskedAgainAndNothingElseIs) {
    int calls = 0;
    EXPECT_EQ(patiently([&] { return ++calls < 4 ? CUDA_ERROR_SYSTEM_NOT_READY : CUDA_SUCCESS; }), CUDA_SUCCESS);
    EXPECT_EQ(calls, 4);
    EXPECT_EQ(patiently([&] { return ++calls, CUDA_ERROR_OUT_OF_MEMORY; }), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(calls, 5);
    EXPECT_EQ(patiently([] { return CUDA_ERROR_MPS_SERVER_NOT_READY; }, std::chrono::milliseconds{5}),
              CUDA_ERROR_MPS_SERVER_NOT_READY);
}

TEST(Owned, ReleasesOnceAndOnlyWhatItHolds) {
    static int released;
    released = 0;
    constexpr auto release = [](int) { ++released; };
    {
        Owned<int, release> empty;
        Owned<int, release> first{3};
        Owned<int, release> second{std::move(first)};
        EXPECT_FALSE(first);
        EXPECT_EQ(second.get(), 3);
        Owned<int, release> abandoned{4};
        EXPECT_EQ(abandoned.abandon(), 4);
    }
    EXPECT_EQ(released, 1);
}

TEST(SharedLibrary, FailureSaysWhy) {
    std::string why;
    EXPECT_FALSE(SharedLibrary::open("libno_such_thing_here.so", why));
    EXPECT_NE(why.find("libno_such_thing_here"), std::string::npos);
}

}  // namespace
}  // namespace autotune
