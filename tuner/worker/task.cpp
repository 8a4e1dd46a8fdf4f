#include "tuner/worker/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace autotune {
namespace {

/// How far a tensor's start is moved off its 256-byte boundary so that it has the alignment the problem says.
std::uint64_t misalign_of(const Instance& instance, const BoundTensor& tensor) {
    for (const auto& [name, align] : instance.binding().align)
        if (name == tensor.name && align < 16) return static_cast<std::uint64_t>(align);
    return 0;
}

/// What a reference sees of a real as a whole number: towards zero, and the nearest there is beyond 64 bits.
std::int64_t whole(double real) {
    constexpr double limit = 9223372036854775808.0;
    if (std::isnan(real)) return 0;
    if (real >= limit) return std::numeric_limits<std::int64_t>::max();
    if (real < -limit) return std::numeric_limits<std::int64_t>::min();
    return static_cast<std::int64_t>(real);
}

FieldTask field_task(const std::string& name, const Value& value) {
    FieldTask field{.name = name};
    if (const auto* flag = std::get_if<bool>(&value))
        field.integer = *flag;
    else if (const auto* integer = std::get_if<std::int64_t>(&value))
        field.integer = *integer;
    else if (const auto* real = std::get_if<double>(&value)) {
        field.real = *real;
        field.integer = whole(*real);
        return field;
    } else {
        field.text = std::get<std::string>(value);
        field.is_text = true;
    }
    field.real = static_cast<double>(field.integer);
    return field;
}

}  // namespace

bool is_read(const TensorTask& tensor) noexcept {
    return tensor.present && (tensor.role == Role::in || tensor.role == Role::inout);
}
bool is_written(const TensorTask& tensor) noexcept {
    return tensor.present && (tensor.role == Role::out || tensor.role == Role::inout);
}

std::vector<TensorTask> tensor_tasks(const Instance& instance, std::uint64_t seed) {
    std::vector<TensorTask> tasks;
    for (const BoundTensor& tensor : instance.tensors()) {
        TensorTask task{.name = tensor.name,
                        .dtype = tensor.dtype,
                        .role = tensor.role,
                        .present = tensor.present,
                        .shape = tensor.shape,
                        .strides = tensor.strides,
                        .elements = tensor.elements,
                        .bytes = tensor.bytes,
                        .misalign = misalign_of(instance, tensor)};
        if (tensor.present && (tensor.role == Role::in || tensor.role == Role::inout))
            task.fill = instance.fill_of(tensor, seed);
        if (tensor.present && (tensor.role == Role::out || tensor.role == Role::inout))
            task.bound = instance.bound_of(tensor.name);
        tasks.push_back(std::move(task));
    }
    return tasks;
}

std::vector<FieldTask> field_tasks(const Instance& instance) {
    std::vector<FieldTask> fields;
    for (const auto& [name, value] : instance.problem().fields) fields.push_back(field_task(name, value));
    for (const auto& [name, value] : instance.scalars()) fields.push_back(field_task(name, value));
    return fields;
}

std::string element_name(const TensorTask& tensor, std::uint64_t index) {
    std::string inside;
    for (std::size_t d = tensor.shape.size(); d-- > 0;) {
        const auto extent = static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.shape[d], 1));
        inside = fmt::format("{}{}{}", index % extent, inside.empty() ? "" : ",", inside);
        index /= extent;
    }
    return fmt::format("{}[{}]", tensor.name, inside);
}

Ending ending_of(DeviceFault::Kind kind) {
    switch (kind) {
        case DeviceFault::Kind::launch_failed:
            return Ending::launch_failed;
        case DeviceFault::Kind::out_of_memory:
            return Ending::out_of_memory;
        case DeviceFault::Kind::does_not_fit:
            return Ending::does_not_fit;
        case DeviceFault::Kind::invalid_access:
            return Ending::invalid_access;
        case DeviceFault::Kind::crashed:
            return Ending::crashed;
        case DeviceFault::Kind::out_of_bounds:
            return Ending::out_of_bounds;
        case DeviceFault::Kind::race:
            return Ending::race;
        case DeviceFault::Kind::barrier_misuse:
            return Ending::barrier_misuse;
        case DeviceFault::Kind::deadlock:
            return Ending::deadlock;
        case DeviceFault::Kind::not_emulated:
            return Ending::not_emulated;
    }
    return Ending::crashed;
}

std::string words_of(const ReferenceTask& task) {
    const std::vector<Launch>& launches = task.candidate.sequence.launches;
    return launches.empty()
               ? std::string{"the reference kernel"}
               : fmt::format("the reference kernel '{}' of {}", launches.front().entry, launches.front().source);
}

}  // namespace autotune
