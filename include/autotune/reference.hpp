/// C++ side of `reference.h`: what a CPU reference is written against.
///
///     #include <autotune/reference.hpp>
///     AUTOTUNE_REFERENCE(scale) {
///         const auto x = call.doubles("x");
///         autotune::Output y = call.output("y");
///         const double factor = call.real("factor");
///         call.parallel(x.size(), [&](std::size_t i) { y.set(i, x[i] * factor); });
///     }
#ifndef AUTOTUNE_REFERENCE_HPP
#define AUTOTUNE_REFERENCE_HPP

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "reference.h"

namespace autotune {

namespace reference_detail {

inline float bits_to_float(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/// An element of a small float format with `exponent` and `mantissa` bits, IEEE-like; exact in double.
/// `finite_only` is e4m3's rule: no infinity, and NaN only where every bit is set.
inline double small_float(std::uint32_t bits, int exponent, int mantissa, bool finite_only) {
    const int bias = (1 << (exponent - 1)) - 1;
    const std::uint32_t fraction = bits & ((1u << mantissa) - 1);
    const int power = static_cast<int>((bits >> mantissa) & ((1u << exponent) - 1));
    const double sign = (bits >> (exponent + mantissa)) & 1 ? -1.0 : 1.0;
    const int top = (1 << exponent) - 1;
    if (power == top && !finite_only) return fraction ? sign * std::nan("") : sign * INFINITY;
    if (power == top && fraction == (1u << mantissa) - 1) return sign * std::nan("");
    if (power == 0) return sign * std::ldexp(static_cast<double>(fraction), 1 - bias - mantissa);
    return sign * std::ldexp(1.0 + std::ldexp(static_cast<double>(fraction), -mantissa), power - bias);
}

template <class T>
T read(const void* data, std::int64_t index) {
    T value;
    std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<std::int64_t>(sizeof(T)), sizeof value);
    return value;
}

}  // namespace reference_detail

/// Element `index` (in elements from `data`) as a double: exact for every type but large 64-bit integers.
inline double element_as_double(const void* data, int dtype, std::int64_t index) {
    using namespace reference_detail;
    switch (dtype) {
        case AUTOTUNE_F64:
            return read<double>(data, index);
        case AUTOTUNE_F32:
            return static_cast<double>(read<float>(data, index));
        case AUTOTUNE_F16:
            return small_float(read<std::uint16_t>(data, index), 5, 10, false);
        case AUTOTUNE_BF16:
            return static_cast<double>(
                bits_to_float(static_cast<std::uint32_t>(read<std::uint16_t>(data, index)) << 16));
        case AUTOTUNE_F8E4M3:
            return small_float(read<std::uint8_t>(data, index), 4, 3, true);
        case AUTOTUNE_F8E5M2:
            return small_float(read<std::uint8_t>(data, index), 5, 2, false);
        case AUTOTUNE_I64:
            return static_cast<double>(read<std::int64_t>(data, index));
        case AUTOTUNE_I32:
            return read<std::int32_t>(data, index);
        case AUTOTUNE_I16:
            return read<std::int16_t>(data, index);
        case AUTOTUNE_I8:
            return read<std::int8_t>(data, index);
        case AUTOTUNE_U8:
            return read<std::uint8_t>(data, index);
        case AUTOTUNE_U32:
            return read<std::uint32_t>(data, index);
        case AUTOTUNE_BOOL:
            return read<std::uint8_t>(data, index) != 0;
        default:
            throw std::invalid_argument("unknown dtype " + std::to_string(dtype));
    }
}

/// Where a reference writes one output; elements are counted row-major in the tensor's shape.
class Output {
public:
    explicit Output(const autotune_tensor_view& view) : view_{view} {}
    void set(std::size_t i, double value) { view_.value[i] = value; }
    /// `magnitude`: the sum of the magnitudes of the terms of this element.
    void set(std::size_t i, double value, double magnitude) {
        view_.value[i] = value;
        view_.magnitude[i] = magnitude;
    }

private:
    const autotune_tensor_view& view_;
};

/// A call as C++ code sees it. Each accessor throws std::invalid_argument for a name that is not there, or that is of
/// another kind.
class ReferenceCall {
public:
    explicit ReferenceCall(const autotune_call& raw) : raw_{raw} {}

    std::int64_t integer(std::string_view name) const { return field(name).integer; }
    bool flag(std::string_view name) const { return field(name).integer != 0; }
    double real(std::string_view name) const { return field(name).real; }
    std::string_view text(std::string_view name) const {
        const char* text = field(name).text;
        if (!text) throw std::invalid_argument("the field '" + std::string(name) + "' is a number, no text");
        return text;
    }
    int threads() const { return raw_.threads; }
    std::uint64_t seed() const { return raw_.seed; }

    /// In AUTOTUNE_SIZES only: sets a dim.
    void set_size(std::string_view name, std::int64_t size) const {
        *static_cast<std::int64_t*>(tensor(name).data) = size;
    }

    const autotune_tensor_view& tensor(std::string_view name) const {
        for (std::size_t i = 0; i < raw_.tensor_count; ++i)
            if (name == raw_.tensors[i].name) return raw_.tensors[i];
        throw std::invalid_argument("the call has no tensor '" + std::string(name) + "'");
    }
    /// An optional tensor may be absent.
    bool has(std::string_view name) const { return tensor(name).data != nullptr; }

    /// All elements of an input, row-major and contiguous whatever its strides, as doubles.
    std::vector<double> doubles(std::string_view name) const {
        const autotune_tensor_view& view = tensor(name);
        if (view.data == nullptr) throw std::invalid_argument("tensor '" + std::string(name) + "' is absent");
        std::size_t rows = 1;
        for (int d = 0; d + 1 < view.rank; ++d) rows *= static_cast<std::size_t>(view.shape[d]);
        const std::size_t row = view.rank ? static_cast<std::size_t>(view.shape[view.rank - 1]) : 1;
        const std::int64_t step = view.rank ? view.strides[view.rank - 1] : 1;
        std::vector<double> out(rows * row);
        parallel(rows, [&](std::size_t r) {
            std::int64_t base = 0;
            std::size_t rest = r;
            for (int d = view.rank - 2; d >= 0; --d) {
                base += static_cast<std::int64_t>(rest % static_cast<std::size_t>(view.shape[d])) * view.strides[d];
                rest /= static_cast<std::size_t>(view.shape[d]);
            }
            for (std::size_t i = 0; i < row; ++i)
                out[r * row + i] = element_as_double(view.data, view.dtype, base + static_cast<std::int64_t>(i) * step);
        });
        return out;
    }

    Output output(std::string_view name) const { return Output{tensor(name)}; }

    /// body(i) for each i in [0, count), over the threads of the call; the first exception is rethrown.
    template <class Body>
    void parallel(std::size_t count, Body&& body) const {
        const auto workers = static_cast<std::size_t>(raw_.threads < 1 ? 1 : raw_.threads);
        if (workers == 1 || count < 2) {
            for (std::size_t i = 0; i < count; ++i) body(i);
            return;
        }
        std::atomic<std::size_t> next{0};
        std::atomic<bool> failed{false};
        std::exception_ptr error;
        const std::size_t chunk = count / (workers * 8) + 1;
        const auto work = [&] {
            try {
                for (std::size_t begin = next.fetch_add(chunk); begin < count && !failed; begin = next.fetch_add(chunk))
                    for (std::size_t i = begin; i < std::min(count, begin + chunk); ++i) body(i);
            } catch (...) {
                if (!failed.exchange(true)) error = std::current_exception();
            }
        };
        std::vector<std::thread> pool;
        pool.reserve(workers - 1);
        try {
            while (pool.size() + 1 < workers) pool.emplace_back(work);
        } catch (const std::system_error&) {  // no more threads are to be had: those there are do it all
        }
        work();
        for (std::thread& thread : pool) thread.join();
        if (error) std::rethrow_exception(error);
    }

private:
    const autotune_field& field(std::string_view name) const {
        for (std::size_t i = 0; i < raw_.field_count; ++i)
            if (name == raw_.fields[i].name) return raw_.fields[i];
        throw std::invalid_argument("the call has no field '" + std::string(name) + "'");
    }
    const autotune_call& raw_;
};

/// Runs a C++ body behind the C ABI: exceptions become a message and a status.
template <class Body>
int run_reference(const autotune_call* raw, Body&& body) noexcept {
    const auto fail = [raw](const char* why) {
        if (raw->message_size) {
            std::strncpy(raw->message, why, raw->message_size - 1);
            raw->message[raw->message_size - 1] = '\0';
        }
        return 1;
    };
    try {
        if (raw->abi != AUTOTUNE_REFERENCE_ABI) return fail("built for another version of the reference ABI");
        body(ReferenceCall{*raw});
        return 0;
    } catch (const std::exception& e) {
        return fail(e.what());
    } catch (...) {
        return fail("an exception that is no std::exception");
    }
}

}  // namespace autotune

/// Defines the reference of an op; the body sees `call`. A built-in op's function is named after the op, a
/// user's is found by the one name `autotune_reference` in the library built from its file.
#ifdef AUTOTUNE_BUILTIN_REFERENCE
#define AUTOTUNE_REFERENCE_SYMBOL(op) autotune_reference_##op
#else
#define AUTOTUNE_REFERENCE_SYMBOL(op) autotune_reference
#endif
#define AUTOTUNE_REFERENCE(op)                                                       \
    static void autotune_reference_body_##op(const ::autotune::ReferenceCall& call); \
    extern "C" int AUTOTUNE_REFERENCE_SYMBOL(op)(const autotune_call* raw) {         \
        return ::autotune::run_reference(raw, autotune_reference_body_##op);         \
    }                                                                                \
    static void autotune_reference_body_##op([[maybe_unused]] const ::autotune::ReferenceCall& call)

/// Defines what sets the dims that an op declares `from = "inputs"`, in the same file as its AUTOTUNE_INPUTS and before
/// it: `call.set_size("edges", n)`. It sees seed and fields (such a dim as it is given, or its default, or 1), no tensors.
#define AUTOTUNE_SIZES(op)                                                                  \
    static void autotune_sizes_body_##op(const ::autotune::ReferenceCall& call);            \
    extern "C" int autotune_sizes(const autotune_call* raw) {                               \
        return ::autotune::run_reference(raw, autotune_sizes_body_##op);                    \
    }                                                                                       \
    static void autotune_sizes_body_##op([[maybe_unused]] const ::autotune::ReferenceCall& call)

/// Defines an input generator, which writes the `data` of inputs; same ABI.
#define AUTOTUNE_INPUTS(op)                                                       \
    static void autotune_inputs_body_##op(const ::autotune::ReferenceCall& call); \
    extern "C" int autotune_inputs(const autotune_call* raw) {                    \
        return ::autotune::run_reference(raw, autotune_inputs_body_##op);         \
    }                                                                             \
    static void autotune_inputs_body_##op([[maybe_unused]] const ::autotune::ReferenceCall& call)

#endif
