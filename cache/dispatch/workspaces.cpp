#include "cache/dispatch/workspaces.h"

#include <unistd.h>

#include <algorithm>

#include "cache/dispatch/hashing.h"

namespace autotune {

namespace {

std::uint64_t thread_number() noexcept {
    static std::atomic<std::uint64_t> next{1};
    thread_local const std::uint64_t mine = next.fetch_add(1, std::memory_order_relaxed);
    return mine;
}

}  // namespace

Workspaces::~Workspaces() {
    for (const auto& block : blocks_) calls_.cuMemFree(block->address);
}

Workspaces::Owner Workspaces::owner_of(CUstream stream, int device) const noexcept {
    CUcontext context = nullptr;
    calls_.cuCtxGetCurrent(&context);
    return {.stream = stream,
            .device = device,
            .context = context,
            .thread = stream == CU_STREAM_PER_THREAD ? thread_number() : 0};
}

bool Workspaces::owns(const Owner& owner, const Workspace& block) noexcept {
    return block.stream == owner.stream && block.device == owner.device && block.context == owner.context &&
           block.thread == owner.thread;
}

std::size_t Workspaces::start_of(const Owner& owner) noexcept {
    return fold_product(reinterpret_cast<std::uint64_t>(owner.stream) + reinterpret_cast<std::uint64_t>(owner.context) +
                            static_cast<std::uint64_t>(owner.device) + (owner.thread << 32),
                        0x9e3779b97f4a7c15ull) %
           slots;
}

const Workspace* Workspaces::find(const Owner& owner, std::uint64_t bytes) const noexcept {
    for (std::size_t at = start_of(owner), seen = 0; seen < slots; at = (at + 1) % slots, ++seen) {
        const Workspace* block = table_[at].load(std::memory_order_acquire);
        if (!block) return nullptr;
        if (owns(owner, *block)) return block->bytes >= bytes ? block : nullptr;
    }
    return nullptr;
}

const Workspace* Workspaces::find(CUstream stream, int device, std::uint64_t bytes) const noexcept {
    return find(owner_of(stream, device), bytes);
}

const Workspace* Workspaces::ensure(CUstream stream, int device, std::uint64_t bytes) {
    const Owner owner = owner_of(stream, device);
    if (const Workspace* there = find(owner, bytes)) return there;
    std::size_t at = start_of(owner);
    for (std::size_t seen = 0; seen < slots; at = (at + 1) % slots, ++seen) {
        const Workspace* block = table_[at].load(std::memory_order_relaxed);
        if (!block) break;
        if (!owns(owner, *block)) continue;
        bytes = std::max(bytes, 2 * block->bytes);
        break;
    }
    CUdeviceptr address = 0;
    if (calls_.cuMemAlloc(&address, bytes) != CUDA_SUCCESS) return nullptr;
    auto made = std::make_unique<Workspace>();
    made->stream = owner.stream;
    made->device = owner.device;
    made->context = owner.context;
    made->thread = owner.thread;
    made->address = address;
    made->bytes = bytes;
    made->process = ::getpid();
    blocks_.push_back(std::move(made));
    table_[at].store(blocks_.back().get(), std::memory_order_release);
    return blocks_.back().get();
}

}  // namespace autotune
