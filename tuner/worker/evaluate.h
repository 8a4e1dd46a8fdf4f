#ifndef AUTOTUNE_TUNER_WORKER_EVALUATE_H
#define AUTOTUNE_TUNER_WORKER_EVALUATE_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "autotune/reference.h"
#include "tuner/worker/fd.h"
#include "tuner/worker/task.h"

namespace autotune {

/// The reference of a built-in op, or nullptr.
using ReferenceTable = std::function<autotune_reference_fn(std::string_view op)>;

/// What a CPU reference gave.
struct Evaluation {
    std::vector<Fd> values;           ///< value and magnitude of each output, in op order
    std::vector<Fd> inputs;           ///< the bytes of each input, in op order, when a generator made them
    std::vector<std::int64_t> sizes;  ///< as task.sizes names them
};

/// Makes the inputs of a problem on the host, with the same bits as a device would, and runs the reference on them.
/// contents: bytes of the tensors that are not filled, by TensorTask::contents; a generator makes all inputs itself.
/// throws  Error{usage} when there is no such reference, when it fails, leaves an element unwritten or gives a NaN that
///         no special input explains, or when a dim is set to less than 1 or more than 2^40
Evaluation evaluate(const EvaluateTask& task, const ReferenceTable& table, std::span<const MappedMemory> contents = {});

/// The bytes of an input that is filled: those that a device would make.
std::vector<std::byte> filled_bytes(const TensorTask& tensor, int threads);

}  // namespace autotune
#endif
