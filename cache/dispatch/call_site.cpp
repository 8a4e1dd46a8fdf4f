#include "cache/dispatch/call_site.h"

#include <bit>

#include "cache/dispatch/hashing.h"

namespace autotune {

bool Signature::write(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
                      const std::vector<bool>& deciding, int device, const void* context) noexcept {
    size_ = 0;
    bool fits = true;
    const auto add = [&](auto word) {
        fits = fits && size_ < words_.size();
        if (fits) words_[size_++] = static_cast<std::uint64_t>(word);
    };
    add(call_word(tensors.size(), scalars.size(), device));
    add(reinterpret_cast<std::uint64_t>(context));
    for (const TensorArgument& tensor : tensors) {
        add(tensor_word(tensor));
        for (const std::int64_t extent : tensor.shape) add(extent);
        for (const std::int64_t stride : tensor.strides) add(stride);
        if (!fits) return false;
    }
    for (std::size_t i = 0; i < scalars.size() && i < deciding.size(); ++i)
        if (deciding[i]) {
            add(std::bit_cast<std::uint64_t>(scalars[i].real));
            add(scalars[i].integer);
        }
    return fits;
}

PlanTable::PlanTable(std::size_t slots) : slots_(std::bit_ceil(slots)), mask_{slots_.size() - 1} {}

void PlanTable::add(std::shared_ptr<const Plan> plan) {
    std::size_t at = plan->hash & mask_;
    while (slots_[at].load(std::memory_order_relaxed)) at = (at + 1) & mask_;
    slots_[at].store(plan.get(), std::memory_order_release);
    plans_.push_back(std::move(plan));
}

}  // namespace autotune
