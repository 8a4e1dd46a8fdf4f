#include "cache/dispatch/call_site.h"

#include <bit>

#include "cache/dispatch/hashing.h"

namespace autotune {

namespace {

/// The words of a call, one after the other; ends with false where `take` does.
template <class Take>
bool each_word(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
               const std::vector<bool>& deciding, int device, const void* context, Take&& take) noexcept {
    if (!take(tensors.size() | scalars.size() << 16 | static_cast<std::uint64_t>(device) << 32) ||
        !take(reinterpret_cast<std::uint64_t>(context)))
        return false;
    for (const TensorArgument& tensor : tensors) {
        const std::size_t extents = tensor.shape.size(), strides = tensor.strides.size();
        const auto address = reinterpret_cast<std::uint64_t>(tensor.data);
        const auto align = static_cast<std::uint64_t>(std::countr_zero(address | 16));
        if (!take(static_cast<std::uint64_t>(tensor.dtype) | align << 8 | std::uint64_t{address != 0} << 16 |
                  extents << 24 | strides << 40))
            return false;
        for (const std::int64_t extent : tensor.shape)
            if (!take(static_cast<std::uint64_t>(extent))) return false;
        for (const std::int64_t stride : tensor.strides)
            if (!take(static_cast<std::uint64_t>(stride))) return false;
    }
    for (std::size_t i = 0; i < scalars.size() && i < deciding.size(); ++i)
        if (deciding[i] && !(take(std::bit_cast<std::uint64_t>(scalars[i].real)) &&
                             take(static_cast<std::uint64_t>(scalars[i].integer))))
            return false;
    return true;
}

}  // namespace

bool Signature::write(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
                      const std::vector<bool>& deciding, int device, const void* context) noexcept {
    size_ = 0;
    return each_word(tensors, scalars, deciding, device, context, [this](std::uint64_t word) {
        if (size_ == words_.size()) return false;
        words_[size_++] = word;
        return true;
    });
}

bool is_signature_of(std::span<const std::uint64_t> words, std::span<const TensorArgument> tensors,
                     std::span<const ScalarArgument> scalars, const std::vector<bool>& deciding, int device,
                     const void* context) noexcept {
    const std::uint64_t* at = words.data();
    const std::uint64_t* const end = at + words.size();
    return each_word(tensors, scalars, deciding, device, context,
                     [&](std::uint64_t word) { return at != end && *at++ == word; }) &&
           at == end;
}

PlanTable::PlanTable(std::size_t slots) : slots_(std::bit_ceil(slots)), mask_{slots_.size() - 1} {}

void PlanTable::add(std::shared_ptr<const Plan> plan) {
    std::size_t at = plan->hash & mask_;
    while (slots_[at].load(std::memory_order_relaxed)) at = (at + 1) & mask_;
    slots_[at].store(plan.get(), std::memory_order_release);
    plans_.push_back(std::move(plan));
}

}  // namespace autotune
