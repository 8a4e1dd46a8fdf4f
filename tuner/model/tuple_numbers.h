#ifndef AUTOTUNE_MODEL_TUPLE_NUMBERS_H
#define AUTOTUNE_MODEL_TUPLE_NUMBERS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace autotune {

/// Numbers tuples of one width in the order of their first appearance; equal ones share a number. One block of memory
/// and an open table beside it: a space asks by the million.
class TupleNumbers {
public:
    explicit TupleNumbers(std::size_t width) : width_{width}, slots_(64, none) {}

    std::uint32_t number(std::span<const std::uint32_t> tuple) {
        if (count_ * 2 >= slots_.size()) grow();
        std::size_t slot = hash(tuple) & (slots_.size() - 1);
        while (slots_[slot] != none) {
            if (std::ranges::equal((*this)[slots_[slot]], tuple)) return slots_[slot];
            slot = (slot + 1) & (slots_.size() - 1);
        }
        flat_.insert(flat_.end(), tuple.begin(), tuple.end());
        return slots_[slot] = static_cast<std::uint32_t>(count_++);
    }

    std::size_t size() const noexcept { return count_; }
    std::span<const std::uint32_t> operator[](std::size_t number) const noexcept {
        return std::span{flat_}.subspan(number * width_, width_);
    }

private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    static std::size_t hash(std::span<const std::uint32_t> tuple) noexcept {
        std::uint64_t out = 0x9e3779b97f4a7c15;
        for (const std::uint32_t element : tuple) {
            out = (out ^ element) * 0xff51afd7ed558ccd;
            out ^= out >> 32;
        }
        return static_cast<std::size_t>(out);
    }

    void grow() {
        std::vector<std::uint32_t> wider(slots_.size() * 2, none);
        for (std::size_t i = 0; i < count_; ++i) {
            std::size_t slot = hash((*this)[i]) & (wider.size() - 1);
            while (wider[slot] != none) slot = (slot + 1) & (wider.size() - 1);
            wider[slot] = static_cast<std::uint32_t>(i);
        }
        slots_ = std::move(wider);
    }

    std::size_t width_, count_ = 0;
    std::vector<std::uint32_t> flat_, slots_;
};

}  // namespace autotune
#endif
