#include "cache/dispatch/key_parts.h"

namespace autotune {

KeyParts::KeyParts(const PackedKeys& keys) : last_at_{keys.stride() - sizeof(Lanes)} {
    const std::size_t size = keys.stride();
    const std::byte* const first = keys.at(0);
    // `shared` begins as the bits that differ.
    const auto block_at = [&](std::size_t at) { return Block{number_at<Lanes>(first + at), Lanes{}}; };
    for (std::size_t at = 0; at < last_at_; at += sizeof(Lanes)) blocks_.push_back(block_at(at));
    last_ = block_at(last_at_);
    for (std::size_t i = 1; i < keys.count(); ++i) {
        const std::byte* key = keys.at(i);
        last_.shared |= number_at<Lanes>(key + last_at_) ^ last_.common;
        for (Block& block : blocks_) {
            block.shared |= number_at<Lanes>(key) ^ block.common;
            key += sizeof(Lanes);
        }
    }
    std::vector<std::byte> shared(size, std::byte{0xff});
    const auto strike_out = [&](Block& block, std::size_t at) {
        std::array<std::byte, sizeof(Lanes)> differ;
        std::memcpy(differ.data(), &block.shared, sizeof differ);
        for (std::size_t i = 0; i < differ.size(); ++i)
            if (differ[i] != std::byte{0}) shared[at + i] = std::byte{0};
        block.shared = number_at<Lanes>(shared.data() + at);
    };
    strike_out(last_, last_at_);
    for (std::size_t i = 0; i < blocks_.size(); ++i) strike_out(blocks_[i], i * sizeof(Lanes));
    for (std::size_t at = 0; at < size; ++at)
        if (shared[at] == std::byte{0}) {
            places_.push_back(static_cast<std::uint32_t>(std::min(at, size - sizeof(Part))));
            at = places_.back() + sizeof(Part) - 1;
        }
}

}  // namespace autotune
