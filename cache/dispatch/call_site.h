#ifndef AUTOTUNE_CACHE_DISPATCH_CALL_SITE_H
#define AUTOTUNE_CACHE_DISPATCH_CALL_SITE_H

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/dispatch/grace.h"
#include "cache/dispatch/plan.h"

namespace autotune {

/// What tells one call from another at a call site: shapes, strides, dtypes, alignments, which tensors are there, the
/// scalars that decide something, the device, the context (each loads a kernel and keeps a module's variables by
/// itself). Raw words on the stack, so that a repeated call solves nothing again.
class Signature {
public:
    static constexpr std::size_t most_words = 192;

    /// False when the call has more dimensions than fit.
    bool write(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
               const std::vector<bool>& deciding, int device, const void* context = nullptr) noexcept;
    std::span<const std::uint64_t> words() const noexcept { return {words_.data(), size_}; }

private:
    std::array<std::uint64_t, most_words> words_;
    std::size_t size_ = 0;
};

/// The word that says how many arguments a call has, and where it is.
inline std::uint64_t call_word(std::size_t tensors, std::size_t scalars, int device) noexcept {
    return tensors | scalars << 16 | std::uint64_t{static_cast<std::uint32_t>(device)} << 32;
}
/// The word before a tensor's extents and strides. It says how many of them follow.
inline std::uint64_t tensor_word(const TensorArgument& tensor) noexcept {
    const auto address = reinterpret_cast<std::uint64_t>(tensor.data);
    const auto align = static_cast<std::uint64_t>(std::countr_zero(address | 16));
    return static_cast<std::uint64_t>(tensor.dtype) | align << 8 | std::uint64_t{address != 0} << 16 |
           tensor.shape.size() << 24 | tensor.strides.size() << 40;
}

/// Whether these are the words of such a call, written with the same `deciding`; needs no copy of them.
inline bool is_signature_of(std::span<const std::uint64_t> words, std::span<const TensorArgument> tensors,
                            std::span<const ScalarArgument> scalars, const std::vector<bool>& deciding, int device,
                            const void* context) noexcept {
    if (words.size() < 2 || words[0] != call_word(tensors.size(), scalars.size(), device) ||
        words[1] != reinterpret_cast<std::uint64_t>(context))
        return false;
    const std::uint64_t* at = words.data() + 2;
    const std::uint64_t* const end = words.data() + words.size();
    for (const TensorArgument& tensor : tensors) {
        if (static_cast<std::size_t>(end - at) <= tensor.shape.size() + tensor.strides.size()) return false;
        if (*at++ != tensor_word(tensor)) return false;
        for (const std::int64_t extent : tensor.shape)
            if (*at++ != static_cast<std::uint64_t>(extent)) return false;
        for (const std::int64_t stride : tensor.strides)
            if (*at++ != static_cast<std::uint64_t>(stride)) return false;
    }
    // As a rule no scalar decides anything, and walking over bits costs as much as all of the above.
    for (std::size_t i = 0; at != end && i < scalars.size() && i < deciding.size(); ++i)
        if (deciding[i] && (end - at < 2 || *at++ != std::bit_cast<std::uint64_t>(scalars[i].real) ||
                            *at++ != static_cast<std::uint64_t>(scalars[i].integer)))
            return false;
    return at == end;
}

/// Plans by signature. Readers need no lock; one writer at a time adds.
class PlanTable {
public:
    explicit PlanTable(std::size_t slots);
    const Plan* find(std::uint64_t hash, std::span<const std::uint64_t> words) const noexcept {
        for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
            const Plan* plan = slots_[at].load(std::memory_order_acquire);
            if (!plan) return nullptr;
            if (plan->hash == hash && same(*plan, words)) return plan;
        }
    }
    static bool same(const Plan& plan, std::span<const std::uint64_t> words) noexcept {
        return plan.signature.size() == words.size() &&
               std::memcmp(plan.signature.data(), words.data(), words.size_bytes()) == 0;
    }
    bool full() const noexcept { return (plans_.size() + 1) * 2 > slots_.size(); }
    void add(std::shared_ptr<const Plan> plan);
    std::span<const std::shared_ptr<const Plan>> plans() const noexcept { return plans_; }

private:
    std::vector<std::atomic<const Plan*>> slots_;
    std::size_t mask_;
    std::vector<std::shared_ptr<const Plan>> plans_;
};

/// An op with some fields fixed, and the plans of the calls seen there. What a Handle points to.
struct CallSite {
    const Op* op = nullptr;
    FieldValues fields{};
    std::vector<bool> deciding{};
    std::atomic<const PlanTable*> table{nullptr};
    std::shared_ptr<const PlanTable> owned{};
    /// The last plan of each stripe of threads: most calls repeat. On lines of their own, so that threads do not share.
    struct alignas(64) Hint {
        std::atomic<const Plan*> plan{nullptr};
    };
    std::array<Hint, Grace::stripes> hints{};

    void publish(std::shared_ptr<PlanTable> next) noexcept {
        table.store(next.get(), std::memory_order_seq_cst);
        owned = std::move(next);
    }
    void forget() noexcept {
        for (Hint& hint : hints) hint.plan.store(nullptr, std::memory_order_seq_cst);
    }
};

}  // namespace autotune
#endif
