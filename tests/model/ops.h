#ifndef AUTOTUNE_TESTS_MODEL_OPS_H
#define AUTOTUNE_TESTS_MODEL_OPS_H

#include <string_view>

#include "tuner/model/instance.h"

// Small ops built by hand, for tests of the model that want no file and no loader.

namespace autotune::test {

/// `text` as an expression; "" is the empty one.
Expression expression(std::string_view text);
std::vector<Expression> expressions(std::initializer_list<std::string_view> texts);
Value whole(std::int64_t value);
ArgumentSpec argument(std::string_view text);

/// y = softmax(x) with two variants: "online" (THREADS, VEC; a default that is an expression) and "naive".
/// Fields rows (near), cols (near), dtype; the tensors x (free stride ldx) and y.
Op softmax_op();

/// c = act(alpha a b + beta c + bias) with split-K scratch and a device reference: the worked example of the format.
Op gemm_op();

/// Limits of sm_90 and sm_75 parts.
DeviceLimits hopper();
DeviceLimits turing();

/// Field values from `m=64 dtype=bf16`.
std::vector<std::pair<std::string, Value>> fields(std::string_view text);

}  // namespace autotune::test
#endif
