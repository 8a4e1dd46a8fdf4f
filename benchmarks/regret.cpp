// What a search leaves on the table, on a GPU: every config of a problem is timed once, then the problem is searched
// several times as a user would, each time by a bench and with a seed of its own, and at last all that was near the
// best is timed again, 1000 samples each, in interleaved rounds. The regret of a search is what its winner takes over
// the fastest of these.
//
//   regret [--device 0] [--trials 40] [--samples 1000] [--seconds 500] [--only gemm,softmax] [--records DIR] [--small]
//
// gemm, attention and softmax are searched with the default strategy and --trials trials; of matmul, the example of
// benchmarks/tune_wall, all 40 configs are tried, so that what is left is what timing gets wrong. --records keeps what
// was timed first as recorded spaces. --small takes problems that an emulated device gets through. A short table comes
// last.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/error.h"
#include "device/identity.h"
#include "tuner/interchange/measured_space.h"
#include "tuner/loader/user_ops.h"
#include "tuner/model/op_set.h"
#include "tuner/replay/recorded_space.h"
#include "tuner/statistics.h"
#include "tuner/tune.h"
#include "tuner/worker/worker_bench.h"

namespace autotune {
namespace {

using Clock = std::chrono::steady_clock;
using Fields = std::vector<std::pair<std::string, Value>>;

struct Options {
    std::string device = "0", only, records, matmul = "benchmarks/tune_wall";
    std::size_t trials = 40, samples = 1000, most_configs = 1'000'000;
    double seconds = 500;
    bool small = false;
};

/// A problem, and how often it is searched. `share`: of the time that all may take.
struct Case {
    std::string name, op, variant;  ///< variant: the only one that is tried; empty: all
    Fields problem, small;
    std::size_t searches;
    double share;
};

std::vector<Case> cases() {
    const std::string bf16 = "bf16", f32 = "f32", f16 = "f16";
    return {{.name = "gemm",
             .op = "gemm",
             .problem = {{"m", 4096}, {"n", 4096}, {"k", 4096}, {"dtype", bf16}},
             .small = {{"m", 96}, {"n", 64}, {"k", 64}, {"dtype", f16}},
             .searches = 5,
             .share = 0.3},
            {.name = "attention",
             .op = "attention",
             .problem = {{"batch", 4},
                         {"q_heads", 16},
                         {"kv_heads", 16},
                         {"seq_q", 4096},
                         {"seq_k", 4096},
                         {"head_dim", 128},
                         {"dtype", bf16}},
             .small = {{"batch", 1},
                       {"q_heads", 1},
                       {"kv_heads", 1},
                       {"seq_q", 64},
                       {"seq_k", 64},
                       {"head_dim", 64},
                       {"dtype", f16}},
             .searches = 5,
             .share = 0.2},
            {.name = "softmax",
             .op = "softmax",
             .problem = {{"rows", 32768}, {"cols", 4096}, {"dtype", bf16}},
             .small = {{"rows", 64}, {"cols", 256}, {"dtype", bf16}},
             .searches = 20,
             .share = 0.25},
            {.name = "matmul",
             .op = "gemm",
             .variant = "example",
             .problem = {{"m", 2048}, {"n", 2048}, {"k", 2048}, {"dtype", f32}},
             .small = {{"m", 128}, {"n", 256}, {"k", 64}, {"dtype", f32}},
             .searches = 20,
             .share = 0.25}};
}

/// What each source was compiled to, by its hash and the architecture: later benches compile nothing again.
using Binaries = std::map<std::string, Artefact>;

/// What timing the best again may take of a problem's time.
constexpr double referee_s = 20;

class Regret {
public:
    explicit Regret(const Options& options) : options_{options} { add_op_folder(ops_, options.matmul); }

    int run() {
        const std::vector<Case> all = cases();
        for (const Case& one : all) {
            until_s_ += options_.seconds * one.share;  // what one leaves, those after it have
            if (options_.only.empty() || ("," + options_.only + ",").find("," + one.name + ",") != std::string::npos)
                measure(one);
        }
        if (table_.empty())
            throw Error{Error::Kind::usage, fmt::format("--only names none of the problems: '{}'", options_.only)};
        fmt::print("\n{}, {:.0f} s\n{:<10} {:>14} {:>9} {:>9} {:>7} {:>7} {:>7} {:>13}\n", device_, elapsed_s(),
                   "problem", "configs timed", "best us", "searches", "median", "mean", "worst", "within 1 %");
        for (const std::string& line : table_) fmt::print("{}\n", line);
        return 0;
    }

private:
    void measure(const Case& one) {
        Op op = ops_.find(one.op);
        std::erase_if(op.variants, [&](const Variant& variant) {
            return one.variant.empty() ? variant.name == "example" : variant.name != one.variant;
        });
        fmt::print("{:6.1f} s  {}\n", elapsed_s(), one.name);
        binaries_.clear();
        std::vector<std::pair<double, Config>> near;  // what the referee is given
        std::size_t timed = 0;
        std::optional<Instance> instance;
        std::string configs;
        {
            const auto bench = bench_of(Effort::full, true);
            device_ = bench->device().name;
            instance = Instance::make(op, options_.small ? one.small : one.problem, bench->device().limits);
            const Tuning all = time_all(*bench, one, *instance, near, timed);
            configs = fmt::format("{} of {}", timed, all.space_size);
        }
        std::vector<Config> winners;
        for (std::uint64_t seed = 1; seed <= one.searches; ++seed) {
            if (elapsed_s() > until_s_ - referee_s) {
                fmt::print("{:6.1f} s    no time for the searches from seed {} on\n", elapsed_s(), seed);
                break;
            }
            const auto bench = bench_of(Effort::normal, false);
            const Tuning tuning =
                tune(*bench, *instance,
                     {.seed = seed, .budget = {.trials = std::min(options_.trials, options_.most_configs)}});
            if (!tuning.best) {
                fmt::print("{:6.1f} s    seed {} found nothing valid\n", elapsed_s(), seed);
                continue;
            }
            winners.push_back(tuning.best->config);
            for (const Ranked& finalist : tuning.ranking)
                if (finalist.config != tuning.default_config || finalist.same_as_best)
                    near.emplace_back(finalist.time_us, finalist.config);
            fmt::print("{:6.1f} s    seed {:2}: {:9.2f} us in {:.2f} s, {} trials{}  {}\n", elapsed_s(), seed,
                       tuning.best->time_us, tuning.elapsed_s, tuning.tried,
                       tuning.best->outcome.tainted ? ", tainted" : "", tuning.best->config.text());
        }
        table_.push_back(row(one, configs, winners, refereed(*instance, near, winners)));
        fmt::print("{}\n", table_.back());
        std::fflush(stdout);
    }

    /// Every config once, in random order, for as long as there is time.
    Tuning time_all(Bench& bench, const Case& one, const Instance& instance,
                    std::vector<std::pair<double, Config>>& near, std::size_t& timed) {
        std::vector<Trial> trials;
        TuneEvents events;
        events.trial = [&](const Trial& trial) {
            trials.push_back(trial);
            if (trials.size() % 100 == 0) fmt::print("{:6.1f} s    {} tried\n", elapsed_s(), trials.size());
        };
        TuneOptions all{.strategy = "random", .effort = Effort::full, .verify_winner = false};
        all.budget = {.seconds = std::max(5.0, (until_s_ - elapsed_s()) * 0.5), .trials = options_.most_configs};
        Tuning tuning = tune(bench, instance, all, events);
        for (const Trial& trial : trials) {
            timed += trial.outcome.time_us > 0;
            if (trial.outcome.ok()) near.emplace_back(trial.outcome.time_us, trial.config);
            keep_binaries(bench, instance, trial.config);
        }
        constexpr std::size_t most = 10;
        std::ranges::sort(near, {}, [](const auto& entry) { return entry.first; });
        near.resize(std::min(most, near.size()));
        fmt::print("{:6.1f} s    {} configs tried, {} timed{}\n", elapsed_s(), trials.size(), timed,
                   near.empty() ? std::string{} : fmt::format(", the fastest {:.2f} us", near.front().first));
        if (!options_.records.empty()) keep_record(one, trials);
        return tuning;
    }

    std::unique_ptr<WorkerBench> bench_of(Effort effort, bool keep_all, double round_us = 0) {
        const WorkerOptions options{
            .device = options_.device, .effort = effort, .keep_artefacts = keep_all, .round_us = round_us};
        auto bench = make_worker_bench(options);
        bench->use_ready([this](const SourceSpec& source, const std::string& arch) -> std::optional<Artefact> {
            const auto found = binaries_.find(source.hash() + ' ' + arch);
            return found == binaries_.end() ? std::nullopt : std::optional{found->second};
        });
        return bench;
    }

    /// Those that did not compile are compiled again where they are asked for.
    void keep_binaries(Bench& bench, const Instance& instance, const Config& config) {
        const std::vector<SourceSpec> sources = instance.sources(config);
        std::vector<Artefact> artefacts = bench.artefacts(config);
        for (std::size_t i = 0; i < std::min(artefacts.size(), sources.size()); ++i)
            binaries_.try_emplace(sources[i].hash() + ' ' + arch_name(instance.limits().cc), std::move(artefacts[i]));
    }

    /// The median of so many samples of each config, in interleaved rounds, fastest first.
    std::vector<std::pair<double, Config>> refereed(const Instance& instance,
                                                    std::vector<std::pair<double, Config>> near,
                                                    const std::vector<Config>& winners) {
        constexpr std::size_t most = 24;
        constexpr double sample_us = 300;
        if (winners.empty() || near.empty()) return {};
        std::ranges::sort(near, {}, [](const auto& entry) { return entry.first; });
        std::vector<Config> configs;
        const auto add = [&](const Config& config) {
            if (std::ranges::find(configs, config) == configs.end()) configs.push_back(config);
        };
        for (const Config& winner : winners) add(winner);
        for (const auto& [time_us, config] : near)
            if (configs.size() < most) add(config);
        configs.push_back(winners.front());  // a second time: what the referee itself cannot tell
        const auto bench = bench_of(Effort::full, true, sample_us);
        bench->prepare(instance);
        std::vector<std::vector<double>> taken(configs.size());
        bool tainted = false;
        const double begun_s = elapsed_s();
        for (std::size_t least = 0; least < options_.samples && elapsed_s() - begun_s < referee_s;) {
            const std::vector<Outcome> outcomes = bench->rounds(configs, static_cast<int>(options_.samples - least));
            const std::size_t before = std::exchange(least, options_.samples);
            for (std::size_t i = 0; i < configs.size(); ++i) {
                if (!outcomes[i].ok()) continue;
                taken[i].insert(taken[i].end(), outcomes[i].samples_us.begin(), outcomes[i].samples_us.end());
                tainted = tainted || outcomes[i].tainted;
                least = std::min(least, taken[i].size());
            }
            if (least <= before) break;
        }
        const std::vector<double> again = std::move(taken.back());
        configs.pop_back();
        std::vector<std::pair<double, Config>> medians;
        for (std::size_t i = 0; i < configs.size(); ++i)
            if (!taken[i].empty()) medians.emplace_back(median(taken[i]), configs[i]);
        std::ranges::sort(medians, {}, [](const auto& entry) { return entry.first; });
        fmt::print("{:6.1f} s    timed again, {} samples each{}; ", elapsed_s(), taken.front().size(),
                   tainted ? ", disturbed" : "");
        if (!again.empty() && !taken.front().empty())
            fmt::print("one of them twice: {:+.2f} %", 100 * (median(again) / median(taken.front()) - 1));
        fmt::print("\n");
        for (const auto& [time_us, config] : medians)
            fmt::print("{:12.2f} us  {}{}\n", time_us, config.text(),
                       std::ranges::find(winners, config) == winners.end() ? "" : "  (won)");
        return medians;
    }

    static std::string row(const Case& one, const std::string& configs, const std::vector<Config>& winners,
                           const std::vector<std::pair<double, Config>>& medians) {
        std::vector<double> regrets;
        for (const Config& winner : winners)
            for (const auto& [time_us, config] : medians)
                if (config == winner) regrets.push_back(100 * (time_us / medians.front().first - 1));
        if (regrets.empty()) return fmt::format("{:<10} {:>14} nothing to compare", one.name, configs);
        double sum = 0;
        std::string each;
        for (const double regret : regrets) {
            sum += regret;
            each += fmt::format(" {:.2f}", regret);
        }
        const auto within = std::ranges::count_if(regrets, [](double regret) { return regret <= 1; });
        return fmt::format("{:<10} {:>14} {:>9.2f} {:>9} {:>6.2f}% {:>6.2f}% {:>6.2f}% {:>6} of {:<3} {}", one.name,
                           configs, medians.front().first, winners.size(), median(regrets),
                           sum / static_cast<double>(regrets.size()), std::ranges::max(regrets), within, regrets.size(),
                           each);
    }

    /// As a space that replays search: the variant is one more parameter, and what it lacks is 'none'. A config that
    /// was dropped early has what it takes at least as its time.
    void keep_record(const Case& one, const std::vector<Trial>& trials) {
        Measurements measured{.kernel = one.name, .device = device_};
        std::ranges::replace(measured.device, ' ', '_');
        for (const Trial& trial : trials) {
            MeasuredConfig& config = measured.configs.emplace_back(measured_config(trial.config, trial.outcome, 0));
            if (trial.outcome.ending == Ending::dropped) config.time_ms = trial.outcome.time_us / 1e3;
        }
        even_out(measured);
        const Op op = op_of_measurements(measured);
        const Space space = Space::make(Instance::make(op, {}, DeviceLimits{}));
        const std::string text = recorded_text(space, measured_space(space, measured, one.name), measured.device);
        RecordedSpace::parse(text, one.name);  // what is kept can be searched again
        std::filesystem::create_directories(options_.records);
        const std::filesystem::path file =
            std::filesystem::path{options_.records} / (one.name + "__" + measured.device + ".csv");
        std::ofstream out{file};
        out << text;
        if (!out.flush()) throw Error{Error::Kind::store, fmt::format("'{}' could not be written", file.string())};
    }

    double elapsed_s() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

    const Options& options_;
    const Clock::time_point start_ = Clock::now();
    OpSet ops_;
    double until_s_ = 0;  ///< when the problem at hand should be done
    std::string device_;
    Binaries binaries_;
    std::vector<std::string> table_;
};

}  // namespace
}  // namespace autotune

int main(int count, char** arguments) {
    autotune::Options options;
    CLI::App app{"what searches leave on the table"};
    app.add_option("--device", options.device, "an ordinal, or emulated:PART");
    app.add_option("--only", options.only, "problems, with commas between: gemm, attention, softmax, matmul");
    app.add_option("--trials", options.trials, "of a search");
    app.add_option("--samples", options.samples, "of each config that is timed again");
    app.add_option("--seconds", options.seconds, "that all of it may take");
    app.add_option("--most-configs", options.most_configs, "that are timed first");
    app.add_option("--records", options.records, "a folder for what was timed first, as recorded spaces");
    app.add_option("--matmul", options.matmul, "the folder of the example");
    app.add_flag("--small", options.small, "small problems, for an emulated device");
    CLI11_PARSE(app, count, arguments);
    std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what is known stands in a log though the rest does not come
    try {
        return autotune::Regret{options}.run();
    } catch (const autotune::Error& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return autotune::exit_code(e.kind());
    }
}
