#include "cache/dispatch/workspaces.h"

#include <algorithm>

#include "cache/dispatch/hashing.h"

namespace autotune {

Workspaces::~Workspaces() {
    for (const auto& block : blocks_) calls_.cuMemFree(block->address);
}

std::size_t Workspaces::start_of(CUstream stream, int device) noexcept {
    return fold_product(reinterpret_cast<std::uint64_t>(stream) + static_cast<std::uint64_t>(device),
                        0x9e3779b97f4a7c15ull) %
           slots;
}

CUdeviceptr Workspaces::find(CUstream stream, int device, std::uint64_t bytes) const noexcept {
    for (std::size_t at = start_of(stream, device), seen = 0; seen < slots; at = (at + 1) % slots, ++seen) {
        const Block* block = table_[at].load(std::memory_order_acquire);
        if (!block) return 0;
        if (block->stream == stream && block->device == device) return block->bytes >= bytes ? block->address : 0;
    }
    return 0;
}

CUdeviceptr Workspaces::ensure(CUstream stream, int device, std::uint64_t bytes) {
    if (const CUdeviceptr there = find(stream, device, bytes)) return there;
    std::size_t at = start_of(stream, device);
    for (std::size_t seen = 0; seen < slots; at = (at + 1) % slots, ++seen) {
        const Block* block = table_[at].load(std::memory_order_relaxed);
        if (!block) break;
        if (block->stream != stream || block->device != device) continue;
        bytes = std::max(bytes, 2 * block->bytes);
        break;
    }
    CUdeviceptr address = 0;
    if (calls_.cuMemAlloc(&address, bytes) != CUDA_SUCCESS) return 0;
    blocks_.push_back(std::make_unique<const Block>(Block{stream, device, address, bytes}));
    table_[at].store(blocks_.back().get(), std::memory_order_release);
    return address;
}

}  // namespace autotune
