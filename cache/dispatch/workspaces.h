#ifndef AUTOTUNE_CACHE_DISPATCH_WORKSPACES_H
#define AUTOTUNE_CACHE_DISPATCH_WORKSPACES_H

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/driver.h"

namespace autotune {

/// Working memory, one block a stream: launches of one stream follow each other, so they share it. It grows by doubling
/// and is freed with the dispatcher only, since a captured graph keeps the address that it saw.
class Workspaces {
public:
    explicit Workspaces(const DriverCalls& calls) : calls_{calls} {}
    ~Workspaces();
    Workspaces(const Workspaces&) = delete;
    Workspaces& operator=(const Workspaces&) = delete;

    /// The stream's block if it is large enough, else 0. Any thread, no lock.
    CUdeviceptr find(CUstream stream, int device, std::uint64_t bytes) const noexcept;
    /// Makes it large enough, in the current context. One thread at a time. Returns 0 when there is no memory for it.
    CUdeviceptr ensure(CUstream stream, int device, std::uint64_t bytes);

private:
    struct Block {
        CUstream stream;
        int device;
        CUdeviceptr address;
        std::uint64_t bytes;
    };
    static std::size_t start_of(CUstream stream, int device) noexcept;

    static constexpr std::size_t slots = 4096;
    const DriverCalls& calls_;
    std::array<std::atomic<const Block*>, slots> table_{};
    std::vector<std::unique_ptr<const Block>> blocks_;
};

}  // namespace autotune
#endif
