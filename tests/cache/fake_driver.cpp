#include "tests/cache/fake_driver.h"

#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

namespace autotune::fake {

namespace {

Driver* current = nullptr;
std::mutex mutex;

struct FakeKernel {
    std::string binary, entry;
};
struct FakeLibrary {
    std::string binary;
};
std::deque<FakeKernel> kernels;
std::deque<FakeLibrary> libraries;

void forbidden_in_capture(const char* call) {
    if (!current->capturing.empty()) current->calls_in_capture.emplace_back(call);
}

int attribute_of(CUdevice_attribute which, CUdevice device) {
    const auto given = current->attributes.find({device, which});
    if (given != current->attributes.end()) return given->second;
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            return current->cc / 10;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            return current->cc % 10;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            return current->sm_count;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
            return 32;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            return 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            return 232448;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
            return 233472;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
            return 65536;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
            return 2048;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
            return 32;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
            return 60 << 20;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
            return 2147483647;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
            return 65535;
        default:
            return 1024;
    }
}

void fill_device_calls(DriverCalls& calls) {
    calls.cuDriverGetVersion = [](int* version) {
        *version = 13000;
        return CUDA_SUCCESS;
    };
    calls.cuGetErrorName = [](CUresult, const char** name) {
        *name = "CUDA_ERROR_OF_THE_TEST";
        return CUDA_SUCCESS;
    };
    calls.cuGetErrorString = calls.cuGetErrorName;
    calls.cuDeviceGetCount = [](int* count) {
        *count = current->devices;
        return CUDA_SUCCESS;
    };
    calls.cuDeviceGet = [](CUdevice* device, int ordinal) {
        *device = ordinal;
        return CUDA_SUCCESS;
    };
    calls.cuDeviceGetName = [](char* name, int size, CUdevice) {
        std::strncpy(name, "NVIDIA H200", static_cast<std::size_t>(size));
        return CUDA_SUCCESS;
    };
    calls.cuDeviceGetAttribute = [](int* value, CUdevice_attribute which, CUdevice device) {
        *value = attribute_of(which, device);
        return CUDA_SUCCESS;
    };
    calls.cuDeviceTotalMem = [](std::size_t* bytes, CUdevice) {
        *bytes = std::size_t{141} << 30;
        return CUDA_SUCCESS;
    };
    calls.cuDeviceGetUuid = [](CUuuid* uuid, CUdevice) {
        std::memset(uuid, 7, sizeof *uuid);
        return CUDA_SUCCESS;
    };
    calls.cuDeviceGetPCIBusId = [](char* id, int size, CUdevice) {
        std::strncpy(id, "0000:65:00.0", static_cast<std::size_t>(size));
        return CUDA_SUCCESS;
    };
    calls.cuCtxGetDevice = [](CUdevice* device) {
        *device = current->current_device;
        return CUDA_SUCCESS;
    };
}

void fill_library_calls(DriverCalls& calls) {
    calls.cuLibraryLoadData = [](CUlibrary* out, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*,
                                 void**, unsigned) {
        const std::lock_guard lock{mutex};
        forbidden_in_capture("cuLibraryLoadData");
        const std::string binary{static_cast<const char*>(code)};
        if (current->on_load)
            if (const CUresult status = current->on_load(binary); status != CUDA_SUCCESS) return status;
        current->loads.push_back(binary);
        libraries.push_back({binary});
        *out = reinterpret_cast<CUlibrary>(&libraries.back());
        return CUDA_SUCCESS;
    };
    calls.cuLibraryUnload = [](CUlibrary) { return CUDA_SUCCESS; };
    calls.cuLibraryGetKernel = [](CUkernel* out, CUlibrary library, const char* name) {
        const std::lock_guard lock{mutex};
        kernels.push_back({reinterpret_cast<FakeLibrary*>(library)->binary, name});
        *out = reinterpret_cast<CUkernel>(&kernels.back());
        return CUDA_SUCCESS;
    };
    calls.cuKernelGetFunction = [](CUfunction* out, CUkernel kernel) {
        const std::lock_guard lock{mutex};
        const std::string& binary = reinterpret_cast<FakeKernel*>(kernel)->binary;
        if (current->functions.emplace(current->context, binary).second) forbidden_in_capture("cuKernelGetFunction");
        *out = reinterpret_cast<CUfunction>(kernel);
        return CUDA_SUCCESS;
    };
    calls.cuKernelSetAttribute = [](CUfunction_attribute, int, CUkernel, CUdevice) { return CUDA_SUCCESS; };
    calls.cuMemAlloc = [](CUdeviceptr* out, std::size_t bytes) {
        const std::lock_guard lock{mutex};
        forbidden_in_capture("cuMemAlloc");
        current->allocations.push_back(bytes);
        *out = 0x70000000ull + 0x1000000ull * current->allocations.size();
        current->held.insert(*out);
        return CUDA_SUCCESS;
    };
    calls.cuMemFree = [](CUdeviceptr address) {
        const std::lock_guard lock{mutex};
        forbidden_in_capture("cuMemFree");
        current->threads_that_waited.insert(std::this_thread::get_id());
        current->held.erase(address);
        return CUDA_SUCCESS;
    };
    calls.cuMemsetD8Async = [](CUdeviceptr, unsigned char, std::size_t, CUstream) {
        if (!current->record) return CUDA_SUCCESS;
        {
            const std::lock_guard lock{mutex};
            current->order += 'z';
        }
        if (current->slow_zeroing) std::this_thread::sleep_for(std::chrono::microseconds{200});
        return CUDA_SUCCESS;
    };
    calls.cuMemcpyDtoDAsync = [](CUdeviceptr to, CUdeviceptr from, std::size_t, CUstream) {
        const std::lock_guard lock{mutex};
        current->memory[to] = current->memory[from];
        current->clock_us += 1;
        return CUDA_SUCCESS;
    };
    calls.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus* status) {
        *status = current->capturing.contains(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
        return CUDA_SUCCESS;
    };
}

void note_wait() { current->threads_that_waited.insert(std::this_thread::get_id()); }

/// A clock that launches move on, and memory that holds one number a tensor.
void fill_clock_calls(DriverCalls& calls) {
    calls.cuCtxGetCurrent = [](CUcontext* context) {
        *context = current->context ? current->context : reinterpret_cast<CUcontext>(current);
        return CUDA_SUCCESS;
    };
    calls.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
    calls.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode*) { return CUDA_SUCCESS; };
    calls.cuEventCreate = [](CUevent* event, unsigned) {
        const std::lock_guard lock{mutex};
        static std::uintptr_t next = 1;
        *event = reinterpret_cast<CUevent>(next++);
        current->events[*event] = 0;
        return CUDA_SUCCESS;
    };
    calls.cuEventDestroy = [](CUevent event) {
        const std::lock_guard lock{mutex};
        current->events.erase(event);
        return CUDA_SUCCESS;
    };
    calls.cuEventRecord = [](CUevent event, CUstream) {
        const std::lock_guard lock{mutex};
        forbidden_in_capture("cuEventRecord");
        current->events[event] = current->clock_us;
        return CUDA_SUCCESS;
    };
    calls.cuEventSynchronize = [](CUevent) {
        const std::lock_guard lock{mutex};
        note_wait();
        return CUDA_SUCCESS;
    };
    calls.cuEventElapsedTime = [](float* ms, CUevent begin, CUevent end) {
        const std::lock_guard lock{mutex};
        *ms = static_cast<float>((current->events.at(end) - current->events.at(begin)) / 1000.0);
        return CUDA_SUCCESS;
    };
    calls.cuStreamCreate = [](CUstream* stream, unsigned) {
        *stream = reinterpret_cast<CUstream>(std::uintptr_t{0x57});
        return CUDA_SUCCESS;
    };
    calls.cuStreamDestroy = [](CUstream) { return CUDA_SUCCESS; };
    calls.cuStreamSynchronize = [](CUstream) {
        const std::lock_guard lock{mutex};
        note_wait();
        return CUDA_SUCCESS;
    };
    calls.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
        const std::lock_guard lock{mutex};
        const float value = current->memory[from];
        for (std::size_t at = 0; at + sizeof value <= bytes; at += sizeof value)
            std::memcpy(static_cast<char*>(to) + at, &value, sizeof value);
        return CUDA_SUCCESS;
    };
}

CUresult launch(CUfunction kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                unsigned shared, CUstream stream, void** arguments, void**) {
    if (!current->record) return CUDA_SUCCESS;
    const std::lock_guard lock{mutex};
    current->order += 'l';
    const FakeKernel& what = *reinterpret_cast<FakeKernel*>(kernel);
    if (current->on_launch)
        if (const CUresult status = current->on_launch(what.binary); status != CUDA_SUCCESS) return status;
    SeenLaunch seen{.binary = what.binary,
                    .entry = what.entry,
                    .grid = {gx, gy, gz},
                    .block = {bx, by, bz},
                    .shared_bytes = shared,
                    .stream = stream};
    for (std::size_t i = 0; i < current->argument_count; ++i) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, arguments[i], sizeof bits);
        seen.arguments.push_back(bits);
    }
    if (current->time_us) current->clock_us += current->time_us(what.binary);
    if (current->argument_count > 1)
        current->memory[seen.arguments[1]] = current->writes ? current->writes(what.binary) : 1.0f;
    current->launches.push_back(std::move(seen));
    return CUDA_SUCCESS;
}

}  // namespace

Driver& driver() { return *current; }

Driver::Driver() {
    current = this;
    fill_device_calls(calls);
    fill_library_calls(calls);
    fill_clock_calls(calls);
    calls.cuLaunchKernel = launch;
    replacement_ = std::make_unique<DriverReplacement>(calls);
}

Driver::~Driver() {
    replacement_.reset();
    current = nullptr;
}

}  // namespace autotune::fake
