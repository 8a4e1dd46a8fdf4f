#include "tuner/interchange/t4.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "autotune/error.h"

namespace autotune {
namespace {

std::string refusal_of_results(std::string_view json) {
    try {
        measurements_from_text(json, "file.json");
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage);
        return error.what();
    }
    ADD_FAILURE() << json << " is read";
    return {};
}

MeasuredConfig measured(std::int64_t x, std::string invalidity, std::optional<double> time_ms) {
    return {.values = {{"fast", true}, {"layout", std::string{"row"}}, {"x", x}},
            .invalidity = std::move(invalidity),
            .time_ms = time_ms,
            .runtimes_ms = time_ms ? std::vector<double>{*time_ms, *time_ms + 0.1} : std::vector<double>{},
            .compilation_ms = 31.5,
            .validation_ms = 2,
            .correctness = 1,
            .timestamp = 1'700'000'000};
}

TEST(T4, WhatIsWrittenReadsBackEqual) {
    std::vector<MeasuredConfig> configs;
    for (const char* word : {"timeout", "compile", "runtime", "correctness", "constraints"})
        configs.push_back(measured(static_cast<std::int64_t>(configs.size()), word, std::nullopt));
    configs.push_back(measured(9, "correct", 0.1234567890123));
    configs.push_back(measured(10, "correct", 2.5));
    configs.back().predicted = true;
    const Measurements back = measurements_from_text(t4_text(configs), "t4.json");
    EXPECT_EQ(back.configs, configs);
    EXPECT_EQ(back.parameters, (std::vector<std::string>{"fast", "layout", "x"}));
    EXPECT_TRUE(back.notes.empty());
    EXPECT_EQ(measurements_from_text(t4_text({}), "t4.json").configs.size(), 0U);
}

TEST(T4, VariantsMayHaveParametersOfTheirOwn) {
    const auto trial = [](std::string_view variant, std::string_view parameter) {
        return measured_config(Config{std::string{variant}, {{std::string{parameter}, std::int64_t{4}}}},
                               Outcome{.ending = Ending::timed, .samples_us = {2000}, .time_us = 2000}, 5);
    };
    const std::vector ours{trial("block", "THREADS"), trial("warp", "ROWS"), trial("block", "THREADS")};
    const Measurements back = measurements_from_text(t4_text(ours), "t4.json");
    EXPECT_EQ(back.parameters, (std::vector<std::string>{"ROWS", "THREADS", "variant"}));
    ASSERT_EQ(back.configs.size(), 3U);
    EXPECT_EQ(back.configs[1].values, (std::vector<std::pair<std::string, Value>>{{"ROWS", std::int64_t{4}},
                                                                                  {"variant", std::string{"warp"}}}));
    EXPECT_EQ(t4_text(back.configs), t4_text(ours));

    const std::vector odd{trial("block", "THREADS"), trial("block", "ROWS")};
    EXPECT_NE(refusal_of_results(t4_text(odd)).find("results[1]: there is 'ROWS', which the first has not"),
              std::string::npos);
}

TEST(T4, BothSpellingsMeanTheSame) {
    const auto with_times = [](std::string_view times, std::string_view unit) {
        const Measurements read = measurements_from_text(
            fmt::format(R"({{"schema_version": "1.0.0", "metadata": {{"timeunit": "{}"}}, "results": [
                {{"timestamp": "2024-05-01T10:00:00+00:00", "configuration": {{"x": 1}}, "times": {{{}}},
                  "invalidity": "correct", "correctness": 1, "objectives": ["time"],
                  "measurements": [{{"name": "time", "value": 2.5, "unit": ""}},
                                   {{"name": "GFLOP/s", "value": 17, "unit": ""}}]}}]}})",
                        unit, times),
            "t4.json");
        return read.configs.at(0);
    };
    const MeasuredConfig schema = with_times(R"("compilation_time": 30, "runtimes": [2.4, 2.6])", "milliseconds");
    EXPECT_EQ(schema.compilation_ms, 30);
    EXPECT_EQ(schema.time_ms, 2.5);
    EXPECT_EQ(schema.runtimes_ms, (std::vector<double>{2.4, 2.6}));
    EXPECT_EQ(with_times(R"("compilation": 30, "benchmark": 5, "runtimes": [2.4, 2.6])", "miliseconds"), schema);
    EXPECT_EQ(with_times(R"("compilation_time": 0.03, "runtimes": [])", "seconds").time_ms, 2500);
}

constexpr std::string_view cache = R"({
"device_name": "A100", "kernel_name": "conv", "problem_size": [4096, 4096],
"tune_params_keys": ["x", "y"], "tune_params": {"x": [1, 2], "y": [4]}, "objective": "time",
"cache": {
"1,4": {"x": 1, "y": 4, "time": 1.5, "times": [1.4, 1.6], "compile_time": 20, "timestamp": "2024-05-01 10:00:00.1"},
"2,4": {"x": 2, "y": 4, "time": "CompilationFailedConfig"},
"3,4": {"x": 3, "y": 4, "__error__": "RuntimeFailedConfig", "time": "RuntimeFailedConfig"},
"4,4": {"x": 4, "y": 4, "time": 1e20},
"5,4": {"x": 5, "y": 4, "time": "InvalidConfig"})";

TEST(T4, CacheFilesAreReadAlsoWhereTheirTunerDidNotCloseThem) {
    for (const std::string end : {"}}", "", ",\n", "\n"}) {
        const Measurements read = measurements_from_text(std::string{cache} + end, "cache.json");
        EXPECT_EQ(read.kernel, "conv");
        EXPECT_EQ(read.device, "A100");
        ASSERT_EQ(read.configs.size(), 5U) << "ends with '" << end << "'";
        EXPECT_EQ(read.configs[0].time_ms, 1.5);
        EXPECT_EQ(read.configs[0].values,
                  (std::vector<std::pair<std::string, Value>>{{"x", std::int64_t{1}}, {"y", std::int64_t{4}}}));
        EXPECT_EQ(read.configs[1].invalidity, "compile");
        EXPECT_EQ(read.configs[2].invalidity, "runtime");
        EXPECT_EQ(read.configs[3].invalidity, "runtime");
        EXPECT_EQ(read.configs[3].time_ms, std::nullopt);
        EXPECT_EQ(read.configs[4].invalidity, "constraints");
        EXPECT_EQ(measurements_from_text(t4_text(read.configs), "t4.json").configs, read.configs);
    }
}

TEST(T4, TimesThatAreNoneAreToldWithTheirPlace) {
    const auto with_time = [](std::string_view time) {
        return fmt::format("{{\n\"tune_params_keys\": [\"x\"], \"cache\": {{\n\"1\": {{\"x\": 1, \"time\": {}}}}}}}",
                           time);
    };
    EXPECT_NE(refusal_of_results(with_time("NaN")).find("file.json:3:"), std::string::npos)
        << refusal_of_results(with_time("NaN"));
    EXPECT_NE(refusal_of_results(with_time("NaN")).find("NaN is no JSON"), std::string::npos);
    EXPECT_NE(refusal_of_results(with_time("-Infinity")).find("is no JSON"), std::string::npos);
    EXPECT_NE(refusal_of_results(with_time("-1")).find("cache['1']: a time is -1"), std::string::npos);
    EXPECT_NE(refusal_of_results(with_time("[]")).find("a time is no number"), std::string::npos);
    const Measurements none = measurements_from_text(with_time("null"), "file.json");
    EXPECT_EQ(none.configs.at(0).invalidity, "runtime");
    EXPECT_EQ(none.notes.size(), 1U);
}

TEST(T4, ConfigsAreComparedByTheirTimeWhateverTheObjectiveWas) {
    const auto read = [](std::string_view measurements) {
        return fmt::format(R"({{"results": [{{"configuration": {{"x": 1}}, "objectives": ["energy"],
            "measurements": [{}]}}]}})",
                           measurements);
    };
    const std::string energy = R"({"name": "energy", "value": 100, "unit": "J"})";
    const std::string time = R"({"name": "time", "value": 2, "unit": "ms"})";
    EXPECT_EQ(measurements_from_text(read(energy + "," + time), "t4.json").configs.at(0).time_ms, 2);
    EXPECT_NE(refusal_of_results(read(energy)).find("results[0]: its 'energy' is in 'J', and configs are compared by"),
              std::string::npos);
    const Measurements both = measurements_from_text(
        R"({"tune_params_keys": ["x"], "objective": "GFLOP/s", "cache": {
            "1": {"x": 1, "time": 3, "GFLOP/s": 50}, "2": {"x": 2, "GFLOP/s": "CompilationFailedConfig"}}})",
        "cache.json");
    EXPECT_EQ(both.configs.at(0).time_ms, 3);
    EXPECT_EQ(both.configs.at(1).invalidity, "compile");
}

// Of what grows as a kernel gets faster the slowest would be the best.
TEST(T4, AnObjectiveThatIsNotSaidToBeATimeIsNotTakenForOne) {
    EXPECT_NE(refusal_of_results(R"({"results": [{"configuration": {"x": 1}, "objectives": ["GFLOP/s"],
        "measurements": [{"name": "GFLOP/s", "value": 100, "unit": ""}]}]})")
                  .find("results[0]: its 'GFLOP/s' has no unit, and configs are compared by their time"),
              std::string::npos);
    const Measurements latency = measurements_from_text(
        R"({"results": [{"configuration": {"x": 1}, "objectives": ["latency"],
            "measurements": [{"name": "latency", "value": 2, "unit": "us"}]}]})",
        "t4.json");
    EXPECT_EQ(latency.configs.at(0).time_ms, 0.002);
    EXPECT_NE(refusal_of_results(
                  R"({"tune_params_keys": ["x"], "objective": "GFLOP/s", "cache": {"1": {"x": 1, "GFLOP/s": 50}}})")
                  .find("cache['1']: there is no 'time', by which configs are compared, whatever was searched for"),
              std::string::npos);
}

TEST(T4, SaysWhatIsWrongAndWhere) {
    EXPECT_NE(refusal_of_results(R"({"results": [{"configuration": {"x": 1}, "measurements": [
        {"name": "time", "value": 1, "unit": 5}]}]})")
                  .find("results[0]: its unit is no word"),
              std::string::npos);
    EXPECT_NE(refusal_of_results(R"({"tune_params_keys": ["x", "y", "x"], "cache": {}})")
                  .find("tune_params_keys: 'x' is there twice"),
              std::string::npos);
    EXPECT_NE(refusal_of_results(std::string{R"({"results": []})"} + std::string("\0junk", 5))
                  .find("file.json:1:16: not JSON: this byte has no place here"),
              std::string::npos);
    EXPECT_NE(refusal_of_results("{}").find("neither T4"), std::string::npos);
    EXPECT_NE(refusal_of_results(R"({"results": {}})").find("results: it is no list"), std::string::npos);
    EXPECT_NE(refusal_of_results(R"({"results": [{}]})").find("results[0]: there is no configuration"),
              std::string::npos);
    EXPECT_NE(refusal_of_results(R"({"results": [{"configuration": {"x": [1]}}]})").find("'x' is no boolean"),
              std::string::npos);
    EXPECT_NE(refusal_of_results(R"({"results": [{"configuration": {"x": 1}}, {"configuration": {"y": 1}}]})")
                  .find("results[1]: there is no 'x'"),
              std::string::npos);
    EXPECT_NE(
        refusal_of_results(R"({"results": [{"configuration": {"x": 1, "y": 1}}, {"configuration": {"a": 1, "x": 1}}]})")
            .find("results[1]: there is 'a', which the first has not"),
        std::string::npos);
    EXPECT_NE(refusal_of_results(R"({"results": [{"configuration": {"x": 1}, "invalidity": "odd"}]})").find("'odd'"),
              std::string::npos);
    EXPECT_NE(refusal_of_results(R"({"metadata": {"timeunit": "hours"}, "results": []})").find("'hours' is no unit"),
              std::string::npos);
    EXPECT_NE(refusal_of_results(R"({"results": [{"configuration": {"x": 1}, "invalidity": 5}]})")
                  .find("results[0]: its invalidity is no word"),
              std::string::npos);
    EXPECT_NE(refusal_of_results(
                  R"({"results": [{"configuration": {"x": 1}, "measurements": [{"name": "time", "value": 1e307}]}]})")
                  .find("a time is 1e+307"),
              std::string::npos);
    EXPECT_NE(refusal_of_results(R"({"cache": {"1": {}}})").find("names no parameter"), std::string::npos);
    EXPECT_NE(refusal_of_results("\xff").find("file.json:1:1"), std::string::npos);
    EXPECT_NE(refusal_of_results(std::string(100'000, '[')).find("levels deep"), std::string::npos);
}

TEST(T4, AHundredThousandRowsAreReadInNoTimeToSpeakOf) {
    std::string text = R"({"tune_params_keys": ["x"], "cache": {)";
    for (int i = 0; i < 100'000; ++i) text += fmt::format("{}\"{}\": {{\"x\": {}, \"time\": 1.0}}", i ? "," : "", i, i);
    EXPECT_EQ(measurements_from_text(text + "}}", "cache.json").configs.size(), 100'000U);
}

TEST(T4, TrialsOfSeveralVariantsAreOneTable) {
    Measurements measured;
    measured.configs = {{.values = {{"variant", std::string{"block"}}, {"THREADS", std::int64_t{64}}}},
                        {.values = {{"variant", std::string{"warp"}}, {"ROWS", std::int64_t{2}}}}};
    even_out(measured);
    EXPECT_EQ(measured.parameters, (std::vector<std::string>{"variant", "THREADS", "ROWS"}));
    EXPECT_EQ(to_text(measured.configs[0].values[2].second), "none");
    EXPECT_EQ(to_text(measured.configs[1].values[1].second), "none");
    EXPECT_EQ(measured.configs[1].values[2].second, Value{std::int64_t{2}});
    EXPECT_EQ(measurements_from_text(t4_text(measured.configs), "t4.json").configs.size(), 2U);
}

// As the square of their number they would take minutes.
TEST(T4, ConfigurationsOfManyParametersAreReadInTimeToo) {
    std::string config;
    for (int i = 0; i < 100'000; ++i) config += fmt::format("{}\"p{}\": 1", i ? "," : "", i);
    const std::string result = "{\"configuration\": {" + config + "}, \"invalidity\": \"runtime\"}";
    EXPECT_EQ(measurements_from_text("{\"results\": [" + result + "," + result + "]}", "t4.json").parameters.size(),
              100'000U);
}

TEST(T4, ATrialOfOursSaysHowItEnded) {
    const Config config{"block", {{"THREADS", std::int64_t{256}}}};
    Outcome outcome{.ending = Ending::timed, .samples_us = {1500, 1700}, .time_us = 1600};
    const MeasuredConfig timed = measured_config(config, outcome, 5);
    EXPECT_EQ(timed.time_ms, 1.6);
    EXPECT_EQ(timed.values.front(), (std::pair<std::string, Value>{"variant", std::string{"block"}}));
    outcome.ending = Ending::wrong_result;
    EXPECT_EQ(measured_config(config, outcome, 5).invalidity, "correctness");
    EXPECT_EQ(measured_config(config, outcome, 5).correctness, 0);
    outcome.ending = Ending::dropped;
    const std::vector dropped{measured_config(config, outcome, 5)};
    EXPECT_EQ(dropped[0].time_ms, std::nullopt) << "its runs are a lower bound";
    EXPECT_EQ(measurements_from_text(t4_text(dropped), "t4.json").configs.at(0).invalidity, "correct");
}

}  // namespace
}  // namespace autotune
