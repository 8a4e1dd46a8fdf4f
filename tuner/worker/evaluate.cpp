#include "tuner/worker/evaluate.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>

#include "autotune/error.h"
#include "device/fill.h"

namespace autotune {
namespace {

constexpr std::int64_t largest_dim = std::int64_t{1} << 40;

/// nullptr: the library has no such function.
autotune_reference_fn find_function(const std::string& library, const char* name) {
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // for the life of this process
    if (!handle)
        throw Error{Error::Kind::usage, fmt::format("the library '{}' cannot be loaded: {}", library, dlerror())};
    return reinterpret_cast<autotune_reference_fn>(dlsym(handle, name));
}

autotune_reference_fn function_of(const std::string& library, const char* name) {
    const autotune_reference_fn function = find_function(library, name);
    if (!function) throw Error{Error::Kind::usage, fmt::format("the library '{}' has no function '{}'", library, name)};
    return function;
}

void parallel(std::size_t count, int threads, const std::function<void(std::size_t begin, std::size_t end)>& body) {
    const std::size_t chunk = (count + static_cast<std::size_t>(threads) - 1) / static_cast<std::size_t>(threads);
    std::vector<std::thread> pool;
    for (std::size_t begin = chunk; begin < count; begin += chunk)
        pool.emplace_back([&, begin] { body(begin, std::min(count, begin + chunk)); });
    body(0, std::min(count, chunk));
    for (std::thread& thread : pool) thread.join();
}

/// The arrays of one call and the C structures that point at them.
class Call {
public:
    Call(const EvaluateTask& task, bool generated, std::span<const MappedMemory> contents) : task_{task} {
        for (const TensorTask& tensor : task.tensors) add(tensor, generated, contents);
        for (const FieldTask& field : task.fields)
            fields_.push_back({.name = field.name.c_str(),
                               .integer = field.integer,
                               .real = field.real,
                               .text = field.is_text ? field.text.c_str() : nullptr});
    }

    void run(autotune_reference_fn function, std::string_view what) {
        std::array<char, 1024> message{};
        const autotune_call call{.abi = AUTOTUNE_REFERENCE_ABI,
                                 .threads = task_.threads,
                                 .seed = task_.seed,
                                 .tensor_count = views_.size(),
                                 .tensors = views_.data(),
                                 .field_count = fields_.size(),
                                 .fields = fields_.data(),
                                 .message = message.data(),
                                 .message_size = message.size()};
        if (function(&call) != 0)
            throw Error{Error::Kind::usage, fmt::format("the {} of '{}' failed: {}", what, task_.op, message.data())};
    }

    /// Completes magnitudes and looks for NaN, per output.
    std::vector<Fd> take_values() {
        const bool special = std::ranges::any_of(task_.tensors, [](const TensorTask& tensor) {
            return is_read(tensor) && tensor.fill.kind == FillSpec::Kind::special;
        });
        std::vector<Fd> fds;
        for (std::size_t i = 0; i < task_.tensors.size(); ++i) {
            if (!is_written(task_.tensors[i])) continue;
            complete(task_.tensors[i], views_[i], special);
            fds.push_back(std::move(*values_[i]).seal());
            fds.push_back(std::move(*magnitudes_[i]).seal());
        }
        return fds;
    }

    /// The first element of each tensor of whole numbers of 8 bytes.
    std::vector<std::int64_t> integers() const {
        std::vector<std::int64_t> found;
        for (const std::vector<std::byte>& bytes : data_) std::memcpy(&found.emplace_back(), bytes.data(), 8);
        return found;
    }

    std::vector<Fd> take_inputs() {
        std::vector<Fd> fds;
        for (std::size_t i = 0; i < task_.tensors.size(); ++i)
            if (is_read(task_.tensors[i])) fds.push_back(sealed_memory(data_[i]));
        return fds;
    }

private:
    void add(const TensorTask& tensor, bool generated, std::span<const MappedMemory> contents) {
        std::vector<std::byte> bytes;
        if (is_read(tensor)) {
            if (generated)
                bytes.resize(tensor.bytes);
            else if (tensor.contents < 0)
                bytes = filled_bytes(tensor, task_.threads);
            else
                bytes = given_bytes(tensor, contents);
        }
        data_.push_back(std::move(bytes));
        values_.push_back(is_written(tensor) ? std::make_unique<WritableMemory>(tensor.elements * 8) : nullptr);
        magnitudes_.push_back(is_written(tensor) ? std::make_unique<WritableMemory>(tensor.elements * 8) : nullptr);
        views_.push_back({.name = tensor.name.c_str(),
                          .dtype = static_cast<std::int32_t>(tensor.dtype),
                          .role = static_cast<std::int32_t>(std::min(tensor.role, Role::inout)),
                          .rank = static_cast<std::int32_t>(tensor.shape.size()),
                          .shape = tensor.shape.data(),
                          .strides = tensor.strides.data(),
                          .data = is_read(tensor) ? data_.back().data() : nullptr,
                          .value = doubles(values_.back()),
                          .magnitude = doubles(magnitudes_.back())});
    }

    double* doubles(const std::unique_ptr<WritableMemory>& memory) const {
        if (!memory) return nullptr;
        auto* first = reinterpret_cast<double*>(memory->bytes().data());
        const std::size_t count = memory->bytes().size() / sizeof(double);
        parallel(count, task_.threads, [&](std::size_t begin, std::size_t end) {
            std::fill(first + begin, first + end, std::numeric_limits<double>::quiet_NaN());
        });
        return first;
    }

    static std::vector<std::byte> given_bytes(const TensorTask& tensor, std::span<const MappedMemory> contents) {
        const auto number = static_cast<std::size_t>(tensor.contents);
        if (number >= contents.size() || contents[number].bytes().size() != tensor.bytes)
            throw Error{Error::Kind::internal, fmt::format("the contents of tensor '{}' did not come", tensor.name)};
        return {contents[number].bytes().begin(), contents[number].bytes().end()};
    }

    static void complete(const TensorTask& tensor, const autotune_tensor_view& view, bool may_be_nan) {
        for (std::uint64_t i = 0; i < tensor.elements; ++i) {
            if (std::isnan(view.magnitude[i])) view.magnitude[i] = std::abs(view.value[i]);
            if (!may_be_nan && std::isnan(view.value[i]))
                throw Error{Error::Kind::usage,
                            fmt::format("the reference gives nan at {}, or never writes it", element_name(tensor, i))};
        }
    }

    const EvaluateTask& task_;
    std::vector<std::vector<std::byte>> data_;
    std::vector<std::unique_ptr<WritableMemory>> values_, magnitudes_;
    std::vector<autotune_tensor_view> views_;
    std::vector<autotune_field> fields_;
};

/// A dim is a tensor of one element that the generator writes.
std::vector<std::int64_t> sizes_from(const EvaluateTask& task) {
    EvaluateTask dims{.op = task.op, .fields = task.fields, .seed = task.seed, .threads = task.threads};
    for (const std::string& name : task.sizes)
        dims.tensors.push_back(
            {.name = name, .dtype = DType::i64, .shape = {1}, .strides = {1}, .elements = 1, .bytes = 8});
    const autotune_reference_fn function = find_function(task.inputs_library, "autotune_sizes");
    if (!function)
        throw Error{Error::Kind::usage,
                    fmt::format("the input generator of '{}' has no AUTOTUNE_SIZES, which sets '{}'", task.op,
                                fmt::join(task.sizes, "', '"))};
    Call call{dims, true, {}};
    call.run(function, "input generator");
    std::vector<std::int64_t> sizes = call.integers();
    for (std::size_t i = 0; i < sizes.size(); ++i)
        if (sizes[i] < 1 || sizes[i] > largest_dim)
            throw Error{Error::Kind::usage,
                        fmt::format("the input generator of '{}' sets '{}' to {}, and a dim is from 1 to 2^40", task.op,
                                    task.sizes[i], sizes[i])};
    return sizes;
}

}  // namespace

std::vector<std::byte> filled_bytes(const TensorTask& tensor, int threads) {
    std::vector<std::byte> bytes(tensor.bytes);
    const std::size_t size = size_of(tensor.dtype), count = bytes.size() / size;
    parallel(count, threads, [&](std::size_t begin, std::size_t end) {
        fill_on_host(std::span{bytes}.subspan(begin * size, (end - begin) * size), tensor.dtype, begin, count,
                     tensor.fill);
    });
    return bytes;
}

Evaluation evaluate(const EvaluateTask& task, const ReferenceTable& table, std::span<const MappedMemory> contents) {
    if (!task.sizes.empty()) return {.sizes = sizes_from(task)};
    const bool generated = !task.inputs_library.empty();
    Call call{task, generated, contents};
    Evaluation evaluation;
    if (generated) {
        call.run(function_of(task.inputs_library, "autotune_inputs"), "input generator");
        evaluation.inputs = call.take_inputs();
    }
    if (task.inputs_only) return evaluation;
    const autotune_reference_fn function =
        task.library.empty() ? (table ? table(task.op) : nullptr) : function_of(task.library, "autotune_reference");
    if (!function) throw Error{Error::Kind::usage, fmt::format("there is no CPU reference for '{}'", task.op)};
    call.run(function, "reference");
    evaluation.values = call.take_values();
    return evaluation;
}

}  // namespace autotune
