#ifndef AUTOTUNE_TUNER_WORKER_PROBLEM_MEMORY_H
#define AUTOTUNE_TUNER_WORKER_PROBLEM_MEMORY_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/worker/fd.h"
#include "tuner/worker/task.h"

namespace autotune {

/// What the poison of a first and a second run is: not a number in every float format, and a finite number.
inline constexpr std::uint8_t first_poison = 0xFF, second_poison = 0x77;

/// The device memory of one problem: sets of its tensors that timing rotates over, pristine copies of what is read,
/// room for one saved run, and the reference of each output in double. All sets hold the same inputs.
class ProblemMemory {
public:
    /// contents: bytes of the tensors that are not filled, by TensorTask::contents.
    /// throws  Error{device} when the problem does not fit the device's memory, DeviceFailure
    ProblemMemory(Device& device, ProblemTask task, std::vector<MappedMemory> contents);
    ~ProblemMemory();
    ProblemMemory(const ProblemMemory&) = delete;
    ProblemMemory& operator=(const ProblemMemory&) = delete;

    const ProblemTask& task() const noexcept { return task_; }
    const std::vector<TensorTask>& tensors() const noexcept { return task_.tensors; }
    std::size_t sets() const noexcept { return sets_.size(); }
    const std::vector<Buffer>& set(std::size_t number) const { return sets_[number]; }
    /// Whether the sets together are too small for the second-level cache to be cold.
    bool warm() const noexcept { return warm_; }

    struct Expected {
        Buffer value, magnitude;  ///< doubles, contiguous in the tensor's shape
    };
    const Expected& expected(std::size_t tensor) const { return expected_[tensor]; }
    Buffer saved(std::size_t tensor) const { return saved_[tensor]; }

    /// Numbers of the tensors that are present and read, or written.
    const std::vector<std::size_t>& inputs() const noexcept { return inputs_; }
    const std::vector<std::size_t>& outputs() const noexcept { return outputs_; }

    /// What a run of set `number` should find: poisoned outputs, in-place tensors as they were.
    void reset_outputs(std::size_t number, std::uint8_t poison);
    void save_outputs(std::size_t number);
    /// The first output that differs from the saved run; -1: none does.
    int differs_from_saved(std::size_t number);
    /// The first element of an output behind which a run of set `number` wrote between two rows; the tensor, and the
    /// element's row-major index. What lies there is none of the kernel's, like what lies around the tensor.
    struct Gap {
        std::size_t tensor;
        std::uint64_t element;
    };
    std::optional<Gap> written_gap(std::size_t number);
    /// The first tensor that should only be read and was written; -1: none was.
    int changed_input(std::size_t number);
    /// Copies the pristine inputs to all sets; `refill` makes the pristine ones anew, too.
    void restore_inputs(bool refill);
    /// Replaces the inputs of set 0 by their magnitudes, for the magnitudes of a kernel used as reference.
    void make_inputs_absolute();
    std::vector<Device::Restore> restores() const;

private:
    explicit ProblemMemory(Device& device) : device_{device} {}
    Buffer take(std::uint64_t bytes, std::uint64_t misalign = 0);
    void reserve();
    void fill(std::size_t tensor, Buffer buffer);
    std::size_t sets_wanted();
    std::uint64_t footprint() const;

    Device& device_;
    ProblemTask task_;
    std::vector<MappedMemory> contents_;
    std::vector<std::size_t> inputs_, outputs_;
    std::vector<std::vector<Buffer>> sets_;
    std::vector<Buffer> pristine_, saved_;  ///< by tensor
    std::vector<Expected> expected_;
    std::vector<Buffer> all_;
    bool warm_ = false;
};

}  // namespace autotune
#endif
