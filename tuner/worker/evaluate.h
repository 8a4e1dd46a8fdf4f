#ifndef AUTOTUNE_TUNER_WORKER_EVALUATE_H
#define AUTOTUNE_TUNER_WORKER_EVALUATE_H

#include <functional>
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
    std::vector<Fd> values;  ///< value and magnitude of each output, in op order
    std::vector<Fd> inputs;  ///< the bytes of each input, in op order, when a generator made them
};

/// Makes the inputs of a problem on the host, with the same bits as a device would, and runs the reference on them.
/// throws  Error{usage} when there is no such reference, when it fails, leaves an element unwritten or gives a NaN that
///         no special input explains
Evaluation evaluate(const EvaluateTask& task, const ReferenceTable& table);

}  // namespace autotune
#endif
