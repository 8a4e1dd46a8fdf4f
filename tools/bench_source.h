#ifndef AUTOTUNE_TOOLS_BENCH_SOURCE_H
#define AUTOTUNE_TOOLS_BENCH_SOURCE_H

#include <functional>
#include <memory>
#include <vector>

#include "tools/session.h"

namespace autotune {

/// Where a subcommand gets its devices and benches: the GPUs that are here, or what a test makes up.
struct BenchSource {
    std::function<std::vector<PresentGpu>(const Session&)> gpus;
    std::function<std::unique_ptr<Bench>(const Session&, const PresentGpu&)> bench;
};

/// The GPUs that are here, and workers on them.
BenchSource real_benches();

/// The subcommands that need a GPU, with the benches of `source`.
int tune_with(const Request& request, Console& console, const BenchSource& source);
int bench_with(const Request& request, Console& console, const BenchSource& source);
int verify_with(const Request& request, Console& console, const BenchSource& source);
int why_with(const Request& request, Console& console, const BenchSource& source);

}  // namespace autotune
#endif
