#include "cache/dispatch/common_bytes.h"

#include <array>

namespace autotune {

CommonBytes::CommonBytes(const std::byte* key, std::size_t size) : last_at_{size - sizeof(Lanes)} {
    const auto block_at = [&](std::size_t at) { return Block{number_at<Lanes>(key + at), ~Lanes{}}; };
    for (std::size_t at = 0; at < last_at_; at += sizeof(Lanes)) blocks_.push_back(block_at(at));
    last_ = block_at(last_at_);
}

bool CommonBytes::counts(std::size_t at) const noexcept {
    const bool in_last = at >= last_at_;
    const Block& block = in_last ? last_ : blocks_[at / sizeof(Lanes)];
    std::array<std::byte, sizeof(Lanes)> count;
    std::memcpy(count.data(), &block.count, sizeof count);
    return count[in_last ? at - last_at_ : at % sizeof(Lanes)] != std::byte{0};
}

void CommonBytes::strike_out(const std::byte* key) noexcept {
    const auto compare = [&](Block& block, std::size_t at) {
        std::array<std::byte, sizeof(Lanes)> differ, count;
        const Lanes bits = number_at<Lanes>(key + at) ^ block.bytes;
        std::memcpy(differ.data(), &bits, sizeof differ);
        std::memcpy(count.data(), &block.count, sizeof count);
        for (std::size_t i = 0; i < count.size(); ++i)
            if (differ[i] != std::byte{0}) count[i] = std::byte{0};
        block.count = number_at<Lanes>(count.data());
    };
    for (std::size_t i = 0; i < blocks_.size(); ++i) compare(blocks_[i], i * sizeof(Lanes));
    compare(last_, last_at_);
}

}  // namespace autotune
