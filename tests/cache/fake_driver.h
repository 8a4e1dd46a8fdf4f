#ifndef AUTOTUNE_TESTS_CACHE_FAKE_DRIVER_H
#define AUTOTUNE_TESTS_CACHE_FAKE_DRIVER_H

#include <cuda.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/driver.h"

namespace autotune::fake {

/// One kernel launch as the driver got it.
struct SeenLaunch {
    std::string binary;  ///< the cubin's bytes up to the first zero
    std::string entry;
    Dim3 grid, block;
    std::uint32_t shared_bytes = 0;
    CUstream stream = nullptr;
    std::vector<std::uint64_t> arguments{};  ///< the 8 bytes at each, as many as `argument_count` says
};

/// A driver that is a table of functions: it loads anything, launches nothing and remembers all. One at a time.
class Driver {
public:
    Driver();
    ~Driver();
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

    /// Whether a launch of this binary fails, and how; the same for loading.
    std::function<CUresult(const std::string&binary)> on_launch{}, on_load{};
    std::set<CUstream> capturing{};
    int devices = 1;
    int current_device = 0;
    CUcontext context = nullptr;  ///< the current one, of every thread; null: one that is not
    int sm_count = 132;
    std::map<std::pair<int, int>, int> attributes{};  ///< by ordinal and attribute, where it is not as below
    std::size_t argument_count = 0;                   ///< how many arguments of a launch to copy
    bool record = true;                               ///< false: launches return at once, for counting and timing
    int cc = 90;

    /// How long a launch of this binary takes on the GPU, in microseconds, and what it writes to its second argument:
    /// `bytes_written` of floats of that value. Empty: nothing, 1.
    std::function<double(const std::string& binary)> time_us{};
    std::function<float(const std::string& binary)> writes{};

    std::vector<SeenLaunch> launches{};
    std::vector<std::string> loads{};
    std::set<std::pair<CUcontext, std::string>> functions{};  ///< binaries with a kernel ready, by context
    std::vector<std::uint64_t> allocations{};
    std::string order{};        ///< 'z' for each zeroing, 'l' for each launch, as they came
    bool slow_zeroing = false;  ///< another thread gets its chance between a zeroing and the launch behind it
    double clock_us = 0;        ///< of the GPU: launches and copies move it on
    std::map<CUdeviceptr, float> memory{};            ///< what was written at an address, whole tensors
    std::map<CUevent, double> events{};               ///< when each was reached
    std::set<std::thread::id> threads_that_waited{};  ///< for events, streams or memory
    std::set<CUdeviceptr> held{};                     ///< allocations that were not freed
    std::vector<std::string> calls_in_capture{};      ///< calls that may not be made while anything is captured

    DriverCalls calls{};

private:
    std::unique_ptr<DriverReplacement> replacement_;
};

/// The current one.
Driver& driver();

}  // namespace autotune::fake
#endif
