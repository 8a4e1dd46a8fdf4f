#ifndef AUTOTUNE_DEVICE_CUDA_LAUNCH_H
#define AUTOTUNE_DEVICE_CUDA_LAUNCH_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/driver.h"

namespace autotune {

/// One kernel of a loaded module, with what was set on it so far.
struct CudaFunction {
    CUfunction handle = nullptr;
    int static_shared_bytes = 0;
    int max_threads = 0;           ///< a block, as its registers allow
    int dynamic_shared_bytes = 0;  ///< that were opted in to
    bool large_clusters = false;   ///< more than 8 blocks were allowed
};

/// A loaded artefact.
class CudaModule {
public:
    /// The cubin, or where the driver does not take it, the PTX. Throws DeviceFailure when neither loads.
    CudaModule(const Artefact& artefact, const DeviceIdentity& device);

    /// A kernel, by its name in the source or by its symbol. Throws DeviceFailure when there is none.
    CudaFunction& function(const std::string& entry);
    /// The address and size of a module-scope variable.
    std::pair<CUdeviceptr, std::size_t> symbol(const std::string& name) const;

private:
    OwnedModule module_;
    std::map<std::string, std::string> symbols_;  ///< of kernels, by name
    std::map<std::string, CudaFunction> functions_;
};

/// A launch with its arguments packed, ready to be enqueued any number of times: into a stream, or into a capture.
class CudaLaunch {
public:
    /// Sets on the function what the launch needs, once (shared memory beyond 48 KiB, large clusters).
    /// throws  DeviceFailure{does_not_fit} with the numbers when a block exceeds what the device or the kernel allows
    CudaLaunch(const Launch& launch, CudaFunction& function, const std::vector<Buffer>& buffers,
               const DeviceLimits& limits);

    CUresult enqueue(CUstream stream) const;
    const std::string& entry() const noexcept { return *entry_; }
    std::uint32_t repeat() const noexcept { return repeat_; }

private:
    struct Packed;
    const std::string* entry_;
    std::uint32_t repeat_;
    CUfunction function_;
    CUlaunchConfig config_{};
    std::vector<CUlaunchAttribute> attributes_;
    std::shared_ptr<Packed> packed_;  ///< arguments at addresses that stay
};

/// A bound sequence in the order of its work: zeroing, symbol copies, launches.
class CudaSequence {
public:
    struct Zeroing {
        CUdeviceptr address;
        std::size_t bytes;
    };
    struct Copy {
        CUdeviceptr to, from;
        std::size_t bytes;
        std::string symbol;
    };

    std::vector<Zeroing> zeroing;
    std::vector<Copy> once;    ///< symbol copies before the first run, untimed
    std::vector<Copy> copies;  ///< symbol copies of every run
    std::vector<CudaLaunch> launches;

    void enqueue_once(CUstream stream) const;
    /// Throws DeviceFailure at the first call that fails.
    void enqueue(CUstream stream) const;
    /// "'split_k' and 'combine'": for messages.
    std::string names() const;
};

}  // namespace autotune
#endif
