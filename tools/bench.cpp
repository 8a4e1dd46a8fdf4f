#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "tools/format.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tools/tune_report.h"
#include "tuner/statistics.h"

namespace autotune {
namespace {

int rounds_for(Effort effort) { return effort == Effort::quick ? 15 : effort == Effort::normal ? 41 : 201; }

/// What is timed beside the default: the config that was named, else what the database holds for this problem.
std::vector<Config> configs_of(const Request& request, const Session& session, const Instance& instance,
                               const PresentGpu& gpu) {
    std::vector<Config> configs{instance.default_config()};
    const auto add = [&](const Config& config) {
        if (std::ranges::find(configs, config) == configs.end()) configs.push_back(config);
    };
    if (!request.config.empty()) {
        const Config config = complete_config(instance, config_from_text(request.config));
        add(config);
        return configs;
    }
    const Store store = session.open_store(Store::Mode::read);
    for (const Record& record :
         store.records({.op = instance.op().name, .device_fp = gpu.identity.fp, .problem_key = instance.key()},
                       session.today({&instance.op()})))
        if (!instance.objection(record.config)) add(record.config);
    return configs;
}

void print(const Instance& instance, const std::vector<Config>& configs, const std::vector<Outcome>& outcomes,
           const Preparation& preparation, Console& console) {
    for (std::size_t i = 0; i < configs.size(); ++i) {
        const Outcome& o = outcomes[i];
        if (!o.ok() || o.samples_us.empty()) {
            console.result(fmt::format("  {:<18} {}: {}", info(o.ending).words, configs[i].text(), o.reason));
            continue;
        }
        const Interval interval = median_interval(o.samples_us);
        const Interval ratio = paired_ratio(o.samples_us, outcomes.front().samples_us);
        const std::string words = i == 0 ? "default"
                                  : ratio.high < 1 - same_within
                                      ? fmt::format("{} faster", format_speedup(1 / ratio.median))
                                  : ratio.low > 1 + same_within ? fmt::format("{} slower", format_speedup(ratio.median))
                                  : ratio.low > 1 - same_within && ratio.high < 1 + same_within ? "same"
                                                                                                : "uncertain";
        console.result(fmt::format("  {} [{}, {}]  {:<40} {:<14} {}", pad_left(format_time(interval.median), 10),
                                   format_time(interval.low), format_time(interval.high),
                                   throughput(instance, interval.median, preparation.copy_bandwidth_gbs), words,
                                   configs[i].text()));
        if (console.json())
            console.json_line(json_event("bench", {{"op", instance.op().name},
                                                   {"problem", instance.problem()},
                                                   {"config", configs[i]},
                                                   {"time_us", interval.median},
                                                   {"low_us", interval.low},
                                                   {"high_us", interval.high},
                                                   {"over_default", ratio.median},
                                                   {"verdict", words},
                                                   {"samples_us", o.samples_us}}));
    }
}

}  // namespace

int run_bench(const Request& request, Console& console) {
    const Session session{request, console};
    const PresentGpu gpu = session.gpus().front();
    const std::unique_ptr<Bench> bench = make_worker_bench(session.worker_options(gpu.ordinal));
    console.line(device_line(gpu.ordinal, gpu.identity, session.nvrtc_version()));
    bool failed = false;
    for (const AskedProblem& problem : session.problems()) {
        const Instance instance = Session::instance(problem, gpu.identity.limits);
        const std::vector<Config> configs = configs_of(request, session, instance, gpu);
        const Preparation preparation = bench->prepare(instance);
        console.result(fmt::format("{} {}", instance.op().name, instance.problem().text()));
        // Each is checked before it is timed.
        std::vector<Config> sound;
        std::vector<Outcome> outcomes;
        for (const Config& config : configs) bench->submit(config);
        for (const Config& config : configs) {
            const Outcome outcome = bench->next({});
            if (outcome.ok())
                sound.push_back(config);
            else {
                failed = true;
                print(instance, {config}, {outcome}, preparation, console);
            }
        }
        if (sound.empty()) continue;
        outcomes = bench->rounds(sound, rounds_for(request.effort));
        print(instance, sound, outcomes, preparation, console);
    }
    return failed ? exit_code(Error::Kind::nothing_found) : 0;
}

}  // namespace autotune
