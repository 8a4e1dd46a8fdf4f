#include "device/driver.h"

#include <array>
#include <atomic>
#include <mutex>

#include "autotune/error.h"
#include "device/shared_library.h"

namespace autotune {
namespace {

constexpr int oldest_driver = 12000;

std::atomic<const DriverCalls*> current{nullptr};

constexpr auto no_driver_help = "autotune --gpu emulated:a100";

/// Fills the table; returns what went wrong, or nothing.
std::string open_driver(DriverCalls& calls) {
    std::string why;
    const auto library = SharedLibrary::open("libcuda.so.1", why);
    if (!library) return fmt::format("no GPU can be used here, since there is no NVIDIA driver ({})", why);

    // cuda.h renames calls by macro (cuMemAlloc is cuMemAlloc_v2), so the exported name is the expanded one.
    std::string missing;
    const auto load = [&]<class Call>(Call& call, const char* symbol, bool needed) {
        call = reinterpret_cast<Call>(library->find(symbol));
        if (!call && needed && missing.empty()) missing = symbol;
    };
#define AUTOTUNE_TEXT(name) #name
#define DRIVER_CALL(name) load(calls.name, AUTOTUNE_TEXT(name), true);
#define DRIVER_CALL_OPTIONAL(name) load(calls.name, AUTOTUNE_TEXT(name), false);
#define DRIVER_CALL_AS(name, symbol) load(calls.name, symbol, true);
#include "device/driver_calls.def"
#undef DRIVER_CALL
#undef DRIVER_CALL_OPTIONAL
#undef DRIVER_CALL_AS
    if (!missing.empty())
        return fmt::format("the NVIDIA driver here lacks {}, so it is older than 525 (CUDA 12.0)", missing);
    int version = 0;
    if (calls.cuDriverGetVersion(&version) != CUDA_SUCCESS || version < oldest_driver)
        return fmt::format("the NVIDIA driver here speaks CUDA {}.{}, and 12.0 (driver 525) is the oldest that works",
                           version / 1000, version % 1000 / 10);
    if (const CUresult status = calls.cuInit(0); status != CUDA_SUCCESS) {
        const char* name = nullptr;
        calls.cuGetErrorName(status, &name);
        return fmt::format("no GPU can be used here, since the driver did not start ({})",
                           name ? name : "unknown error");
    }
    return {};
}

struct Opened {
    DriverCalls calls;
    std::string why;
};

/// Opened once a process, whatever the answer: a driver does not appear while a program runs.
const Opened& opened() {
    static const Opened once = [] {
        Opened result;
        result.why = open_driver(result.calls);
        return result;
    }();
    return once;
}

using enum FaultAction;
using Kind = DeviceFault::Kind;

constexpr std::array fault_rows{
    FaultRow{CUDA_ERROR_INVALID_VALUE, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_OUT_OF_MEMORY, candidate, Kind::out_of_memory},
    FaultRow{CUDA_ERROR_NOT_INITIALIZED, abort, Kind::crashed},
    FaultRow{CUDA_ERROR_DEINITIALIZED, abort, Kind::crashed},
    FaultRow{CUDA_ERROR_STUB_LIBRARY, abort, Kind::crashed},
    FaultRow{CUDA_ERROR_DEVICE_UNAVAILABLE, retry, Kind::crashed},
    FaultRow{CUDA_ERROR_NO_DEVICE, abort, Kind::crashed},
    FaultRow{CUDA_ERROR_INVALID_DEVICE, abort, Kind::crashed},
    FaultRow{CUDA_ERROR_DEVICE_NOT_LICENSED, abort, Kind::crashed},
    FaultRow{CUDA_ERROR_INVALID_IMAGE, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_INVALID_CONTEXT, replace_worker, Kind::crashed},
    FaultRow{CUDA_ERROR_NO_BINARY_FOR_GPU, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_ECC_UNCORRECTABLE, abort, Kind::crashed},
    FaultRow{CUDA_ERROR_UNSUPPORTED_LIMIT, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_INVALID_PTX, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_NVLINK_UNCORRECTABLE, abort, Kind::crashed},
    FaultRow{CUDA_ERROR_JIT_COMPILER_NOT_FOUND, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_UNSUPPORTED_PTX_VERSION, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_JIT_COMPILATION_DISABLED, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_INVALID_SOURCE, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_INVALID_HANDLE, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_NOT_FOUND, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_NOT_READY, retry, Kind::launch_failed},
    FaultRow{CUDA_ERROR_ILLEGAL_ADDRESS, replace_worker, Kind::invalid_access},
    FaultRow{CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, candidate, Kind::does_not_fit},
    FaultRow{CUDA_ERROR_LAUNCH_TIMEOUT, replace_worker, Kind::crashed},
    FaultRow{CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_CONTEXT_IS_DESTROYED, replace_worker, Kind::crashed},
    FaultRow{CUDA_ERROR_ASSERT, replace_worker, Kind::crashed},
    FaultRow{CUDA_ERROR_HARDWARE_STACK_ERROR, replace_worker, Kind::crashed},
    FaultRow{CUDA_ERROR_ILLEGAL_INSTRUCTION, replace_worker, Kind::crashed},
    FaultRow{CUDA_ERROR_MISALIGNED_ADDRESS, replace_worker, Kind::invalid_access},
    FaultRow{CUDA_ERROR_INVALID_ADDRESS_SPACE, replace_worker, Kind::invalid_access},
    FaultRow{CUDA_ERROR_INVALID_PC, replace_worker, Kind::crashed},
    FaultRow{CUDA_ERROR_LAUNCH_FAILED, replace_worker, Kind::crashed},
    FaultRow{CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, candidate, Kind::does_not_fit},
    FaultRow{CUDA_ERROR_NOT_PERMITTED, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_NOT_SUPPORTED, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_SYSTEM_NOT_READY, retry, Kind::crashed},
    FaultRow{CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, abort, Kind::crashed},
    FaultRow{CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, abort, Kind::crashed},
    FaultRow{CUDA_ERROR_MPS_CONNECTION_FAILED, retry, Kind::crashed},
    FaultRow{CUDA_ERROR_MPS_SERVER_NOT_READY, retry, Kind::crashed},
    FaultRow{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, candidate, Kind::launch_failed},
    FaultRow{CUDA_ERROR_INVALID_CLUSTER_SIZE, candidate, Kind::does_not_fit},
    FaultRow{CUDA_ERROR_UNKNOWN, replace_worker, Kind::crashed},
};

}  // namespace

const DriverCalls* driver_if_present(std::string* why) noexcept {
    if (const DriverCalls* calls = current.load(std::memory_order_acquire)) return calls;
    const Opened& once = opened();
    if (!once.why.empty()) {
        if (why) *why = once.why;
        return nullptr;
    }
    current.store(&once.calls, std::memory_order_release);
    return &once.calls;
}

const DriverCalls& driver() {
    if (const DriverCalls* calls = current.load(std::memory_order_acquire)) return *calls;
    std::string why;
    if (const DriverCalls* calls = driver_if_present(&why)) return *calls;
    throw Error{Error::Kind::device, why, no_driver_help};
}

DriverReplacement::DriverReplacement(const DriverCalls& calls)
    : calls_{calls}, before_{current.exchange(&calls_, std::memory_order_acq_rel)} {}

DriverReplacement::~DriverReplacement() { current.store(before_, std::memory_order_release); }

FaultRow fault_row(CUresult code) noexcept {
    for (const FaultRow& row : fault_rows)
        if (row.code == code) return row;
    return {code, FaultAction::replace_worker, DeviceFault::Kind::crashed};
}

std::string name_of(CUresult code) {
    const DriverCalls* calls = driver_if_present();
    const char* name = nullptr;
    if (calls && calls->cuGetErrorName && calls->cuGetErrorName(code, &name) == CUDA_SUCCESS && name) return name;
    return fmt::format("CUDA error {}", static_cast<int>(code));
}

void throw_failure(Status status, std::string_view action) {
    const FaultRow row = fault_row(status.code);
    const std::string message = fmt::format("{} while {}", name_of(status.code), action);
    if (row.action == FaultAction::abort)
        throw Error{Error::Kind::device, fmt::format("the driver failed: {}", message), "autotune doctor",
                    status.where};
    throw DeviceFailure{{.kind = row.kind,
                         .code = static_cast<int>(status.code),
                         .message = message,
                         .sticky = row.action == FaultAction::replace_worker}};
}

}  // namespace autotune
