#include "cache/dispatch/call_site.h"

#include <bit>

#include "cache/dispatch/hashing.h"

namespace autotune {

bool Signature::write(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
                      const std::vector<bool>& deciding, int device) noexcept {
    std::uint64_t* out = words_.data();
    const std::uint64_t* const end = out + words_.size();
    *out++ = tensors.size() | scalars.size() << 16 | static_cast<std::uint64_t>(device) << 32;
    for (const TensorArgument& tensor : tensors) {
        const std::size_t extents = tensor.shape.size(), strides = tensor.strides.size();
        if (static_cast<std::size_t>(end - out) < 1 + extents + strides) return false;
        const auto address = reinterpret_cast<std::uint64_t>(tensor.data);
        const auto align = static_cast<std::uint64_t>(std::countr_zero(address | 16));
        *out++ = static_cast<std::uint64_t>(tensor.dtype) | align << 8 | std::uint64_t{address != 0} << 16 |
                 extents << 24 | strides << 40;
        for (const std::int64_t extent : tensor.shape) *out++ = static_cast<std::uint64_t>(extent);
        for (const std::int64_t stride : tensor.strides) *out++ = static_cast<std::uint64_t>(stride);
    }
    for (std::size_t i = 0; i < scalars.size() && i < deciding.size(); ++i) {
        if (!deciding[i]) continue;
        if (end - out < 2) return false;
        *out++ = std::bit_cast<std::uint64_t>(scalars[i].real);
        *out++ = static_cast<std::uint64_t>(scalars[i].integer);
    }
    size_ = static_cast<std::size_t>(out - words_.data());
    return true;
}

PlanTable::PlanTable(std::size_t slots) : slots_(std::bit_ceil(slots)), mask_{slots_.size() - 1} {}

void PlanTable::add(std::shared_ptr<const Plan> plan) {
    std::size_t at = plan->hash & mask_;
    while (slots_[at].load(std::memory_order_relaxed)) at = (at + 1) & mask_;
    slots_[at].store(plan.get(), std::memory_order_release);
    plans_.push_back(std::move(plan));
}

}  // namespace autotune
