#include "tuner/worker/memory_need.h"

#include <fmt/format.h>

namespace autotune {

std::string memory_text(double bytes) {
    if (bytes < 1e3) return fmt::format("{:.0f} bytes", bytes);
    if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes / 1e3);
    if (bytes < 1e9) return fmt::format("{:.1f} MB", bytes / 1e6);
    return fmt::format("{:.1f} GB", bytes / 1e9);
}

std::string MemoryNeed::text() const {
    return fmt::format("needs {} on the GPU (tensors twice {}, reference {})", memory_text(total()),
                       memory_text(tensors), memory_text(reference));
}

MemoryNeed memory_need(std::span<const TensorTask> tensors) {
    MemoryNeed need;
    for (const TensorTask& tensor : tensors) {
        if (!tensor.present) continue;
        need.tensors += 2 * static_cast<double>(tensor.bytes);
        if (tensor.role == Role::out || tensor.role == Role::inout)
            need.reference += 16 * static_cast<double>(tensor.elements);
    }
    return need;
}

}  // namespace autotune
