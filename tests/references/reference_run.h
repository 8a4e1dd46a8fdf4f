#ifndef AUTOTUNE_TESTS_REFERENCE_RUN_H
#define AUTOTUNE_TESTS_REFERENCE_RUN_H

#include <autotune/reference.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <vector>

namespace autotune::test {

/// A call of an op's CPU reference that is put together piece by piece. Inputs are copied and held; outputs start as
/// NaN.
class ReferenceRun {
public:
    ReferenceRun& number(const char* name, double value) {
        fields_.push_back({.name = name, .integer = static_cast<std::int64_t>(value), .real = value, .text = nullptr});
        return *this;
    }
    ReferenceRun& word(const char* name, const char* text) {
        fields_.push_back({.name = name, .integer = 0, .real = 0.0, .text = text});
        return *this;
    }
    template <class T>
    ReferenceRun& in(const char* name, autotune_dtype dtype, const std::vector<T>& elements,
                     std::vector<std::int64_t> shape) {
        add(name, dtype, AUTOTUNE_IN, std::move(shape)).hold(elements);
        return *this;
    }
    ReferenceRun& out(const char* name, autotune_dtype dtype, std::vector<std::int64_t> shape) {
        add(name, dtype, AUTOTUNE_OUT, std::move(shape)).expect();
        return *this;
    }
    template <class T>
    ReferenceRun& inout(const char* name, autotune_dtype dtype, const std::vector<T>& elements,
                        std::vector<std::int64_t> shape) {
        Held& held = add(name, dtype, AUTOTUNE_INOUT, std::move(shape));
        held.hold(elements);
        held.expect();
        return *this;
    }

    /// Runs it; a failure fails the test with the reference's message.
    ReferenceRun& run(int (*reference)(const autotune_call*)) {
        std::vector<autotune_tensor_view> views;
        for (Held& held : tensors_)
            views.push_back({.name = held.name.c_str(),
                             .dtype = held.dtype,
                             .role = held.role,
                             .rank = static_cast<std::int32_t>(held.shape.size()),
                             .shape = held.shape.data(),
                             .strides = held.strides.data(),
                             .data = held.data.empty() ? nullptr : held.data.data(),
                             .value = held.value.empty() ? nullptr : held.value.data(),
                             .magnitude = held.magnitude.empty() ? nullptr : held.magnitude.data()});
        char message[256] = "";
        const autotune_call call{.abi = AUTOTUNE_REFERENCE_ABI,
                                 .threads = 3,
                                 .seed = 0,
                                 .tensor_count = views.size(),
                                 .tensors = views.data(),
                                 .field_count = fields_.size(),
                                 .fields = fields_.data(),
                                 .message = message,
                                 .message_size = sizeof message};
        EXPECT_EQ(reference(&call), 0) << message;
        return *this;
    }

    const std::vector<double>& value(const std::string& name) const { return held(name).value; }
    const std::vector<double>& magnitude(const std::string& name) const { return held(name).magnitude; }

private:
    struct Held {
        std::string name;
        autotune_dtype dtype;
        autotune_role role;
        std::vector<std::int64_t> shape, strides;
        std::vector<char> data;
        std::vector<double> value, magnitude;

        template <class T>
        void hold(const std::vector<T>& elements) {
            data.resize(elements.size() * sizeof(T));
            if (!elements.empty()) std::memcpy(data.data(), elements.data(), data.size());
        }
        void expect() {
            std::size_t count = 1;
            for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
            value.assign(count, std::numeric_limits<double>::quiet_NaN());
            magnitude = value;
        }
    };

    Held& add(const char* name, autotune_dtype dtype, autotune_role role, std::vector<std::int64_t> shape) {
        std::vector<std::int64_t> strides(shape.size(), 1);
        for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
        tensors_.push_back({name, dtype, role, std::move(shape), std::move(strides), {}, {}, {}});
        return tensors_.back();
    }
    const Held& held(const std::string& name) const {
        for (const Held& held : tensors_)
            if (held.name == name) return held;
        throw std::out_of_range(name);
    }

    std::deque<Held> tensors_;
    std::vector<autotune_field> fields_;
};

}  // namespace autotune::test
#endif
