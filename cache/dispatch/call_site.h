#ifndef AUTOTUNE_CACHE_DISPATCH_CALL_SITE_H
#define AUTOTUNE_CACHE_DISPATCH_CALL_SITE_H

#include <array>
#include <atomic>
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

/// Whether these are the words of such a call, which needs no copy of them.
bool is_signature_of(std::span<const std::uint64_t> words, std::span<const TensorArgument> tensors,
                     std::span<const ScalarArgument> scalars, const std::vector<bool>& deciding, int device,
                     const void* context) noexcept;

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
