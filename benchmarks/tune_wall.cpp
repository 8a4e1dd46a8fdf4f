// tune_wall [FOLDER [quick|referee]]: wall time of a whole verified tune, from the program's start to the checked
// winner: matmul of 4096 x 4096 floats, 40 configs, every result checked. FOLDER: benchmarks/tune_wall. "referee" then
// takes 1000 samples of the ten fastest and 50 of the rest, and says how far the winner is from the fastest of these.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autotune/error.h"
#include "tuner/loader/user_ops.h"
#include "tuner/model/op_set.h"
#include "tuner/statistics.h"
#include "tuner/tune.h"
#include "tuner/worker/worker_bench.h"

namespace autotune {
namespace {

using Clock = std::chrono::steady_clock;

/// The median of `samples` launches of each config, interleaved; configs that fail have none.
std::vector<std::pair<double, Config>> measured_us(Bench& bench, std::span<const Config> configs, std::size_t samples) {
    std::vector<std::vector<double>> taken(configs.size());
    while (std::ranges::any_of(taken, [&](const auto& of) { return of.size() < samples; })) {
        const std::size_t before = taken.front().size();
        const std::vector<Outcome> outcomes = bench.rounds(configs, static_cast<int>(samples - before));
        for (std::size_t i = 0; i < configs.size(); ++i)
            taken[i].insert(taken[i].end(), outcomes[i].samples_us.begin(), outcomes[i].samples_us.end());
        if (taken.front().size() == before) break;
    }
    std::vector<std::pair<double, Config>> medians;
    for (std::size_t i = 0; i < configs.size(); ++i)
        if (!taken[i].empty()) medians.emplace_back(median_interval(taken[i]).median, configs[i]);
    std::ranges::sort(medians, {}, [](const auto& entry) { return entry.first; });
    return medians;
}

/// Times all that ran again, the ten fastest at length, and compares the winner with the fastest.
void referee(Bench& bench, std::vector<std::pair<double, Config>> ran, const Config& winner) {
    std::ranges::sort(ran, {}, [](const auto& entry) { return entry.first; });
    std::vector<Config> fast, slow;
    for (const auto& [time_us, config] : ran) (fast.size() < 10 ? fast : slow).push_back(config);
    const auto long_us = measured_us(bench, fast, 1000);
    double best_us = long_us.front().first, winner_us = 0;
    for (const auto& [time_us, config] : long_us)
        if (config == winner) winner_us = time_us;
    for (std::size_t begin = 0; begin < slow.size(); begin += 10) {
        const auto some = std::span{slow}.subspan(begin, std::min<std::size_t>(10, slow.size() - begin));
        for (const auto& [time_us, config] : measured_us(bench, some, 50)) best_us = std::min(best_us, time_us);
    }
    fmt::print("referee: the winner takes {:.2f} us, the fastest of {} configs {:.2f} us: {:.2f} % over\n", winner_us,
               ran.size(), best_us, 100 * (winner_us / best_us - 1));
}

int run(const std::string& folder, Effort effort, bool with_referee) {
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
    std::vector<std::pair<double, Config>> ran;
    events.trial = [&](const Trial& trial) {
        if (trial.outcome.time_us > 0) ran.emplace_back(trial.outcome.time_us, trial.config);
        last_trial_s = elapsed_s();
        fmt::print("{:6.3f} s  {:9.1f} us  {:12} {} (compile {:.0f} ms, check {:.1f} ms, time {:.1f} ms) {}\n",
                   last_trial_s, trial.outcome.time_us, info(trial.outcome.ending).words, trial.config.text(),
                   trial.outcome.compile_ms, trial.outcome.check_ms, trial.outcome.time_ms, trial.outcome.reason);
    };
    const Tuning tuning = tune(*bench, instance, search, events);
    fmt::print(
        "{:6.3f} s  last trial\n{:6.3f} s  verified: {} sets of inputs of {} problems, largest error {:.2f} of the "
        "bound\n",
        last_trial_s, elapsed_s(), tuning.verification.inputs, tuning.verification.problems,
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
    if (with_referee) referee(*bench, std::move(ran), tuning.best->config);
    return tuning.verification.failure ? 4 : 0;
}

}  // namespace
}  // namespace autotune

int main(int argc, char** argv) {
    try {
        const std::string_view how = argc > 2 ? argv[2] : "";
        return autotune::run(argc > 1 ? argv[1] : "benchmarks/tune_wall",
                             how == "quick" ? autotune::Effort::quick : autotune::Effort::normal, how == "referee");
    } catch (const autotune::Error& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return autotune::exit_code(e.kind());
    }
}
