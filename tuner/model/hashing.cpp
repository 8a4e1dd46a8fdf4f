#include "tuner/model/hashing.h"

#include <sodium.h>

#include <array>
#include <bit>

#include "tuner/model/sha256.h"

namespace autotune {

std::string sha256_hex(std::span<const std::byte> bytes) {
    const Sha256Digest digest = sha256(bytes);
    std::string hex(2 * digest.size() + 1, '\0');
    sodium_bin2hex(hex.data(), hex.size(), digest.data(), digest.size());
    hex.pop_back();
    return hex;
}

std::string sha256_hex(std::string_view text) { return sha256_hex(std::as_bytes(std::span{text})); }

CanonicalBytes& CanonicalBytes::add(std::uint64_t number) {
    std::array<std::byte, 8> eight;
    for (std::size_t i = 0; i < eight.size(); ++i) eight[i] = static_cast<std::byte>(number >> (8 * i));
    bytes_.insert(bytes_.end(), eight.begin(), eight.end());
    return *this;
}

CanonicalBytes& CanonicalBytes::add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    const auto bytes = std::as_bytes(std::span{text});
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
}

CanonicalBytes& CanonicalBytes::add_value(const Value& value) {
    tag(static_cast<std::uint8_t>(value.index()));
    if (const auto* text = std::get_if<std::string>(&value)) return add(std::string_view{*text});
    if (const auto* real = std::get_if<double>(&value)) return add(std::bit_cast<std::uint64_t>(*real));
    if (const auto* flag = std::get_if<bool>(&value)) return add(std::uint64_t{*flag});
    return add(static_cast<std::uint64_t>(std::get<std::int64_t>(value)));
}

CanonicalBytes& CanonicalBytes::tag(std::uint8_t byte) {
    bytes_.push_back(static_cast<std::byte>(byte));
    return *this;
}

}  // namespace autotune
