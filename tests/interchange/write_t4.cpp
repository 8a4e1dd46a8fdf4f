// For the test that has another tuner judge what we write and write what we read:
//
//     write_t4            a T4 file with an ending of each kind
//     write_t4 FILE       results of another tuner as T4
//     write_t4 --cache    a Kernel Tuner cache with a time, a failed compile and a failed run
#include <cstdio>
#include <exception>
#include <string_view>

#include "tuner/interchange/json_text.h"
#include "tuner/interchange/kernel_tuner_cache.h"
#include "tuner/interchange/t4.h"

namespace {

std::vector<autotune::MeasuredConfig> one_of_each_ending() {
    std::vector<autotune::MeasuredConfig> configs;
    for (const autotune::EndingInfo& row : autotune::endings) {
        autotune::Outcome outcome{.ending = row.ending, .samples_us = {1500, 1700}, .compile_ms = 30};
        if (outcome.ok()) outcome.time_us = 1600;
        const autotune::Config config{"block", {{"THREADS", std::int64_t{256}}, {"layout", std::string{"row"}}}};
        configs.push_back(measured_config(config, outcome, 1'700'000'000));
    }
    return configs;
}

std::string small_cache() {
    autotune::Measurements trials{.kernel = "softmax", .device = "NVIDIA H200"};
    std::int64_t threads = 32;
    for (const autotune::Ending ending : {autotune::Ending::timed, autotune::Ending::compile_failed,
                                          autotune::Ending::launch_failed, autotune::Ending::timed}) {
        autotune::Outcome outcome{.ending = ending, .samples_us = {1500, 1700}, .compile_ms = 30};
        if (outcome.ok()) outcome.time_us = 100'000.0 / static_cast<double>(threads);
        trials.configs.push_back(
            measured_config({"block", {{"THREADS", threads}, {"fast", true}}}, outcome, 1'700'000'000));
        threads *= 2;
    }
    even_out(trials);
    return kernel_tuner_cache_text(trials, "rows=8 cols=8");
}

}  // namespace

int main(int count, char** arguments) {
    try {
        if (count == 2 && std::string_view{arguments[1]} == "--cache") {
            std::fputs(small_cache().c_str(), stdout);
            return 0;
        }
        const auto configs =
            count < 2 ? one_of_each_ending()
                      : autotune::measurements_from_text(autotune::foreign_text(arguments[1]), arguments[1]).configs;
        std::fputs(autotune::t4_text(configs).c_str(), stdout);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "write_t4: %s\n", error.what());
        return 1;
    }
}
