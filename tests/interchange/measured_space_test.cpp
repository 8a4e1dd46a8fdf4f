#include "tuner/interchange/measured_space.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "autotune/error.h"
#include "tuner/interchange/t1.h"
#include "tuner/replay/recorded_space.h"

namespace autotune {
namespace {

constexpr std::string_view described = R"json({"ConfigurationSpace": {"TuningParameters": [
    {"Name": "bx", "Type": "int", "Values": "[16, 32, 64]"},
    {"Name": "pad", "Type": "bool", "Values": "[False, True]"},
    {"Name": "one", "Type": "int", "Values": "[7]"}],
    "Conditions": [{"Parameters": ["bx", "pad"], "Expression": "not pad or bx % 32 != 0"}]},
    "KernelSpecification": {"KernelName": "conv", "Language": "CUDA", "KernelFile": "conv.cu"}})json";

// Of one cache: a time with its runs, both failures there are words for, a config twice, one that the conditions
// exclude, one with a value that is not listed.
constexpr std::string_view cached = R"json({"kernel_name": "conv", "device_name": "A 100",
    "tune_params_keys": ["pad", "bx"], "cache": {
    "0": {"pad": 1, "bx": 16, "time": 1.5, "times": [1, 2], "compile_time": 10},
    "1": {"pad": 0, "bx": 32.0, "time": "CompilationFailedConfig"},
    "2": {"pad": 0, "bx": 64, "time": "RuntimeFailedConfig"},
    "3": {"pad": true, "bx": 16, "time": 0.5},
    "4": {"pad": 1, "bx": 32, "time": 0.25},
    "5": {"pad": 0, "bx": 48, "time": 0.125}}})json";

class MeasuredSpaces : public testing::Test {
protected:
    const Op op = op_of_t1(t1_from_text(described, "t1.json"));
    const Space space = Space::make(Instance::make(op, {}, DeviceLimits{}));
};

TEST_F(MeasuredSpaces, ResultsAreFoundInTheirSpaceByWhatTheirValuesMean) {
    const Measurements results = measurements_from_text(cached, "cache.json");
    const MeasuredSpace measured = measured_space(space, results, "cache.json");
    ASSERT_EQ(measured.rows.size(), 3U);
    EXPECT_EQ(measured.outside, 2U);
    EXPECT_EQ(measured.repeated, 1U);
    EXPECT_EQ(measured.untimed, 0U);
    ASSERT_TRUE(measured.fastest);
    EXPECT_EQ(space.config(measured.fastest->number).text(), "conv bx=16 pad=true one=7");
    EXPECT_EQ(measured.fastest->measured->time_ms, 1.5) << "the first of a config counts";
}

TEST_F(MeasuredSpaces, AreWrittenAsARecordedSpace) {
    const Measurements results = measurements_from_text(cached, "cache.json");
    const std::string text = recorded_text(space, measured_space(space, results, "cache.json"), "A_100");
    EXPECT_EQ(text,
              "# kernel: conv\n# device: A_100\n# values bx: 16 32 64\n# values pad: false true\n# values one: 7\n"
              "bx,pad,one,time_ms,sd_ms,cost_ms,status\n"
              "16,true,7,1.5,0.7071067811865476,13,ok\n"
              "32,false,7,error,,,compile\n"
              "64,false,7,error,,,runtime\n");
}

TEST_F(MeasuredSpaces, WhatIsWrittenIsSearchedAgain) {
    const Measurements results = measurements_from_text(cached, "cache.json");
    const MeasuredSpace measured = measured_space(space, results, "cache.json");
    const RecordedSpace record = RecordedSpace::parse(recorded_text(space, measured, "A_100"), "conv");
    EXPECT_EQ(record.name(), "conv__A_100");
    ASSERT_EQ(record.space().size(), measured.rows.size());
    EXPECT_EQ(record.optimum_us(), 1500);
    std::map<std::string, Outcome> outcomes;  // by the config as people read it: a record's words have no other type
    for (std::size_t i = 0; i < record.space().size(); ++i) {
        const std::string text = record.space().config(i).text();
        outcomes[text.substr(text.find(' '))] = record.outcome(i);
    }
    std::size_t working = 0;
    for (const MeasuredSpace::Row& row : measured.rows) {
        const std::string text = space.config(row.number).text();
        const auto found = outcomes.find(text.substr(text.find(' ')));
        ASSERT_NE(found, outcomes.end()) << text;
        EXPECT_EQ(found->second.ok(), row.measured->time_ms > 0);
        working += found->second.ok();
    }
    EXPECT_EQ(record.sorted_us().size(), working);
}

TEST_F(MeasuredSpaces, APredictionIsFasterThanNoMeasurement) {
    const auto fastest = [](const std::string& first) {
        const Measurements results = measurements_from_text(
            R"({"results": [{"configuration": {"x": 1}, "measurements": [{"name": "time", "value": 1},
                {"name": "predicted", "value": 1}]}, {"configuration": {"x": 2}, "measurements": [
                {"name": "time", "value": 0.5}, {"name": "predicted", "value": 1}]})" +
                first + "]}",
            "t4.json");
        const Op alone = op_of_measurements(results);
        const Space two = Space::make(Instance::make(alone, {}, DeviceLimits{}));
        return *measured_space(two, results, "t4.json").fastest->measured->time_ms;
    };
    EXPECT_EQ(fastest(""), 0.5);
    EXPECT_EQ(fastest(R"(, {"configuration": {"x": 3}, "measurements": [{"name": "time", "value": 2}]})"), 2);
}

TEST_F(MeasuredSpaces, ResultsWithoutAParameterOfTheSpaceAreRefused) {
    const Measurements results =
        measurements_from_text(R"({"results": [{"configuration": {"bx": 16}, "invalidity": "runtime"}]})", "t4.json");
    try {
        measured_space(space, results, "t4.json");
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "t4.json: its configurations have no 'pad', which is a parameter of 'conv'");
    }
}

TEST_F(MeasuredSpaces, ResultsAloneMakeASpaceOfTheValuesThatOccur) {
    const Measurements results = measurements_from_text(cached, "cache.json");
    const Op alone = op_of_measurements(results);
    const Space wide = Space::make(Instance::make(alone, {}, DeviceLimits{}));
    EXPECT_EQ(wide.size(), 2 * 4U) << "1 and true are one value, and so are 32 and 32.0";
    const MeasuredSpace measured = measured_space(wide, results, "cache.json");
    EXPECT_EQ(measured.rows.size(), 5U);
    EXPECT_EQ(measured.outside, 0U);
    EXPECT_THROW(op_of_measurements(Measurements{}), Error);
}

TEST_F(MeasuredSpaces, WhatAVariantLacksIsTheWordThatWeWriteForIt) {
    const Measurements results = measurements_from_text(R"({"results": [
        {"configuration": {"variant": "warp", "ROWS": 8}, "measurements": [{"name": "time", "value": 2}]},
        {"configuration": {"variant": "block", "THREADS": 64}, "invalidity": "runtime"},
        {"configuration": {"variant": "warp", "ROWS": 4}, "measurements": [{"name": "time", "value": 1}]}]})",
                                                        "t4.json");
    const Op alone = op_of_measurements(results);
    const Space both = Space::make(Instance::make(alone, {}, DeviceLimits{}));
    const MeasuredSpace measured = measured_space(both, results, "t4.json");
    EXPECT_EQ(measured.rows.size(), 3U);
    EXPECT_EQ(recorded_text(both, measured, "unknown"),
              "# kernel: kernel\n# device: unknown\n# values ROWS: 4 8 none\n# values THREADS: 64 none\n"
              "# values variant: block warp\nROWS,THREADS,variant,time_ms,sd_ms,cost_ms,status\n"
              "4,none,warp,1,,,ok\n8,none,warp,2,,,ok\nnone,64,block,error,,,runtime\n");
}

TEST_F(MeasuredSpaces, WhatARecordedSpaceCannotHoldIsRefused) {
    const auto written = [](std::string_view configuration) {
        const Measurements results = measurements_from_text(
            R"({"results": [{"configuration": )" + std::string{configuration} + R"(, "invalidity": "runtime"}]})",
            "t4.json");
        const Op alone = op_of_measurements(results);
        const Space odd = Space::make(Instance::make(alone, {}, DeviceLimits{}));
        return recorded_text(odd, measured_space(odd, results, "t4.json"), "A 100,\n80 GB");
    };
    EXPECT_THROW(written(R"({"layout": "row major"})"), Error);
    EXPECT_THROW(written(R"({"layout": "row\nmajor"})"), Error);
    EXPECT_THROW(written(R"({"layout": "\u001b[1m"})"), Error);
    EXPECT_THROW(written(R"({"layout": ""})"), Error);
    EXPECT_THROW(written(R"({"layout": "#1"})"), Error) << "its line would be a remark";
    EXPECT_THROW(written(R"({"status": 1})"), Error);
    const Measurements alike = measurements_from_text(R"({"results": [
        {"configuration": {"x": 1}, "invalidity": "runtime"}, {"configuration": {"x": "1"}, "invalidity": "runtime"}]})",
                                                      "t4.json");
    const Op of_both = op_of_measurements(alike);
    const Space both = Space::make(Instance::make(of_both, {}, DeviceLimits{}));
    try {
        recorded_text(both, measured_space(both, alike, "t4.json"), "A100");
        ADD_FAILURE() << "a number and a word are written alike";
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "'1' cannot stand in a recorded space: two values of 'x' are written so");
    }
    EXPECT_NE(written(R"({"layout": "row"})").find("# device: A_100__80_GB\n"), std::string::npos);
}

}  // namespace
}  // namespace autotune
