// Subcommands of `autotune` on a made-up GPU whose kernels take the time that a formula says: for tests of the command
// line where there is no GPU. What a bench is asked to prepare is said on stderr.
// usage: scripted_autotune MILLISECONDS_A_TRIAL tune ...
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "autotune/error.h"
#include "device/identity.h"
#include "tests/support/made_up_op.h"
#include "tests/support/scripted_bench.h"
#include "tools/bench_source.h"
#include "tools/interrupt.h"
#include "tools/startup.h"
#include "tools/subcommands.h"

using namespace autotune;

namespace {

/// By the text of a config. A block, which the default is, and two passes, which any alignment allows, are slower: a
/// search finds something better than its default, and nothing that serves all problems.
Outcome answer(const Config& config, std::chrono::milliseconds pause) {
    std::this_thread::sleep_for(pause);
    const std::size_t seed = std::hash<std::string>{}(config.text());
    if (seed % 7 == 0) return {.ending = Ending::wrong_result, .reason = "made up"};
    const double least_us = config.variant == "block" ? 150 : config.variant == "two_pass" ? 120 : 100;
    const double time_us = least_us + static_cast<double>(seed % 1000) / 10;
    return {.ending = Ending::timed, .samples_us = {time_us, time_us, time_us}, .time_us = time_us};
}

/// Says what it is asked for. SCRIPTED_FAILS names a config that a re-check finds wrong.
class SayingBench final : public ScriptedBench {
public:
    using ScriptedBench::ScriptedBench;
    Preparation prepare(const Instance& instance) override {
        std::fprintf(stderr, "prepared %s\n", instance.key_json().c_str());
        instance_ = instance;
        return ScriptedBench::prepare(instance);
    }
    void use_ready(Ready ready) override { ready_ = std::move(ready); }
    void submit(const Config& config) override {
        for (const SourceSpec& source : instance_->sources(config))
            if (ready_ && ready_(source, arch_name(instance_->limits().cc))) std::fprintf(stderr, "ready made\n");
        ScriptedBench::submit(config);
    }

private:
    std::optional<Instance> instance_;
    Ready ready_;
};

/// One launch of a made-up kernel; variant two_pass cannot be emulated.
Outcome counters(const Config& config) {
    if (config.variant == "two_pass") return {.ending = Ending::not_emulated, .reason = "made up"};
    emulator::CountedLaunch launch{.entry = "made_up",
                                   .grid = {8},
                                   .block = {128},
                                   .resources = {.name = "made_up", .registers = 32},
                                   .blocks = 8};
    launch.interior.blocks = 3;
    launch.edge.blocks = 1;
    for (emulator::Counters* counters : {&launch.interior, &launch.edge}) {
        counters->instructions = 64 * counters->blocks;
        counters->classes[static_cast<std::size_t>(emulator::OpClass::load)] = {16 * counters->blocks,
                                                                                512 * counters->blocks};
        counters->global_load_requests = 16 * counters->blocks;
        counters->global_load_sectors = 128 * counters->blocks;
        counters->global_load_bytes = 2048 * counters->blocks;
    }
    return {.ending = Ending::timed, .predicted = true, .counters = {launch}};
}

std::unique_ptr<Bench> bench(std::chrono::milliseconds pause) {
    auto made = std::make_unique<SayingBench>([=](const Config& config) { return answer(config, pause); });
    made->counts = counters;
    made->explanation = [](const Config&, const Outcome&) { return std::string{"emulated: made up, too"}; };
    made->prediction = [](const Config& config) -> std::optional<double> {
        const std::size_t seed = std::hash<std::string>{}(config.text());
        if (seed % 5 == 0) return std::nullopt;
        return 50 + static_cast<double>(seed % 1000);
    };
    if (const char* bad = std::getenv("SCRIPTED_FAILS"))
        made->verification = [bad](const Config& config) -> Verification {
            if (config.text() != bad) return {.problems = 1, .inputs = 1};
            return {.failure = Outcome{.ending = Ending::wrong_result, .reason = "made up"}, .failed_on = "rows=1"};
        };
    return made;
}

int run(const Request& request, std::chrono::milliseconds pause) {
    Console console{request.console};
    const BenchSource source{.gpus =
                                 [](const Session&) {
                                     DeviceIdentity device{.name = "made up", .limits = made_up_limits()};
                                     device.fp = fingerprint(device);
                                     return std::vector<PresentGpu>{{.ordinal = 0, .identity = device}};
                                 },
                             .bench = [&](const Session&, const PresentGpu&) { return bench(pause); }};
    if (request.subcommand == "tune") return tune_with(request, console, source);
    if (request.subcommand == "bench") return bench_with(request, console, source);
    if (request.subcommand == "verify") return verify_with(request, console, source);
    if (request.subcommand == "why") return why_with(request, console, source);
    return subcommand_named(request.subcommand)->run(request, console);
}

}  // namespace

int main(int count, char** arguments) {
    const std::chrono::milliseconds pause{std::strtol(arguments[1], nullptr, 10)};
    prepare_process();
    watch_interrupts();
    try {
        return run(*parse_request(count - 1, arguments + 1).request, pause);
    } catch (const Error& e) {
        Console{{.progress = ProgressMode::none}}.error(e.what(), e.help());
        return exit_code(e.kind());
    }
}
