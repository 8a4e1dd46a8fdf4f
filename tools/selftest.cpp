#include <fmt/format.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "tools/interrupt.h"
#include "tools/json_events.h"
#include "tools/selftest_op.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tools/tune_report.h"
#include "tuner/loader/file_source.h"
#include "tuner/loader/op_loader.h"

namespace autotune {
namespace {

struct ExpectedEnding {
    std::string_view variant;
    Ending ending;
};

constexpr std::array<ExpectedEnding, 6> expectations{{
    {"good", Ending::timed},
    {"vector", Ending::timed},
    {"shared", Ending::timed},
    {"wrong", Ending::wrong_result},
    {"beyond", Ending::out_of_bounds},
    {"crash", Ending::invalid_access},
}};

}  // namespace

/// Three good and three bad kernels, each of which must end as it should: that compiling, running, checking, timing and
/// the replacement of workers do their work on this device.
int run_selftest(const Request& request, Console& console) {
    const Session session{request, console};
    const PresentGpu gpu = session.gpus().front();
    const Op op = load_op(selftest_toml, MemoryFiles{{{"selftest.cu", std::string{selftest_source}}}}, "selftest.toml");
    const auto begin = std::chrono::steady_clock::now();
    WorkerOptions options = session.worker_options(gpu);
    options.effort = Effort::quick;
    const std::unique_ptr<Bench> bench = make_worker_bench(options);
    console.line(device_line(gpu.ordinal, gpu.identity, session.nvrtc_version()));
    const Instance instance = Instance::make(op, {}, gpu.identity.limits);
    bench->prepare(instance);
    for (const ExpectedEnding& each : expectations) bench->submit({.variant = std::string{each.variant}, .values = {}});
    std::size_t right = 0;
    for (const ExpectedEnding& each : expectations) {
        if (interrupted()) return interrupted();
        const Outcome outcome = bench->next({});
        // A good kernel may be slower than the other good ones.
        const bool expected =
            outcome.ending == each.ending || (each.ending == Ending::timed && outcome.ending == Ending::dropped);
        right += expected;
        console.result(
            fmt::format("{:<5} {:<8} {}{}", expected ? "ok" : "fail", each.variant, info(outcome.ending).words,
                        expected ? "" : fmt::format(", not {}: {}", info(each.ending).words, outcome.reason)));
        if (console.json())
            console.json_line(json_event("selftest", {{"kernel", each.variant},
                                                      {"ok", expected},
                                                      {"outcome", info(outcome.ending).name},
                                                      {"reason", outcome.reason}}));
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    console.result(
        fmt::format("{} of {} kernels ended as they should, in {:.1f} s", right, expectations.size(), seconds));
    return right == expectations.size() ? 0 : exit_code(Error::Kind::check);
}

}  // namespace autotune
