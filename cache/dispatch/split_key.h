#ifndef AUTOTUNE_CACHE_DISPATCH_SPLIT_KEY_H
#define AUTOTUNE_CACHE_DISPATCH_SPLIT_KEY_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/op.h"

namespace autotune {

/// A problem's key, taken apart for the search of neighbours.
struct SplitKey {
    std::string fixed{};  ///< what has to be equal: all other fields, and which dims and tensors there are
    std::vector<std::int32_t> octaves{};  ///< of each dim that may vary, its log2 in units of 1 / octave
    std::vector<std::uint8_t> aligns{};   ///< of each tensor, in bytes
};

inline constexpr std::int32_t octave = 1 << 16;

/// Takes keys of one op apart.
class KeySplitter {
public:
    explicit KeySplitter(const Op& op);
    /// False for bytes that are no key, or a dim that is no length. `out` is written over, so that its memory serves
    /// again.
    bool split(std::span<const std::byte> key, SplitKey& out) const;

private:
    std::vector<std::string> near_;
};

/// "rows=4096 cols=4096 dtype=bf16", in the op's order, of a key; what the op no longer has comes last.
std::string problem_text(const Op& op, std::span<const std::byte> key);

}  // namespace autotune
#endif
