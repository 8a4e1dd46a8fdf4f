#include "tools/search.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>

#include "cache/store/binaries.h"
#include "device/compiler.h"
#include "device/emulator/parts.h"
#include "device/identity.h"
#include "device/nvrtc.h"
#include "tools/version.h"

namespace autotune {
namespace {

SearchEffort effort_of(Effort effort) {
    switch (effort) {
        case Effort::quick:
            return SearchEffort::quick;
        case Effort::normal:
            return SearchEffort::normal;
        case Effort::full:
            return SearchEffort::full;
    }
    return SearchEffort::normal;
}

Finalist finalist_of(const Ranked& ranked, const Tuning& tuning) {
    const bool winner = tuning.best && ranked.config == tuning.best->config;
    const bool rechecked = winner && tuning.verification.inputs > 0 && !tuning.verification.failure;
    return {.config = ranked.config,
            .time_us = ranked.time_us,
            .low_us = ranked.low_us,
            .high_us = ranked.high_us,
            .samples = static_cast<int>(ranked.outcome.samples_us.size()),
            .max_error = std::max(ranked.outcome.max_error, winner ? tuning.verification.largest_error : 0.0),
            .tainted = ranked.outcome.tainted,
            .verified = rechecked ? Verified::verified : Verified::checked};
}

/// As many as are stored. A model often puts many configs level: the default is kept among them then, since a
/// dispatcher prefers it to what is no better.
void keep_default_among(std::vector<Finalist>& finalists, const Config& first) {
    constexpr std::size_t stored = 8;
    while (finalists.size() > stored) {
        const auto last = std::find_if(finalists.rbegin(), finalists.rend(),
                                       [&](const Finalist& finalist) { return finalist.config != first; });
        finalists.erase(std::next(last).base());
    }
}

}  // namespace

Environment environment_here(const DeviceIdentity* device) {
    Environment environment;
    if (const Nvrtc* nvrtc = nvrtc_if_present()) {
        environment.nvrtc_major = nvrtc->major;
        environment.nvrtc_minor = nvrtc->minor;
    }
    if (device && device->emulated) environment.emulator = emulator::model_version;
    if (device) {
        environment.driver = device->driver;
        environment.runtime = device->driver_version;
    }
    utsname system{};
    if (uname(&system) == 0) environment.os = fmt::format("{} {}", system.sysname, system.machine);
    environment.tool_version = version();
    return environment;
}

std::string asked_arch(const SourceSpec& source, const Instance& instance) {
    return source.arch.empty() ? arch_name(instance.limits().cc) : source.arch;
}

std::string budget_text(const Budget& budget) {
    if (budget.seconds && budget.trials) return fmt::format("{:g}s,{}", *budget.seconds, *budget.trials);
    return budget.seconds ? fmt::format("{:g}s", *budget.seconds) : std::to_string(budget.trials.value_or(0));
}

RunStart start_of(const Instance& instance, const DeviceIdentity& device, const TuneOptions& options) {
    const bool predicted_first = options.prior == Prior::model;
    return {.device = device,
            .environment = environment_here(&device),
            .templates = templates_of(instance.op()),
            .problem = problem_of(instance),
            .info = {.strategy = predicted_first ? "model, then " + options.strategy : options.strategy,
                     .seed = options.seed,
                     .budget = budget_text(options.budget),
                     .effort = effort_of(options.effort)}};
}

RunEnd end_of(const Tuning& tuning, const DeviceIdentity& device) {
    RunEnd end{.evaluated = tuning.tried + tuning.resumed,
               .space_size = tuning.space_size,
               .method = tuning.preparation.method,
               .reference = tuning.preparation.reference};
    for (const Ranked& ranked : tuning.ranking) end.finalists.push_back(finalist_of(ranked, tuning));
    if (device.emulated) keep_default_among(end.finalists, tuning.default_config);
    // Times of two versions of the model are not comparable, so their predictions stand side by side.
    if (device.emulated) end.model_version = std::to_string(emulator::model_version);
    if (tuning.default_result) end.default_us = tuning.default_result->time_us;
    return end;
}

bool keep_binaries(const Store& store, Bench& bench, const Instance& instance, const Config& config) {
    const std::vector<SourceSpec> sources = instance.sources(config);
    const std::vector<Artefact> artefacts = bench.artefacts(config);
    const Environment here = environment_here(nullptr);
    BinaryStore binaries{store.binaries_folder()};
    bool kept = true;
    for (std::size_t i = 0; i < artefacts.size() && i < sources.size(); ++i)
        kept &= binaries.put({.key = binary_key(sources[i], Compiler::fixed_options(), asked_arch(sources[i], instance),
                                                here.nvrtc_major, here.nvrtc_minor),
                              .artefact = artefacts[i],
                              .source = sources[i].source,
                              .nvrtc_major = here.nvrtc_major,
                              .nvrtc_minor = here.nvrtc_minor});
    return kept || store.path().empty();
}

}  // namespace autotune
