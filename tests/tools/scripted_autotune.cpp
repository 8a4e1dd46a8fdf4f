// `autotune tune` on a made-up GPU whose kernels take the time that a formula says: for tests of resuming and killing.
// usage: scripted_autotune MILLISECONDS_A_TRIAL tune ...
#include <chrono>
#include <cstdlib>
#include <thread>

#include "autotune/error.h"
#include "tests/support/made_up_op.h"
#include "tests/support/scripted_bench.h"
#include "tools/interrupt.h"
#include "tools/startup.h"
#include "tools/tune.h"

using namespace autotune;

namespace {

Outcome answer(const Config& config, std::chrono::milliseconds pause) {
    std::this_thread::sleep_for(pause);
    const std::size_t seed = std::hash<std::string>{}(config.text());
    if (seed % 7 == 0) return {.ending = Ending::wrong_result, .reason = "made up"};
    const double time_us = 100 + static_cast<double>(seed % 1000) / 10;
    return {.ending = Ending::timed, .samples_us = {time_us, time_us, time_us}, .time_us = time_us};
}

}  // namespace

int main(int count, char** arguments) {
    const std::chrono::milliseconds pause{std::strtol(arguments[1], nullptr, 10)};
    prepare_process();
    watch_interrupts();
    try {
        const Request request = *parse_request(count - 1, arguments + 1).request;
        Console console{request.console};
        const BenchSource source{
            .gpus =
                [](const Session&) {
                    DeviceIdentity device{.fp = std::string(64, 'a'), .name = "made up", .limits = made_up_limits()};
                    return std::vector<PresentGpu>{{.ordinal = 0, .identity = device}};
                },
            .bench = [&](const Session&, const PresentGpu&) -> std::unique_ptr<Bench> {
                return std::make_unique<ScriptedBench>([=](const Config& config) { return answer(config, pause); });
            }};
        return tune_with(request, console, source);
    } catch (const Error& e) {
        Console{{.progress = ProgressMode::none}}.error(e.what(), e.help());
        return exit_code(e.kind());
    }
}
