#ifndef AUTOTUNE_MODEL_CALL_H
#define AUTOTUNE_MODEL_CALL_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/instance.h"

namespace autotune {

/// A tensor as a caller has it. An optional tensor that is absent is not listed.
struct ObservedTensor {
    std::string_view name;
    DType dtype = DType::f32;
    std::span<const std::int64_t> shape;
    std::span<const std::int64_t> strides = {};  ///< elements; empty: contiguous
    std::uint64_t address = 0;                   ///< decides the alignment; 0: not known, taken as aligned
};

/// What a call's tensors say: the problem fields and the strides and alignments, as Instance::make() takes them.
struct SolvedCall {
    std::vector<std::pair<std::string, Value>> fields;  ///< those given and those solved
    Binding binding;
};

/// Solves a call: dims from bare names in shapes, dtype fields from tensors, a flag that is a tensor's `when` from its
/// presence, free strides from the strides. Conditions in shapes ("trans_a ? k : m") are decided first, from what is
/// given and then from defaults. Other shape expressions solve nothing; objection_to() checks them.
/// given    discrete fields, and dims that no shape tells
/// Throws Error{usage}: a tensor the op has not, another rank, two tensors that disagree on a dim.
SolvedCall solve_dims(const Op& op, std::span<const ObservedTensor> tensors,
                      const std::vector<std::pair<std::string, Value>>& given = {},
                      const std::vector<std::pair<std::string, Value>>& scalars = {});

/// Why the tensors are not those of the instance (presence, dtype, shape, strides, alignment), with both sides;
/// nullopt: they are.
std::optional<std::string> objection_to(const Instance& instance, std::span<const ObservedTensor> tensors);

/// Solves, makes and checks. Throws Error{usage}.
Instance instance_of_call(const Op& op, std::span<const ObservedTensor> tensors, const DeviceLimits& limits,
                          const std::vector<std::pair<std::string, Value>>& given = {},
                          const std::vector<std::pair<std::string, Value>>& scalars = {});

}  // namespace autotune
#endif
