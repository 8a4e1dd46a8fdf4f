#include "tuner/worker/problem_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "autotune/error.h"
#include "tuner/worker/memory_need.h"

namespace autotune {
namespace {

/// Rotation over more sets costs more than it teaches: a problem so small stays in the cache where it is used, too.
constexpr std::size_t most_sets = 256;

/// Whether something lies between the elements of a tensor.
bool pitched(const TensorTask& tensor) { return tensor.bytes != tensor.elements * size_of(tensor.dtype); }

/// Visits the gaps between the elements of a tensor, in the order of their addresses, until `visit` says false: the
/// row-major index of the element before, and the bytes [begin, end).
void for_each_gap(const TensorTask& tensor,
                  const std::function<bool(std::uint64_t element, std::uint64_t begin, std::uint64_t end)>& visit) {
    const std::size_t size = size_of(tensor.dtype);
    std::vector<std::size_t> order(tensor.shape.size());  // dimensions, from the largest stride to the smallest
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t d) { return tensor.strides[d]; });
    std::vector<std::uint64_t> weight(order.size());  // of a dimension's index in the row-major index
    std::uint64_t product = 1;
    for (std::size_t d = weight.size(); d-- > 0; product *= static_cast<std::uint64_t>(tensor.shape[d]))
        weight[d] = product;
    // What lies side by side in the innermost dimension is one run, without gaps.
    std::uint64_t run = 1, to_last = 0;
    if (!order.empty() && tensor.strides[order.back()] == 1) {
        run = static_cast<std::uint64_t>(tensor.shape[order.back()]);
        to_last = (run - 1) * weight[order.back()];
        order.pop_back();
    }
    std::vector<std::int64_t> index(tensor.shape.size());
    std::uint64_t offset = 0, element = 0;
    for (std::uint64_t count = run; count < tensor.elements; count += run) {
        const std::uint64_t last = element + to_last, end_of_run = offset + run;
        for (std::size_t turn = order.size(); turn-- > 0;) {  // the next in the order of addresses
            const std::size_t d = order[turn];
            const auto stride = static_cast<std::uint64_t>(tensor.strides[d]);
            if (++index[d] < tensor.shape[d]) {
                offset += stride;
                element += weight[d];
                break;
            }
            const auto back = static_cast<std::uint64_t>(tensor.shape[d] - 1);
            offset -= back * stride;
            element -= back * weight[d];
            index[d] = 0;
        }
        if (offset > end_of_run && !visit(last, end_of_run * size, offset * size)) return;
    }
}

/// |x| of each element, in place: the sign bit of a float, the two's complement of an integer.
void make_absolute(DType dtype, std::span<std::byte> bytes) {
    const std::size_t size = size_of(dtype);
    if (dtype == DType::u8 || dtype == DType::u32 || dtype == DType::boolean) return;
    for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
        const bool negative = (bytes[at + size - 1] & std::byte{0x80}) != std::byte{0};
        if (!negative) continue;
        if (info(dtype).floating) {
            bytes[at + size - 1] &= std::byte{0x7F};
            continue;
        }
        unsigned carry = 1;
        for (std::size_t i = 0; i < size; ++i) {
            const unsigned sum = (~std::to_integer<unsigned>(bytes[at + i]) & 0xFFu) + carry;
            bytes[at + i] = static_cast<std::byte>(sum & 0xFFu);
            carry = sum >> 8;
        }
    }
}

}  // namespace

ProblemMemory::ProblemMemory(Device& device, ProblemTask task, std::vector<MappedMemory> contents)
    : ProblemMemory{device} {  // so that the destructor runs when something below fails
    task_ = std::move(task);
    contents_ = std::move(contents);
    const std::size_t count = task_.tensors.size();
    for (std::size_t i = 0; i < count; ++i) {
        if (is_read(task_.tensors[i])) inputs_.push_back(i);
        if (is_written(task_.tensors[i])) outputs_.push_back(i);
    }
    pristine_.resize(count);
    saved_.resize(count);
    expected_.resize(count);
    try {
        if (task_.modelled) {
            reserve();
            return;
        }
        for (const std::size_t i : inputs_) fill(i, pristine_[i] = take(task_.tensors[i].bytes));
        for (const std::size_t i : outputs_) {
            saved_[i] = take(task_.tensors[i].bytes);
            expected_[i] = {take(task_.tensors[i].elements * 8), take(task_.tensors[i].elements * 8)};
        }
        const std::size_t wanted = sets_wanted();
        for (std::size_t s = 0; s < wanted; ++s) {
            std::vector<Buffer> set(count);
            for (std::size_t i = 0; i < count; ++i)
                if (task_.tensors[i].present) set[i] = take(task_.tensors[i].bytes, task_.tensors[i].misalign);
            for (const std::size_t i : inputs_) device_.copy(set[i], pristine_[i]);
            sets_.push_back(std::move(set));
        }
    } catch (const DeviceFailure& e) {
        if (e.fault().kind != DeviceFault::Kind::out_of_memory) throw;
        for (const Buffer& buffer : std::exchange(all_, {})) device_.release(buffer);
        const auto have = static_cast<double>(std::max<std::int64_t>(device_.free_bytes(), 0));
        const std::string need = task_.modelled
                                     ? fmt::format("needs {} on the GPU", memory_text(static_cast<double>(footprint())))
                                     : memory_need(task_.tensors).text();
        throw Error{Error::Kind::device, fmt::format("the problem {}, which has {} free", need, memory_text(have))};
    }
}

ProblemMemory::~ProblemMemory() {
    for (const Buffer& buffer : all_) {
        try {
            device_.release(buffer);
        } catch (const DeviceFailure&) {  // the context is lost, and the memory with it
        }
    }
}

Buffer ProblemMemory::take(std::uint64_t bytes, std::uint64_t misalign) {
    const Buffer buffer = device_.allocate(bytes, misalign);
    all_.push_back(buffer);
    return buffer;
}

/// One set, of which only what a sampled block touches is ever made.
void ProblemMemory::reserve() {
    std::vector<Buffer> set(task_.tensors.size());
    for (std::size_t i = 0; i < set.size(); ++i) {
        const TensorTask& tensor = task_.tensors[i];
        if (!tensor.present) continue;
        const bool filled = is_read(tensor) && tensor.contents < 0;
        set[i] = device_.reserve(tensor.bytes, tensor.misalign, tensor.dtype, filled ? &tensor.fill : nullptr);
        all_.push_back(set[i]);
        if (is_read(tensor) && !filled)
            device_.write(set[i], 0, contents_.at(static_cast<std::size_t>(tensor.contents)).bytes());
    }
    sets_.push_back(std::move(set));
}

void ProblemMemory::fill(std::size_t tensor, Buffer buffer) {
    const TensorTask& task = task_.tensors[tensor];
    if (task.contents < 0) {
        device_.fill(buffer, task.dtype, task.bytes / size_of(task.dtype), task.fill);
        return;
    }
    const auto bytes = contents_.at(static_cast<std::size_t>(task.contents)).bytes();
    if (bytes.size() != task.bytes)
        throw Error{Error::Kind::internal,
                    fmt::format("tensor '{}' has {} bytes, not {}", task.name, bytes.size(), task.bytes)};
    device_.write(buffer, 0, bytes);
}

std::uint64_t ProblemMemory::footprint() const {
    std::uint64_t bytes = 0;
    for (const TensorTask& tensor : task_.tensors)
        if (tensor.present) bytes += tensor.bytes;
    return bytes;
}

std::size_t ProblemMemory::sets_wanted() {
    if (!task_.rotate) return 1;
    const double one = static_cast<double>(std::max<std::uint64_t>(footprint(), 1));
    const auto l2 = static_cast<double>(device_.identity().limits.l2_bytes);
    const double third = static_cast<double>(device_.free_bytes()) / 3;
    const double cold = std::max(2.0, std::ceil(3 * l2 / one));
    const double fits = std::max(1.0, std::floor(third / one));
    const double sets = std::min({cold, fits, static_cast<double>(most_sets)});
    warm_ = sets * one < 2 * l2;
    return static_cast<std::size_t>(sets);
}

void ProblemMemory::reset_outputs(std::size_t number, std::uint8_t poison) {
    for (std::size_t i = 0; i < task_.tensors.size(); ++i) {
        const TensorTask& tensor = task_.tensors[i];
        if (!tensor.present || tensor.role == Role::in) continue;
        // What lies between the rows of a pitched tensor keeps one poison, since runs are compared byte by byte.
        if (tensor.role == Role::inout)
            device_.copy(sets_[number][i], pristine_[i]);
        else
            device_.set(sets_[number][i], pitched(tensor) ? first_poison : poison);
    }
}

void ProblemMemory::save_outputs(std::size_t number) {
    for (const std::size_t i : outputs_) device_.copy(saved_[i], sets_[number][i]);
}

int ProblemMemory::differs_from_saved(std::size_t number) {
    for (const std::size_t i : outputs_)
        if (!device_.equal(saved_[i], sets_[number][i])) return static_cast<int>(i);
    return -1;
}

std::optional<ProblemMemory::Gap> ProblemMemory::written_gap(std::size_t number) {
    for (const std::size_t i : outputs_) {
        const TensorTask& tensor = task_.tensors[i];
        if (!pitched(tensor)) continue;
        std::vector<std::byte> now(tensor.bytes), then(tensor.bytes, std::byte{first_poison});
        device_.read(sets_[number][i], 0, now);
        if (tensor.role == Role::inout) device_.read(pristine_[i], 0, then);
        std::optional<Gap> found;
        for_each_gap(tensor, [&](std::uint64_t element, std::uint64_t begin, std::uint64_t end) {
            if (std::equal(now.begin() + static_cast<std::ptrdiff_t>(begin),
                           now.begin() + static_cast<std::ptrdiff_t>(end),
                           then.begin() + static_cast<std::ptrdiff_t>(begin)))
                return true;
            found = Gap{i, element};
            return false;
        });
        if (found) return found;
    }
    return std::nullopt;
}

int ProblemMemory::changed_input(std::size_t number) {
    for (const std::size_t i : inputs_)
        if (task_.tensors[i].role == Role::in && !device_.equal(sets_[number][i], pristine_[i]))
            return static_cast<int>(i);
    return -1;
}

void ProblemMemory::restore_inputs(bool refill) {
    for (const std::size_t i : inputs_) {
        if (refill) fill(i, pristine_[i]);
        for (const std::vector<Buffer>& set : sets_) device_.copy(set[i], pristine_[i]);
    }
}

void ProblemMemory::make_inputs_absolute() {
    for (const std::size_t i : inputs_) {
        std::vector<std::byte> bytes(task_.tensors[i].bytes);
        device_.read(pristine_[i], 0, bytes);
        make_absolute(task_.tensors[i].dtype, bytes);
        device_.write(sets_[0][i], 0, bytes);
    }
}

std::vector<Device::Restore> ProblemMemory::restores() const {
    std::vector<Device::Restore> list;
    if (task_.modelled) return list;
    for (std::size_t s = 0; s < sets_.size(); ++s)
        for (const std::size_t i : outputs_)
            if (task_.tensors[i].role == Role::inout) list.push_back({s, sets_[s][i], pristine_[i]});
    return list;
}

}  // namespace autotune
