// For the test that has another tuner judge what we write and write what we read:
//
//     write_t4            a T4 file with an ending of each kind
//     write_t4 FILE       results of another tuner as T4
#include <cstdio>
#include <exception>

#include "tuner/interchange/json_text.h"
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

}  // namespace

int main(int count, char** arguments) {
    try {
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
