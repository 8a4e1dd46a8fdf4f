#ifndef AUTOTUNE_TESTS_WORKER_BAD_OP_H
#define AUTOTUNE_TESTS_WORKER_BAD_OP_H

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/test_data.h"
#include "tuner/loader/op_loader.h"
#include "tuner/worker/worker_bench.h"

namespace autotune {

/// The op of tests/bad_kernels.
inline const Op& bad_op() {
    static const std::vector<Op> ops = load_op_folder(test_data("bad_kernels"));
    return ops.front();
}

inline Instance bad_problem(const DeviceLimits& limits, std::int64_t n = 65536) {
    return Instance::make(bad_op(), {{"n", n}}, limits);
}

inline Config bad_kernel(const std::string& variant) { return {.variant = variant, .values = {}}; }

/// Processes whose parent is this one.
inline std::vector<pid_t> children() {
    std::vector<pid_t> found;
    for (const auto& thread : std::filesystem::directory_iterator{"/proc/self/task"}) {
        std::ifstream in{thread.path() / "children"};
        found.insert(found.end(), std::istream_iterator<pid_t>{in}, {});
    }
    return found;
}

/// One trial from its submission to its outcome.
inline Outcome try_one(Bench& bench, const Config& config) {
    bench.submit(config);
    return bench.next({});
}

}  // namespace autotune
#endif
