#include "tuner/interchange/kernel_tuner_cache.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace autotune {
namespace {

MeasuredConfig cached_config(std::int64_t x, std::string invalidity, std::optional<double> time_ms) {
    return {.values = {{"variant", std::string{"block"}}, {"x", x}, {"fast", x % 2 == 0}, {"scale", 0.5}},
            .invalidity = std::move(invalidity),
            .time_ms = time_ms,
            .runtimes_ms = time_ms ? std::vector<double>{*time_ms, *time_ms + 0.1} : std::vector<double>{},
            .compilation_ms = 31.5,
            .validation_ms = 2,
            .timestamp = 1'700'000'000};
}

Measurements cached_trials() {
    return {.kernel = "softmax",
            .device = "NVIDIA H200",
            .parameters = {"variant", "x", "fast", "scale"},
            .configs = {cached_config(10, "correct", 0.1234567890123), cached_config(2, "compile", std::nullopt),
                        cached_config(3, "runtime", std::nullopt), cached_config(4, "constraints", std::nullopt)},
            .notes = {}};
}

TEST(KernelTunerCache, WhatIsWrittenReadsBackEqual) {
    const Measurements trials = cached_trials();
    const Measurements back = measurements_from_text(kernel_tuner_cache_text(trials, "rows=8"), "cache.json");
    EXPECT_EQ(back.kernel, trials.kernel);
    EXPECT_EQ(back.device, trials.device);
    EXPECT_EQ(back.parameters, trials.parameters);
    ASSERT_EQ(back.configs.size(), trials.configs.size());
    for (const MeasuredConfig& config : trials.configs)
        EXPECT_EQ(std::ranges::count(back.configs, config), 1) << config.invalidity;
}

TEST(KernelTunerCache, WhatAnEmulatorPredictedIsNotReadAsMeasured) {
    Measurements trials = cached_trials();
    trials.configs = {cached_config(10, "correct", 0.5), cached_config(12, "correct", 0.25)};
    trials.configs[1].predicted = true;
    const Measurements back = measurements_from_text(kernel_tuner_cache_text(trials, "rows=8"), "cache.json");
    ASSERT_EQ(back.configs.size(), 2U);
    for (const MeasuredConfig& config : back.configs) EXPECT_EQ(config.predicted, config.time_ms == 0.25);
}

TEST(KernelTunerCache, ConfigsStandUnderTheWordsThatPythonHasForTheirValues) {
    const auto cache = nlohmann::json::parse(kernel_tuner_cache_text(cached_trials(), "rows=8"));
    EXPECT_TRUE(cache["cache"].contains("block,10,True,0.5")) << cache["cache"];
    EXPECT_TRUE(cache["cache"].contains("block,3,False,0.5")) << cache["cache"];
    EXPECT_EQ(cache["tune_params"]["x"], (std::vector<int>{2, 3, 4, 10}));
    EXPECT_EQ(cache["problem_size"], "rows=8");
}

TEST(KernelTunerCache, WhatItHasNoWordForIsAFailureAndWhatDidNotEndIsLeftOut) {
    Measurements trials = cached_trials();
    trials.configs = {cached_config(1, "timeout", std::nullopt), cached_config(2, "correctness", std::nullopt),
                      cached_config(3, "correct", std::nullopt), cached_config(4, "correct", 1.5),
                      cached_config(4, "runtime", std::nullopt)};
    const Measurements back = measurements_from_text(kernel_tuner_cache_text(trials, ""), "cache.json");
    ASSERT_EQ(back.configs.size(), 3U) << "of a config that is there twice the last counts";
    for (const MeasuredConfig& config : back.configs) EXPECT_EQ(config.invalidity, "runtime");
}

}  // namespace
}  // namespace autotune
