// tune_wall [FOLDER] [QUICK]: wall time of a whole verified tune, from the program's start to the checked winner:
// matmul of 4096 x 4096 floats, 40 configs, every result checked. FOLDER: benchmarks/tune_wall.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "autotune/error.h"
#include "tuner/loader/user_ops.h"
#include "tuner/model/op_set.h"
#include "tuner/tune.h"
#include "tuner/worker/worker_bench.h"

namespace autotune {
namespace {

using Clock = std::chrono::steady_clock;

int run(const std::string& folder, Effort effort) {
    const auto start = Clock::now();
    const auto elapsed_s = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    WorkerOptions options;
    options.effort = effort;
    const auto bench = make_worker_bench(options);
    OpSet ops;
    add_op_folder(ops, folder);
    Op op = ops.find("gemm");
    std::erase_if(op.variants, [](const Variant& variant) { return variant.name != "example"; });
    const DeviceIdentity device = bench->device();
    fmt::print("{:6.3f} s  device known: {}\n", elapsed_s(), device.name);
    const std::int64_t size = 4096;
    const Instance instance =
        Instance::make(op, {{"m", size}, {"n", size}, {"k", size}, {"dtype", std::string{"f32"}}}, device.limits);

    TuneOptions search;
    search.strategy = "exhaustive";
    search.effort = effort;
    TuneEvents events;
    double last_trial_s = 0;
    events.prepared = [&](const Preparation& preparation, const Space& space) {
        fmt::print("{:6.3f} s  prepared: {} configs, reference: {}\n", elapsed_s(), space.size(),
                   preparation.reference);
    };
    events.trial = [&](const Trial& trial) {
        last_trial_s = elapsed_s();
        fmt::print("{:6.3f} s  {:9.1f} us  {:12} {} (compile {:.0f} ms, check {:.1f} ms, time {:.1f} ms) {}\n",
                   last_trial_s, trial.outcome.time_us, info(trial.outcome.ending).words, trial.config.text(),
                   trial.outcome.compile_ms, trial.outcome.check_ms, trial.outcome.time_ms, trial.outcome.reason);
    };
    const Tuning tuning = tune(*bench, instance, search, events);
    fmt::print("{:6.3f} s  last trial\n{:6.3f} s  verified: {} problems, {} seeds, largest error {:.2f} of the bound\n",
               last_trial_s, elapsed_s(), tuning.verification.problems, tuning.verification.seeds,
               tuning.verification.largest_error);
    if (!tuning.best) return 2;
    for (const Ranked& ranked : tuning.ranking)
        fmt::print("  {:9.2f} us [{:.2f}, {:.2f}]{} {}\n", ranked.time_us, ranked.low_us, ranked.high_us,
                   ranked.outcome.tainted ? " tainted" : "", ranked.config.text());
    fmt::print(
        "compile {:.2f} s over {} workers, check {:.2f} s, time {:.2f} s, GPU idle {:.0f} %, workers replaced {}\n",
        tuning.use.compile_s, tuning.use.compile_workers, tuning.use.check_s, tuning.use.time_s,
        100 * tuning.use.gpu_idle_share, tuning.use.workers_replaced);
    const double whole_s = elapsed_s();
    fmt::print("stages, which overlap where processes do:\n");
    for (const Stage& stage : tuning.use.stages)
        fmt::print("{:7.3f} to {:6.3f} s  {:4.0f} ms  {}\n", stage.begin_s, stage.end_s,
                   1e3 * (stage.end_s - stage.begin_s), stage.name);
    fmt::print("whole verified tune: {:.2f} s\n", whole_s);
    return tuning.verification.failure ? 4 : 0;
}

}  // namespace
}  // namespace autotune

int main(int argc, char** argv) {
    try {
        return autotune::run(argc > 1 ? argv[1] : "benchmarks/tune_wall",
                             argc > 2 ? autotune::Effort::quick : autotune::Effort::normal);
    } catch (const autotune::Error& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return autotune::exit_code(e.kind());
    }
}
