#include <fmt/format.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "autotune/error.h"
#include "cache/store/binaries.h"
#include "device/compiler.h"
#include "device/identity.h"
#include "device/nvrtc.h"
#include "tools/format.h"
#include "tools/interrupt.h"
#include "tools/json_events.h"
#include "tools/session.h"
#include "tools/subcommands.h"
#include "tuner/strategy.h"
#include "tuner/worker/compile_space.h"

namespace autotune {
namespace {

/// Each is held with its source until it is compiled.
constexpr std::size_t most_configs = 20'000;

std::vector<Config> configs_of(const Instance& instance, const Budget& budget) {
    const Space space = Space::make(instance);
    const std::size_t count = std::min(space.size(), budget.trials.value_or(space.size()));
    if (count > most_configs)
        throw usage(fmt::format("{} configs of '{}' are asked for, and build takes at most {} of a problem", count,
                                instance.op().name, most_configs),
                    fmt::format("--budget {} builds the first of them", most_configs));
    std::vector<Config> configs;
    for (std::size_t i = 0; i < count; ++i) configs.push_back(space.config(i));
    return configs;
}

/// What the defaults break, of an op of whose configs none is valid.
std::string why_nothing_is_valid(const Instance& instance) {
    try {
        static_cast<void>(instance.default_config());
    } catch (const Error& error) {
        return error.what();
    }
    return fmt::format("no config of '{}' is valid for {}", instance.op().name, instance.problem().text());
}

void keep(const Instance& instance, const CompiledConfig& compiled, BinaryStore& binaries) {
    const Nvrtc& compiler = nvrtc();
    const std::vector<SourceSpec> sources = instance.sources(compiled.config);
    for (std::size_t i = 0; i < sources.size() && i < compiled.artefacts.size(); ++i)
        binaries.put({.key = binary_key(sources[i], Compiler::fixed_options(), asked_arch(sources[i], instance),
                                        compiler.major, compiler.minor),
                      .artefact = compiled.artefacts[i],
                      .source = sources[i].source,
                      .nvrtc_major = compiler.major,
                      .nvrtc_minor = compiler.minor});
}

}  // namespace

/// Compiles every valid config of each problem, as far as the budget goes, without a GPU, and keeps the binaries beside
/// the database.
int run_build(const Request& request, Console& console) {
    const Session session{request, console};
    nvrtc();  // without a compiler no config has a chance, and none is to blame
    const DeviceLimits limits = session.limits();
    const bool kept = request.db != "none";
    std::optional<BinaryStore> binaries;
    if (kept) binaries.emplace(session.open_store(Store::Mode::write).binaries_folder());
    std::size_t good = 0;
    for (const AskedProblem& problem : session.problems()) {
        const Instance instance = Session::instance(problem, limits);
        const std::vector<Config> configs = configs_of(instance, request.budget);
        if (configs.empty()) {
            console.error(why_nothing_is_valid(instance));
            continue;
        }
        const auto begin = std::chrono::steady_clock::now();
        std::map<Ending, std::size_t> counts;
        std::map<Ending, std::string> examples;
        Progress progress{.op = instance.op().name, .total = configs.size()};
        const auto took = [&] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        };
        std::size_t tried = 0;
        for (const CompiledConfig& each :
             compile_configs(instance, configs, session.worker_options(), [&](std::size_t done) {
                 progress.tried = done;
                 progress.share_done = static_cast<double>(done) / static_cast<double>(configs.size());
                 console.status(progress);
                 return interrupted() == 0 && took() < request.budget.seconds.value_or(took() + 1);
             })) {
            ++tried;
            if (++counts[each.outcome.ending] == 1)
                examples[each.outcome.ending] = fmt::format("{}: {}", each.config.text(), each.outcome.reason);
            if (each.outcome.ok() && binaries) keep(instance, each, *binaries);
        }
        console.end_status();
        good += counts[Ending::timed];
        const std::string left = tried < configs.size() ? fmt::format(", {} not tried", configs.size() - tried) : "";
        console.result(fmt::format("{} {} for sm_{}: {} of {} compile{}, {:.1f} s", instance.op().name,
                                   instance.problem().text(), limits.cc, counts[Ending::timed],
                                   format_count(tried, "config", "configs"), left, took()));
        nlohmann::json outcomes = nlohmann::json::object();
        for (const auto& [ending, count] : counts) {
            if (ending != Ending::timed)
                console.result(fmt::format("  {:>4}  {:<16} first: {}", count, info(ending).words, examples[ending]));
            outcomes[ending == Ending::timed ? "compiled" : std::string{info(ending).name}] = count;
        }
        if (console.json())
            console.json_line(json_event("build", {{"op", instance.op().name},
                                                   {"problem", instance.problem()},
                                                   {"outcomes", outcomes},
                                                   {"seconds", took()}}));
        if (interrupted()) return interrupted();
    }
    if (kept) console.line(fmt::format("binaries are in {}", binaries->folder().string()));
    return good ? 0 : exit_code(Error::Kind::nothing_found);
}

}  // namespace autotune
