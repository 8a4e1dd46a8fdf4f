#include "tuner/interchange/t1.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "autotune/error.h"
#include "tuner/model/space.h"

namespace autotune {
namespace {

std::string refusal_of_t1(std::string_view json) {
    try {
        t1_from_text(json, "file.json");
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage);
        EXPECT_TRUE(std::string{error.what()}.starts_with("file.json:")) << error.what();
        EXPECT_EQ(error.help(), "autotune help interchange");
        return error.what();
    }
    ADD_FAILURE() << json << " is read";
    return {};
}

std::string with(std::string_view parameters, std::string_view conditions) {
    return fmt::format(R"({{"ConfigurationSpace": {{"TuningParameters": [{}], "Conditions": [{}]}}}})", parameters,
                       conditions);
}

constexpr std::string_view convolution = R"({
  "General": {"FormatVersion": 1, "BenchmarkName": "convolution"},
  "ConfigurationSpace": {
    "TuningParameters": [
      {"Name": "block_size_x", "Type": "int", "Values": "[16 * i for i in range(1, 17)]", "Default": 16},
      {"Name": "block_size_y", "Type": "int", "Values": "[2**i for i in range(5)]", "Default": "16"},
      {"Name": "use_padding", "Type": "int", "Values": "[0, 1]", "Default": 3},
      {"Name": "layout", "Type": "string", "Values": "['row', 'col']"},
      {"Name": "fast", "Type": "bool", "Values": [true, false]},
      {"Name": "scale", "Type": "float", "Values": "[0.5, 1, 2.0]"}
    ],
    "Conditions": [
      {"Expression": "32 <= block_size_x*block_size_y <= 1024", "Parameters": ["block_size_x"]},
      {"Expression": "use_padding==0 or block_size_x % 32 != 0", "Parameters": ["use_padding"]}
    ]
  },
  "KernelSpecification": {"Language": "CUDA", "KernelName": "conv", "KernelFile": "conv.cu", "GridDivX": ["x"]}
})";

TEST(T1, ReadsTheSpaceWithTheLibertiesOfPublicFiles) {
    const T1 t1 = t1_from_text(convolution, "t1.json");
    EXPECT_EQ(t1.kernel, "conv");
    EXPECT_EQ(t1.source, "conv.cu");
    ASSERT_EQ(t1.parameters.size(), 6U);
    EXPECT_EQ(t1.parameters[0].values.size(), 16U);
    EXPECT_EQ(t1.parameters[3].values[1], Value{std::string{"col"}});
    EXPECT_EQ(t1.parameters[4].values[0], Value{true});
    ASSERT_EQ(t1.notes.size(), 1U);
    EXPECT_EQ(t1.notes[0], "the default 3 of 'use_padding' is none of its values");

    const Op op = op_of_t1(t1);
    const Space space = Space::make(Instance::make(op, {}, DeviceLimits{}));
    std::size_t expected = 0;
    for (int x = 16; x <= 256; x += 16)
        for (int y = 1; y <= 16; y *= 2)
            for (int padding = 0; padding < 2; ++padding)
                expected += 32 <= x * y && x * y <= 1024 && (padding == 0 || x % 32 != 0);
    EXPECT_EQ(space.size(), expected * 2 * 2 * 3);
    EXPECT_EQ(space.config(space.default_number()).text(),
              "conv block_size_x=16 block_size_y=16 use_padding=0 layout=row fast=true scale=0.5");
}

TEST(T1, TakesADefaultInAnyFormAndNotesOneThatIsNone) {
    const auto read = [](std::string_view value) {
        return t1_from_text(
            with(fmt::format(R"({{"Name": "a", "Type": "int", "Values": "[1, 2]", "Default": {}}})", value), ""),
            "t1.json");
    };
    for (const char* two : {"2", "2.0", "\"2\"", "[2]"}) {
        const T1 t1 = read(two);
        EXPECT_EQ(t1.parameters[0].fallback.text(), "2") << two;
        EXPECT_EQ(t1.notes.size(), 1U) << "of the missing kernel alone";
    }
    for (const char* none : {"3", "[1, 2]", "[]", "null", "{}", "18446744073709551615", "\"two\"", "\"1, 2\""}) {
        const T1 t1 = read(none);
        EXPECT_TRUE(t1.parameters[0].fallback.empty()) << none;
        EXPECT_EQ(t1.notes.size(), 2U) << none;
    }
}

TEST(T1, ADefaultInAStringMeansWhatItsParametersValuesMean) {
    const auto fallback = [](std::string_view type, std::string_view values, std::string_view value) {
        const T1 t1 = t1_from_text(
            with(fmt::format(R"({{"Name": "a", "Type": "{}", "Values": {}, "Default": "{}"}})", type, values, value),
                 ""),
            "t1.json");
        EXPECT_EQ(t1.notes.size(), 1U) << values << " of the missing kernel alone";
        return t1.parameters[0].fallback.text();
    };
    EXPECT_EQ(fallback("bool", R"("[False, True]")", "True"), "true");
    EXPECT_EQ(fallback("bool", "[true, false]", "False"), "false");
    EXPECT_EQ(fallback("string", R"(["1", "2"])", "2"), "'2'");
    EXPECT_EQ(fallback("string", R"("['row', 'col']")", "'col'"), "'col'");
    const T1 number =
        t1_from_text(with(R"({"Name": "a", "Type": "string", "Values": "[1, 2]", "Default": 2})", ""), "t1.json");
    EXPECT_EQ(number.parameters[0].fallback.text(), "'2'") << "as its values, which are words by their type";
}

TEST(T1, NotesWhatMayHaveBeenMeantForAConditionOrAParameter) {
    const auto notes = [](std::string_view space) {
        return t1_from_text(fmt::format(R"({{"ConfigurationSpace": {{{}}}, "KernelSpecification": {{}}}})", space),
                            "t1.json")
            .notes;
    };
    const std::string a = R"("TuningParameters": [{"Name": "a", "Values": [1, 2]}])";
    EXPECT_TRUE(notes(a).empty());
    EXPECT_EQ(notes(a + R"(, "conditions": [{"Expression": "a == 1"}])"),
              std::vector<std::string>{
                  "ConfigurationSpace: 'conditions' is passed over: TuningParameters and Conditions are read"});
}

TEST(T1, SaysWhatIsWrongAndWhere) {
    EXPECT_NE(refusal_of_t1("{").find("file.json:1:"), std::string::npos);
    EXPECT_NE(refusal_of_t1("[]").find("no object"), std::string::npos);
    EXPECT_NE(refusal_of_t1("{}").find("there is no ConfigurationSpace"), std::string::npos);
    EXPECT_NE(refusal_of_t1(with("", "")).find("lists no parameter"), std::string::npos);
    const std::string a = R"({"Name": "a", "Type": "int", "Values": "[1, 2]"})";
    EXPECT_NE(refusal_of_t1(with(a + "," + a, "")).find("parameter 'a': it is there twice"), std::string::npos);
    std::string many;
    for (int i = 0; i < 65; ++i)
        many += fmt::format(R"({}{{"Name": "p{}", "Type": "int", "Values": "[1]"}})", i ? "," : "", i);
    EXPECT_NE(refusal_of_t1(with(many, "")).find("it lists 65, and at most 64 are read"), std::string::npos);
    EXPECT_NE(refusal_of_t1(with(R"({"Name": "a", "Type": "int", "Values": "[]"})", "")).find("no value"),
              std::string::npos);
    EXPECT_NE(refusal_of_t1(with(R"({"Name": "a", "Type": "int", "Values": "[1,"})", "")).find("column"),
              std::string::npos);
    EXPECT_NE(refusal_of_t1(with(R"({"Name": "a", "Type": "int", "Values": "['x']"})", "")).find("'x' is a word"),
              std::string::npos);
    EXPECT_NE(refusal_of_t1(with(R"({"Name": "a b", "Type": "int", "Values": "[1]"})", "")).find("no word"),
              std::string::npos);
    EXPECT_NE(refusal_of_t1(with(a, R"({"Expression": "a < blck", "Parameters": []})"))
                  .find("Conditions[0]: 'blck' in 'a < blck' is no parameter"),
              std::string::npos);
    EXPECT_NE(refusal_of_t1(with(a, R"({"Expression": "import os", "Parameters": []})")), "");
    EXPECT_NE(refusal_of_t1("\xff\xfe{}"), "");
    EXPECT_NE(refusal_of_t1(R"({"ConfigurationSpace": ")"
                            "\xc3\x28"
                            R"("})")
                  .find("UTF-8"),
              std::string::npos);
    EXPECT_NE(refusal_of_t1(std::string(100'000, '[')).find("levels deep"), std::string::npos);
    std::string values = "[1";
    while (values.size() < (std::size_t{1} << 25) + 8) values += ",1";
    EXPECT_NE(refusal_of_t1(values + "]").find("holds more than 16777216 values"), std::string::npos);
    EXPECT_NE(refusal_of_t1(R"({"a": 1e999})").find("'1e999' is out of range"), std::string::npos);
    const std::string wrong = refusal_of_t1(with(a, R"({"Expression": "a == 1 and a & 1"})"));
    EXPECT_NE(wrong.find("'a == 1 and a & 1' cannot be read: '&' has no meaning here at column 14"), std::string::npos)
        << wrong;
    std::string conditions = R"({"Expression": "a > 0"})";
    for (int i = 0; i < 4096; ++i) conditions += R"(, {"Expression": "a > 0"})";
    EXPECT_NE(refusal_of_t1(with(a, conditions)).find("it lists 4097, and at most 4096 are read"), std::string::npos);
    std::string list = "0";
    while (list.size() < 4000) list += ", 1";
    std::string long_ones = R"({"Expression": "a in [)" + list + R"(]"})";
    for (int i = 0; i < 299; ++i) long_ones += R"(, {"Expression": "a in [)" + list + R"(]"})";
    EXPECT_NE(refusal_of_t1(with(a, long_ones)).find("Conditions[261]: with it the Expressions have more than 1048576"),
              std::string::npos)
        << refusal_of_t1(with(a, long_ones));
}

TEST(T1, ValuesThatMeanTheSameAreOne) {
    const T1 t1 = t1_from_text(with(R"({"Name": "a", "Values": [1, 1.0, true, 2, 0.5, "1"]})", ""), "t1.json");
    EXPECT_EQ(t1.parameters[0].values, (std::vector<Value>{std::int64_t{1}, std::int64_t{2}, 0.5, std::string{"1"}}));
}

TEST(T1, RefusesNamesAndValuesThatCannotBeMeant) {
    EXPECT_NE(refusal_of_t1(with(R"({"Name": "true", "Values": [1, 2]})", "")).find("'true' means something else"),
              std::string::npos);
    EXPECT_NE(refusal_of_t1(with(R"({"Name": "a", "Type": "uint", "Values": [-1]})", ""))
                  .find("-1 is below 0, and its Type is uint"),
              std::string::npos);
}

TEST(T1, SaysWhatIsNoJsonAtAll) {
    EXPECT_EQ(refusal_of_t1(""), "file.json: not JSON: it is empty");
    EXPECT_EQ(refusal_of_t1(" \n"), "file.json: not JSON: it is empty");
    EXPECT_EQ(refusal_of_t1("\x1f\x8b\x08"), "file.json: not JSON: it is gzipped: unpack it first");
    EXPECT_NE(refusal_of_t1("\xff\xfe{").find("UTF-16"), std::string::npos);
    EXPECT_EQ(refusal_of_t1("{\"a\": [1,"), "file.json:1:10: not JSON: it ends in the middle");
    EXPECT_EQ(refusal_of_t1("{ab: 1}"), "file.json:1:2: not JSON: 'a' has no place here");
}

TEST(T1, NotesAConditionThatHasNoValueSomewhere) {
    const std::string a = R"({"Name": "a", "Values": [0, 1]}, {"Name": "b", "Values": [7]})";
    const auto notes = [&](std::string_view condition) {
        return t1_from_text(with(a, fmt::format(R"({{"Expression": "{}"}})", condition)), "t1.json").notes;
    };
    ASSERT_EQ(notes("2**63 > a").size(), 2U) << "and that there is no kernel";
    EXPECT_TRUE(notes("2**63 > a")[1].starts_with("'2**63 > a' has no value where a=0, which is then not valid: "))
        << notes("2**63 > a")[1];
    EXPECT_EQ(notes("b % a == 0").size(), 2U);
    EXPECT_EQ(notes("a == 0 or b % a == 0").size(), 1U);
    EXPECT_EQ(notes("a < 'x'").size(), 2U);
}

}  // namespace
}  // namespace autotune
