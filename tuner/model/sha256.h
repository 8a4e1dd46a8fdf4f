#ifndef AUTOTUNE_MODEL_SHA256_H
#define AUTOTUNE_MODEL_SHA256_H

#include <array>
#include <cstddef>
#include <span>

namespace autotune {

using Sha256Digest = std::array<unsigned char, 32>;

/// SHA-256 by the processor's own instructions where it has them, else by libsodium, which knows no such and takes 4 to
/// 7 times as long: half of what taking in a file of lines costs.
Sha256Digest sha256(std::span<const std::byte> bytes) noexcept;
/// Whether this processor has them.
bool has_sha256_instructions() noexcept;

}  // namespace autotune
#endif
