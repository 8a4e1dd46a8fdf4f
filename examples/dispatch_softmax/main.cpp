// An application that runs softmax through the dispatcher: the tuned kernel where the user's database has one for this
// GPU and shape, else the default. It checks the result with a loop of its own and says where the answer came from.
//
//     dispatch_softmax [ROWS [COLS [BUNDLE]]]
//
// BUNDLE: a file of `autotune db bundle`, which answers as well, and needs neither a database nor a compiler.
// Tune first to see the difference:  autotune --op softmax --problem rows=4096,cols=4096,dtype=f32
#include <autotune/dispatcher.h>
#include <autotune/error.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gpu.h"

namespace {

/// The largest difference between y and the softmax of x's rows, computed in double.
double largest_error(const std::vector<float>& x, const std::vector<float>& y, std::int64_t rows, std::int64_t cols) {
    double largest = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        const float* from = x.data() + r * cols;
        const double top = *std::max_element(from, from + cols);
        double sum = 0;
        for (std::int64_t c = 0; c < cols; ++c) sum += std::exp(from[c] - top);
        for (std::int64_t c = 0; c < cols; ++c) {
            const double error = std::abs(y[static_cast<std::size_t>(r * cols + c)] - std::exp(from[c] - top) / sum);
            if (!(error <= largest)) largest = error;  // also for NaN
        }
    }
    return largest;
}

int run(std::int64_t rows, std::int64_t cols, std::vector<std::string> bundles) {
    std::vector<float> x(static_cast<std::size_t>(rows * cols)), y(x.size());
    std::mt19937 random{1};
    std::normal_distribution<float> normal;
    for (float& value : x) value = normal(random);
    const GpuArray device_x{x}, device_y{y};

    // Once an application, and once a call site.
    autotune::Dispatcher dispatcher{{.bundles = std::move(bundles), .log = [](const std::string& sentence) {
                                         std::fprintf(stderr, "note: %s\n", sentence.c_str());
                                     }}};
    const autotune::Handle softmax = dispatcher.prepare("softmax", {{"dtype", std::string{"f32"}}});

    // Each call: shapes and addresses; a shape that was seen before costs about as much as the launch itself.
    const std::int64_t shape[] = {rows, cols};
    const autotune::TensorArgument tensors[] = {
        {.data = device_x.data(), .dtype = autotune::DType::f32, .shape = shape},
        {.data = device_y.data(), .dtype = autotune::DType::f32, .shape = shape}};
    const autotune::Decision decision = dispatcher.launch(softmax, tensors, {}, nullptr);
    if (!decision.launched) {
        std::fprintf(stderr, "error: softmax was not launched: %.*s\n", static_cast<int>(decision.why.size()),
                     decision.why.data());
        return 1;
    }
    device_y.read(y);

    const double error = largest_error(x, y, rows, cols);
    const std::string_view rung = autotune::name_of(decision.rung);
    std::printf("softmax rows=%lld cols=%lld dtype=f32: %.*s (%.*s), %.*s%s\n", static_cast<long long>(rows),
                static_cast<long long>(cols), static_cast<int>(rung.size()), rung.data(),
                static_cast<int>(decision.why.size()), decision.why.data(), static_cast<int>(decision.config.size()),
                decision.config.data(), decision.verified ? ", verified" : "");
    std::printf("largest error against the CPU: %.2g\n", error);
    return error < 1e-6 ? 0 : 1;
}

/// An op that there is is found without a GPU too; what it would run on one is an error that says what is missing.
void without_gpu(std::int64_t rows, std::int64_t cols) {
    autotune::Dispatcher dispatcher;
    dispatcher.prepare("softmax", {{"dtype", std::string{"f32"}}});
    try {
        dispatcher.explain("softmax", {{"rows", rows}, {"cols", cols}, {"dtype", std::string{"f32"}}});
    } catch (const autotune::Error& error) {
        std::printf("skipped: %s; with one, softmax rows=%lld cols=%lld dtype=f32 would run here and be checked\n",
                    error.what(), static_cast<long long>(rows), static_cast<long long>(cols));
    }
}

}  // namespace

int main(int count, char** arguments) {
    constexpr int skipped = 77;  // what ctest takes for "cannot run here"
    try {
        const std::int64_t rows = count > 1 ? std::atoll(arguments[1]) : 4096,
                           cols = count > 2 ? std::atoll(arguments[2]) : 4096;
        if (rows < 1 || cols < 1 || rows > (std::int64_t{1} << 30) / cols) {
            std::fprintf(stderr, "usage: dispatch_softmax [ROWS [COLS [BUNDLE]]]\n");
            return 1;
        }
        const Gpu gpu;
        if (!gpu.present()) {
            without_gpu(rows, cols);
            return skipped;
        }
        return run(rows, cols, {arguments + std::min(count, 3), arguments + std::min(count, 4)});
    } catch (const autotune::Error& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
