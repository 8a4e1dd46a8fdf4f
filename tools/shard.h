#ifndef AUTOTUNE_TOOLS_SHARD_H
#define AUTOTUNE_TOOLS_SHARD_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace autotune {

/// A share of problems among machines that know nothing of each other: which of them tunes a problem follows from its
/// key alone, so that each problem is one's, whatever any of them has stored.
struct Shard {
    std::uint64_t number = 1, count = 1;  ///< the first is 1

    /// Whether the problem of that key is of this share.
    bool holds(std::span<const std::byte> key) const;
    /// Reads "2/8". Throws Error{usage}.
    static Shard parse(std::string_view text);
};

}  // namespace autotune
#endif
