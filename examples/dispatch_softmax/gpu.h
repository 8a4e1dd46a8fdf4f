// Just enough of the CUDA driver for the example: a context and arrays. An application has its own way to these, such
// as the CUDA runtime or a framework's tensors; the dispatcher takes any device memory.
#ifndef EXAMPLES_DISPATCH_SOFTMAX_GPU_H
#define EXAMPLES_DISPATCH_SOFTMAX_GPU_H

#include <autotune/error.h>
#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

/// The driver's calls, found at run time, so that the example builds and says what is missing where there is no GPU.
/// Addresses are CUdeviceptr, statuses CUresult: 0 is success.
struct CudaCalls {
    int (*init)(unsigned) = nullptr;
    int (*retain)(void** context, int device) = nullptr;
    int (*set_current)(void* context) = nullptr;
    int (*alloc)(std::uintptr_t* memory, std::size_t bytes) = nullptr;
    int (*free)(std::uintptr_t memory) = nullptr;
    int (*to_device)(std::uintptr_t to, const void* from, std::size_t bytes) = nullptr;
    int (*to_host)(void* to, std::uintptr_t from, std::size_t bytes) = nullptr;
};

inline CudaCalls& cuda() {
    static CudaCalls calls;
    return calls;
}

inline void require(int status, const char* what) {
    if (status != 0)
        throw autotune::Error{autotune::Error::Kind::device,
                              std::string{what} + " failed with status " + std::to_string(status)};
}

/// Opens the driver and enters the first GPU's primary context.
class Gpu {
public:
    Gpu() {
        void* library = dlopen("libcuda.so.1", RTLD_NOW);
        if (!library) {
            why_not_ = "there is no NVIDIA driver here";
            return;
        }
        const auto find = [library](auto& call, const char* name) {
            call = reinterpret_cast<std::decay_t<decltype(call)>>(dlsym(library, name));
        };
        CudaCalls& calls = cuda();
        find(calls.init, "cuInit");
        find(calls.retain, "cuDevicePrimaryCtxRetain");
        find(calls.set_current, "cuCtxSetCurrent");
        find(calls.alloc, "cuMemAlloc_v2");
        find(calls.free, "cuMemFree_v2");
        find(calls.to_device, "cuMemcpyHtoD_v2");
        find(calls.to_host, "cuMemcpyDtoH_v2");
        void* context = nullptr;
        if (calls.init(0) != 0 || calls.retain(&context, 0) != 0) {
            why_not_ = "there is no GPU that can be used here";
            return;
        }
        require(calls.set_current(context), "entering the context");
    }
    bool present() const { return why_not_ == nullptr; }
    const char* why_not() const { return why_not_; }

private:
    const char* why_not_ = nullptr;
};

/// Floats on the GPU.
class GpuArray {
public:
    explicit GpuArray(const std::vector<float>& values) : bytes_{values.size() * sizeof(float)} {
        require(cuda().alloc(&address_, bytes_), "allocating");
        require(cuda().to_device(address_, values.data(), bytes_), "copying to the GPU");
    }
    GpuArray(const GpuArray&) = delete;
    GpuArray& operator=(const GpuArray&) = delete;
    ~GpuArray() { cuda().free(address_); }
    const void* data() const { return reinterpret_cast<const void*>(address_); }
    void read(std::vector<float>& out) const {
        require(cuda().to_host(out.data(), address_, bytes_), "copying from the GPU");
    }

private:
    std::uintptr_t address_ = 0;
    std::size_t bytes_;
};

#endif
