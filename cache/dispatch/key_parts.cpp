#include "cache/dispatch/key_parts.h"

namespace autotune {

KeyParts::KeyParts(const PackedKeys& keys) : common_{keys.common()} {
    const std::size_t size = common_.size();
    for (std::size_t at = 0; at < size; ++at)
        if (!common_.counts(at)) {
            places_.push_back(static_cast<std::uint32_t>(std::min(at, size - sizeof(Part))));
            at = places_.back() + sizeof(Part) - 1;
        }
}

}  // namespace autotune
