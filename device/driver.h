#ifndef AUTOTUNE_DEVICE_DRIVER_H
#define AUTOTUNE_DEVICE_DRIVER_H

#include <cuda.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <source_location>
#include <string>
#include <string_view>
#include <thread>

#include "device/device.h"
#include "device/owned.h"

namespace autotune {

/// The driver's calls as members: `driver().cuMemAlloc(...)`. Nothing of CUDA is linked; libcuda.so.1 is opened
/// at first use, so the same binary starts where there is no driver.
struct DriverCalls {
#define DRIVER_CALL(name) decltype(&::name) name = nullptr;
#define DRIVER_CALL_OPTIONAL(name) decltype(&::name) name = nullptr;
#define DRIVER_CALL_AS(name, symbol) decltype(&::name) name = nullptr;
#include "device/driver_calls.def"
#undef DRIVER_CALL
#undef DRIVER_CALL_OPTIONAL
#undef DRIVER_CALL_AS
};

/// The table. Throws Error{device} when the driver is missing, older than 12.0, or fails to start.
const DriverCalls& driver();
/// The table, or null with the reason: for callers that go on without a GPU.
const DriverCalls* driver_if_present(std::string* why = nullptr) noexcept;

/// While it lives, `driver()` is this table: for tests and for benchmarks that stub a call. Copy `driver()` and
/// replace entries, or start from nothing. Not to be made while another thread calls the driver.
class DriverReplacement {
public:
    explicit DriverReplacement(const DriverCalls& calls);
    ~DriverReplacement();
    DriverReplacement(const DriverReplacement&) = delete;
    DriverReplacement& operator=(const DriverReplacement&) = delete;

private:
    DriverCalls calls_;
    const DriverCalls* before_;
};

/// What is to be done about a failed call.
enum class FaultAction {
    retry,           ///< it may work in a moment: the system was not ready; see patiently()
    candidate,       ///< this candidate failed; context and process are sound
    replace_worker,  ///< the context is lost, and with it the process: DeviceFault::sticky
    abort,           ///< no process will do better: the device or the driver is unfit
};

struct FaultRow {
    CUresult code;
    FaultAction action;
    DeviceFault::Kind kind;
};

/// What a status means; codes that the table does not know replace the worker, the safe side.
FaultRow fault_row(CUresult code) noexcept;
/// "CUDA_ERROR_ILLEGAL_ADDRESS", also without a driver.
std::string name_of(CUresult code);

/// A driver status and the line that got it; converts from a bare call, so check() needs no macro.
struct Status {
    Status(CUresult status_code, std::source_location location = std::source_location::current()) noexcept
        : code{status_code}, where{location} {}
    CUresult code;
    std::source_location where;
};

/// Makes a call again while the system is not ready for it (FaultAction::retry), until `patience` is over.
template <class Call>
CUresult patiently(Call&& call, std::chrono::milliseconds patience = std::chrono::seconds{5}) {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (auto pause = std::chrono::milliseconds{1};; pause = std::min(2 * pause, std::chrono::milliseconds{200})) {
        const CUresult status = call();
        if (status == CUDA_SUCCESS || fault_row(status).action != FaultAction::retry) return status;
        if (std::chrono::steady_clock::now() + pause > until) return status;
        std::this_thread::sleep_for(pause);
    }
}

/// Throws for a failed status: Error{device} where no process will do better, else DeviceFailure.
[[noreturn]] void throw_failure(Status status, std::string_view action);

/// Throws unless the call succeeded. `action` completes "... while"; it is formatted on failure only, so it may
/// name sizes and paths freely:  check(driver().cuMemAlloc(&p, n), "allocating {} bytes", n);
template <class... Args>
void check(Status status, fmt::format_string<Args...> action, Args&&... args) {
    if (status.code != CUDA_SUCCESS) throw_failure(status, fmt::format(action, std::forward<Args>(args)...));
}

inline constexpr auto unload_module = [](CUmodule module) noexcept { driver().cuModuleUnload(module); };
inline constexpr auto destroy_stream = [](CUstream stream) noexcept { driver().cuStreamDestroy(stream); };
inline constexpr auto destroy_event = [](CUevent event) noexcept { driver().cuEventDestroy(event); };
inline constexpr auto destroy_graph = [](CUgraph graph) noexcept { driver().cuGraphDestroy(graph); };
inline constexpr auto destroy_graph_exec = [](CUgraphExec graph) noexcept { driver().cuGraphExecDestroy(graph); };
inline constexpr auto free_memory = [](CUdeviceptr memory) noexcept { driver().cuMemFree(memory); };

using OwnedModule = Owned<CUmodule, unload_module>;
using OwnedStream = Owned<CUstream, destroy_stream>;
using OwnedEvent = Owned<CUevent, destroy_event>;
using OwnedGraph = Owned<CUgraph, destroy_graph>;
using OwnedGraphExec = Owned<CUgraphExec, destroy_graph_exec>;
using OwnedMemory = Owned<CUdeviceptr, free_memory>;

}  // namespace autotune
#endif
