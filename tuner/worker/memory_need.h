#ifndef AUTOTUNE_WORKER_MEMORY_NEED_H
#define AUTOTUNE_WORKER_MEMORY_NEED_H

#include <span>
#include <string>

#include "tuner/worker/task.h"

namespace autotune {

/// The least memory that trying a problem takes, in bytes: one set of its tensors, a pristine copy of what is read and
/// a saved one of what is written, and of each element written its value and magnitude as doubles. Real numbers: what
/// is asked for may be beyond 2^64.
struct MemoryNeed {
    double tensors = 0, reference = 0;
    double total() const noexcept { return tensors + reference; }
    /// `needs 98.4 GB on the GPU (tensors twice 64.4 GB, reference 34.0 GB)`
    std::string text() const;
};

MemoryNeed memory_need(std::span<const TensorTask> tensors);

/// `79.1 GB`, `10.0 kB`: decimal units, as memory is sold.
std::string memory_text(double bytes);

}  // namespace autotune
#endif
