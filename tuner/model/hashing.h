#ifndef AUTOTUNE_MODEL_HASHING_H
#define AUTOTUNE_MODEL_HASHING_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/value.h"

namespace autotune {

/// SHA-256 as 64 hex digits.
std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);

/// Bytes of one meaning only: numbers are 8 bytes, little-endian; a text carries its length. So two different sequences
/// of additions never give the same bytes, and a hash over them stands for the sequence.
class CanonicalBytes {
public:
    CanonicalBytes& add(std::uint64_t number);
    CanonicalBytes& add(std::string_view text);
    CanonicalBytes& tag(std::uint8_t byte);
    /// Its type, then what it holds: 1, 1.0, true and "1" differ.
    CanonicalBytes& add_value(const Value& value);
    void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
    const std::vector<std::byte>& bytes() const& noexcept { return bytes_; }
    std::vector<std::byte> bytes() && noexcept { return std::move(bytes_); }
    std::string sha256() const { return sha256_hex(bytes_); }

private:
    std::vector<std::byte> bytes_;
};

}  // namespace autotune
#endif
