#ifndef AUTOTUNE_TOOLS_TUNE_H
#define AUTOTUNE_TOOLS_TUNE_H

#include <functional>
#include <memory>
#include <vector>

#include "tools/session.h"

namespace autotune {

/// Where a tuning run gets its devices and benches: the GPUs that are here, or what a test makes up.
struct BenchSource {
    std::function<std::vector<PresentGpu>(const Session&)> gpus;
    std::function<std::unique_ptr<Bench>(const Session&, const PresentGpu&)> bench;
};

/// `autotune tune` with the benches of `source`.
int tune_with(const Request& request, Console& console, const BenchSource& source);

}  // namespace autotune
#endif
