#ifndef AUTOTUNE_TUNER_WORKER_JUNK_H
#define AUTOTUNE_TUNER_WORKER_JUNK_H

#include <vector>

#include "tuner/model/instance.h"
#include "tuner/worker/fd.h"
#include "tuner/worker/task.h"

namespace autotune {

/// The bytes of the inputs that have a `junk_beyond`: filled, and then junk from that element of each row on, as NaN or
/// as numbers far outside of any index; a kernel that reads them is wrong or faults. Such tensors get their number
/// among the results as `contents`.
///
/// A row is the last dimension. The expression may name integer inputs: their elements are spread evenly over the rows.
/// throws  Error{usage} where they cannot be, or where the expression has no value
std::vector<Fd> junk_contents(const Instance& instance, std::vector<TensorTask>& tensors);

}  // namespace autotune
#endif
