#ifndef AUTOTUNE_TESTS_GPU_SOFTMAX_ON_GPU_H
#define AUTOTUNE_TESTS_GPU_SOFTMAX_ON_GPU_H

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "autotune/dispatcher.h"
#include "cache/store/store.h"
#include "device/driver.h"
#include "device/identity.h"
#include "device/nvrtc.h"
#include "tests/cache/samples.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/model/op_set.h"

namespace autotune::samples {

/// Why there is nothing to run on; empty: there is.
inline const std::string& obstacle() {
    static const std::string why = [] {
        std::string reason;
        if (!driver_if_present(&reason)) return reason;
        if (!nvrtc_if_present(&reason)) return reason;
        return present_devices().empty() ? std::string{"there is no GPU here"} : std::string{};
    }();
    return why;
}

inline std::vector<float> softmax(const std::vector<float>& x, std::int64_t rows, std::int64_t cols) {
    std::vector<float> y(x.size());
    for (std::int64_t r = 0; r < rows; ++r) {
        const float* row = x.data() + r * cols;
        const double largest = *std::max_element(row, row + cols);
        double sum = 0;
        for (std::int64_t c = 0; c < cols; ++c) sum += std::exp(row[c] - largest);
        for (std::int64_t c = 0; c < cols; ++c)
            y[static_cast<std::size_t>(r * cols + c)] = static_cast<float>(std::exp(row[c] - largest) / sum);
    }
    return y;
}

/// x and y of a softmax on the device, with what y should be.
class Softmax {
public:
    Softmax(std::int64_t rows, std::int64_t cols) : shape_{rows, cols}, x_(static_cast<std::size_t>(rows * cols)) {
        for (OwnedMemory* memory : {&device_x_, &device_y_}) {
            CUdeviceptr address = 0;
            check(driver().cuMemAlloc(&address, bytes()), "allocating {} bytes", bytes());
            *memory = OwnedMemory{address};
        }
        renew(7);
    }
    /// Other values in the same place, and y poisoned.
    void renew(unsigned seed) {
        std::mt19937 random{seed};
        std::normal_distribution<float> normal;
        for (float& value : x_) value = normal(random);
        want_ = softmax(x_, shape_[0], shape_[1]);
        check(driver().cuMemcpyHtoD(device_x_.get(), x_.data(), bytes()), "copying x");
        clear();
    }
    /// Waits: a memset is asynchronous, and streams that do not block know nothing of it.
    void clear() {
        check(driver().cuMemsetD8(device_y_.get(), 0xff, bytes()), "poisoning y");
        check(driver().cuCtxSynchronize(), "waiting");
    }
    std::array<TensorArgument, 2> tensors() const {
        return {{{.data = reinterpret_cast<const void*>(device_x_.get()), .shape = shape_},
                 {.data = reinterpret_cast<const void*>(device_y_.get()), .shape = shape_}}};
    }
    /// Largest difference; NaN counts as infinite.
    double error() const {
        std::vector<float> got(x_.size());
        check(driver().cuMemcpyDtoH(got.data(), device_y_.get(), bytes()), "copying y");
        double largest = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
            const double difference = std::abs(static_cast<double>(got[i]) - want_[i]);
            largest = std::isfinite(difference) ? std::max(largest, difference) : INFINITY;
        }
        return largest;
    }

private:
    std::size_t bytes() const noexcept { return x_.size() * sizeof(float); }
    std::array<std::int64_t, 2> shape_;
    std::vector<float> x_, want_;
    OwnedMemory device_x_, device_y_;
};

/// A database of its own and the first GPU's primary context.
class SoftmaxOnGpu : public testing::Test {
protected:
    void SetUp() override {
        if (!obstacle().empty()) GTEST_SKIP() << obstacle();
        CUdevice device = 0;
        check(driver().cuDeviceGet(&device, 0), "opening the GPU");
        check(driver().cuDevicePrimaryCtxRetain(&context_, device), "making a context");
        check(driver().cuCtxSetCurrent(context_), "entering the context");
        ::setenv("AUTOTUNE_DB", (folder_ / "tune.db").c_str(), 1);
    }
    void TearDown() override { ::unsetenv("AUTOTUNE_DB"); }
    Instance instance(std::int64_t rows, std::int64_t cols) const {
        return Instance::make(ops_.find("softmax"), {{"rows", rows}, {"cols", cols}, {"dtype", std::string{"f32"}}},
                              identify(0).limits);
    }
    /// Stores the defaults of a variant as the winner of a search.
    Config tuned(std::int64_t rows, std::int64_t cols, const char* variant) {
        const Instance it = instance(rows, cols);
        return store(it, it.defaults_of(*it.op().variant(variant)).value());
    }
    /// Stores a config as the winner of a search, with twice the speed of the default.
    Config store(const Instance& it, const Config& config) {
        Store store = Store::open({.path = folder_ / "tune.db"});
        const RunId run = store.begin_run({.device = identify(0),
                                           .environment = {.nvrtc_major = nvrtc().major, .nvrtc_minor = nvrtc().minor},
                                           .templates = templates_of(it.op()),
                                           .problem = problem_of(it),
                                           .info = {}});
        store.finish_run(run,
                         {.finalists = {finalist(config, 10.0)}, .default_us = 20.0, .evaluated = 9, .space_size = 64});
        return config;
    }
    Dispatcher::Options options(bool compile = true) { return {.ops = &ops_, .compile = compile}; }

    Folder folder_;
    OpSet ops_;
    CUcontext context_ = nullptr;
};

}  // namespace autotune::samples
#endif
