#ifndef AUTOTUNE_CACHE_DISPATCH_WORKSPACES_H
#define AUTOTUNE_CACHE_DISPATCH_WORKSPACES_H

#include <cuda.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/driver.h"

namespace autotune {

/// The working memory of one stream. `turn` is held while a sequence that uses it is enqueued: were the launches of two
/// threads on one stream to interleave, each would work on the other's intermediate results.
struct Workspace {
    CUstream stream = nullptr;
    int device = 0;
    CUcontext context = nullptr;
    std::uint64_t thread = 0;
    CUdeviceptr address = 0;
    std::uint64_t bytes = 0;
    pid_t process = 0;  ///< in a child of a fork a thread that is not there may hold the turn for ever
    mutable std::mutex turn{};
};

/// Working memory, one block a stream: launches of one stream follow each other, so they share it. The per-thread
/// default stream is another one in each thread, and one context may not touch the memory of another. A block grows by
/// doubling and is freed with the dispatcher only, since a captured graph keeps the address that it saw.
class Workspaces {
public:
    explicit Workspaces(const DriverCalls& calls) : calls_{calls} {}
    ~Workspaces();
    Workspaces(const Workspaces&) = delete;
    Workspaces& operator=(const Workspaces&) = delete;

    /// The stream's block if it is large enough, else nullptr. Any thread, no lock.
    const Workspace* find(CUstream stream, int device, std::uint64_t bytes) const noexcept;
    /// Makes it large enough, in the current context. One thread at a time. nullptr when there is no memory for it.
    const Workspace* ensure(CUstream stream, int device, std::uint64_t bytes);

private:
    /// Whose block: the stream, told apart by context and thread, since the default ones have the same handle in each.
    struct Owner {
        CUstream stream;
        int device;
        CUcontext context;
        std::uint64_t thread;
    };
    Owner owner_of(CUstream stream, int device) const noexcept;
    static bool owns(const Owner& owner, const Workspace& block) noexcept;
    static std::size_t start_of(const Owner& owner) noexcept;
    const Workspace* find(const Owner& owner, std::uint64_t bytes) const noexcept;

    static constexpr std::size_t slots = 4096;
    const DriverCalls& calls_;
    std::array<std::atomic<const Workspace*>, slots> table_{};
    std::vector<std::unique_ptr<const Workspace>> blocks_;
};

}  // namespace autotune
#endif
