#include "tuner/worker/device_reference.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <thread>

#include "autotune/error.h"
#include "autotune/reference.hpp"

namespace autotune {
namespace {

/// Two sums of the same terms in double, in different orders, are this far apart at most, relative to the sum of
/// magnitudes, for the numbers of terms that fit in a GPU; a wrong index is further off by many orders.
constexpr Bound same_sum{.of_value = 1e-12, .of_magnitude = 1e-10, .absolute = 1e-300};

Comparison compare_doubles(Device& device, Buffer got, std::uint64_t elements, Buffer value, Buffer magnitude,
                           const Bound& bound) {
    const std::array<std::int64_t, 1> shape{static_cast<std::int64_t>(elements)}, strides{1};
    return device.compare(got, DType::f64, shape, strides, value, magnitude, bound, first_poison);
}

/// The elements of an output as doubles, row-major and contiguous: through the very code that CPU references read with.
std::vector<double> as_doubles(const TensorTask& tensor, std::span<std::byte> bytes) {
    const autotune_tensor_view view{.name = tensor.name.c_str(),
                                    .dtype = static_cast<std::int32_t>(tensor.dtype),
                                    .role = AUTOTUNE_IN,
                                    .rank = static_cast<std::int32_t>(tensor.shape.size()),
                                    .shape = tensor.shape.data(),
                                    .strides = tensor.strides.data(),
                                    .data = bytes.data(),
                                    .value = nullptr,
                                    .magnitude = nullptr};
    autotune_call call{};
    call.abi = AUTOTUNE_REFERENCE_ABI;
    call.threads = static_cast<std::int32_t>(std::max(1u, std::thread::hardware_concurrency()));
    call.tensor_count = 1;
    call.tensors = &view;
    return ReferenceCall{call}.doubles(tensor.name);
}

void run(Device& device, const BoundSequence& sequence, const Progress& progress, std::string_view phase) {
    if (progress) progress(phase, 0);
    device.run(sequence);
}

void upload(Device& device, ProblemMemory& memory, std::span<const MappedMemory> values) {
    std::size_t next = 0;
    for (const std::size_t i : memory.outputs()) {
        const ProblemMemory::Expected& expected = memory.expected(i);
        if (next + 2 > values.size() || values[next].bytes().size() != expected.value.bytes ||
            values[next + 1].bytes().size() != expected.magnitude.bytes)
            throw Error{Error::Kind::internal,
                        fmt::format("the reference of '{}' has the wrong size", memory.tensors()[i].name)};
        device.write(expected.value, 0, values[next].bytes());
        device.write(expected.magnitude, 0, values[next + 1].bytes());
        next += 2;
    }
}

/// The scratch buffers of a device reference's sequence: value and magnitude of each output.
std::vector<std::pair<Buffer, Buffer>> computed(const ProblemMemory& memory, const Candidate& candidate) {
    const std::vector<Buffer>& buffers = candidate.bound().front().buffers;
    const std::size_t first = memory.tensors().size();
    if (buffers.size() < first + 2 * memory.outputs().size())
        throw Error{Error::Kind::internal, "the device reference has no room for its results"};
    std::vector<std::pair<Buffer, Buffer>> pairs;
    for (std::size_t i = 0; i < memory.outputs().size(); ++i)
        pairs.emplace_back(buffers[first + 2 * i], buffers[first + 2 * i + 1]);
    return pairs;
}

void compute_on_device(Device& device, ProblemMemory& memory, Candidate& candidate, const Progress& progress) {
    memory.reset_outputs(0, first_poison);
    candidate.poison_scratch(0, first_poison);
    run(device, candidate.bound().front(), progress, "the device reference");
}

void from_kernel(Device& device, ProblemMemory& memory, Candidate& candidate, bool magnitude,
                 const Progress& progress) {
    memory.reset_outputs(0, first_poison);
    candidate.poison_scratch(0, first_poison);
    if (magnitude) memory.make_inputs_absolute();
    run(device, candidate.bound().front(), progress, "the kernel that is the reference");
    for (const std::size_t i : memory.outputs()) {
        std::vector<std::byte> bytes(memory.tensors()[i].bytes);
        device.read(memory.set(0)[i], 0, bytes);
        std::vector<double> doubles = as_doubles(memory.tensors()[i], bytes);
        if (magnitude)
            for (double& value : doubles) value = std::abs(value);
        const ProblemMemory::Expected& expected = memory.expected(i);
        device.write(magnitude ? expected.magnitude : expected.value, 0, std::as_bytes(std::span{doubles}));
    }
    if (magnitude) memory.restore_inputs(false);
}

/// A reference with a NaN would reject every right kernel or pass a wrong one.
void reject_nan(Device& device, ScratchPool& pool, const ProblemMemory& memory) {
    constexpr Bound any_number{.of_value = 0, .of_magnitude = 0, .absolute = std::numeric_limits<double>::max()};
    for (const std::size_t i : memory.outputs()) {
        const TensorTask& tensor = memory.tensors()[i];
        const Buffer zero = pool.take(tensor.elements * 8);
        device.set(zero, 0);
        const Comparison found =
            compare_doubles(device, memory.expected(i).value, tensor.elements, zero, zero, any_number);
        pool.give_back(zero);
        if (found.bad > 0 && std::isnan(found.got))
            throw Error{Error::Kind::usage,
                        fmt::format("the reference gives nan at {} ({} of {} elements are not finite)",
                                    element_name(tensor, found.first_bad), found.bad, found.elements)};
    }
}

}  // namespace

void establish_reference(Device& device, ScratchPool& pool, ProblemMemory& memory, const ReferenceTask& task,
                         std::span<const MappedMemory> values, const Progress& progress) {
    if (task.kind == ReferenceTask::Kind::values) return upload(device, memory, values);
    Candidate candidate{device, pool, memory, task.candidate, 1};
    if (task.kind == ReferenceTask::Kind::device) {
        compute_on_device(device, memory, candidate, progress);
        std::size_t next = 0;
        for (const auto& [value, magnitude] : computed(memory, candidate)) {
            const ProblemMemory::Expected& expected = memory.expected(memory.outputs()[next++]);
            device.copy(expected.value, value);
            device.copy(expected.magnitude, magnitude);
        }
    } else {
        from_kernel(device, memory, candidate, false, progress);
        from_kernel(device, memory, candidate, true, progress);
    }
    if (!task.may_be_nan) reject_nan(device, pool, memory);
}

std::vector<Comparison> compare_references(Device& device, ScratchPool& pool, ProblemMemory& memory,
                                           const ReferenceTask& task, const Progress& progress) {
    Candidate candidate{device, pool, memory, task.candidate, 1};
    compute_on_device(device, memory, candidate, progress);
    std::vector<Comparison> comparisons;
    std::size_t next = 0;
    for (const auto& [value, magnitude] : computed(memory, candidate)) {
        const std::size_t i = memory.outputs()[next++];
        const ProblemMemory::Expected& expected = memory.expected(i);
        const std::uint64_t elements = memory.tensors()[i].elements;
        comparisons.push_back(compare_doubles(device, value, elements, expected.value, expected.magnitude, same_sum));
        comparisons.push_back(
            compare_doubles(device, magnitude, elements, expected.magnitude, expected.magnitude, same_sum));
    }
    return comparisons;
}

}  // namespace autotune
