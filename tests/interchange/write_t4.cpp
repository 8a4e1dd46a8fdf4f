// Writes a T4 file with an ending of each kind, for the test that has another tuner's own schema judge it.
#include <cstdio>

#include "tuner/interchange/t4.h"

int main() {
    std::vector<autotune::MeasuredConfig> configs;
    for (const autotune::EndingInfo& row : autotune::endings) {
        autotune::Outcome outcome{.ending = row.ending, .samples_us = {1500, 1700}, .compile_ms = 30};
        if (outcome.ok()) outcome.time_us = 1600;
        const autotune::Config config{"block", {{"THREADS", std::int64_t{256}}, {"layout", std::string{"row"}}}};
        configs.push_back(measured_config(config, outcome, 1'700'000'000));
    }
    std::fputs(autotune::t4_text(configs).c_str(), stdout);
}
