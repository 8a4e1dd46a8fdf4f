#ifndef AUTOTUNE_TUNER_WORKER_NPY_H
#define AUTOTUNE_TUNER_WORKER_NPY_H

#include <filesystem>
#include <vector>

#include "tuner/model/op.h"
#include "tuner/worker/fd.h"
#include "tuner/worker/task.h"

namespace autotune {

/// The numbers of a .npy file as doubles, row-major. Little-endian floats of 2, 4 and 8 bytes, integers and booleans.
/// throws  Error{usage} for a file that is none, is of another shape or cannot be read
std::vector<double> read_npy(const std::filesystem::path& file, std::span<const std::int64_t> shape);

/// Value and magnitude of each output of an op whose reference is recorded values: the magnitude is the value's own.
std::vector<Fd> npy_values(const Op& op, const std::vector<TensorTask>& tensors);

}  // namespace autotune
#endif
