// `autotune space` with files of other tuners, and with our own as such, run as people run it.
#include <string>

#include "tests/tools/command_line.h"

namespace autotune {
namespace {

using SpaceCommandLine = CommandLine;

TEST_F(SpaceCommandLine, WhatQueryWritesAsT4IsReadAgain) {
    ASSERT_EQ(scripted("tune softmax rows=64,cols=4096,dtype=f32 --budget 60 --db s.db").code, 0);
    const Answer written = scripted("query softmax --db s.db --as t4 -o t4.json");
    ASSERT_EQ(written.code, 0) << written.err;
    const Answer r = run("space --measured t4.json -o space.csv");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("best: "), std::string::npos) << r.out;
    const Answer replayed = run("replay space.csv --seeds 2 --evaluations 10");
    EXPECT_EQ(replayed.code, 0) << replayed.err;
    scripted("query softmax --db s.db --as t4 -o again.json");
    EXPECT_EQ(read(folder / "t4.json"), read(folder / "again.json"));
}

TEST_F(SpaceCommandLine, NothingIsWrittenThatCouldNotBeRead) {
    std::string results;
    for (int i = 0; i < 5000; ++i)
        results += (i ? "," : "") + std::string{R"({"configuration": {"p": )"} + std::to_string(i) +
                   R"(}, "invalidity": "runtime"})";
    write("t4.json", R"({"results": [)" + results + "]}");
    const Answer r = run("space --measured t4.json -o space.csv");
    EXPECT_EQ(r.code, 1);
    EXPECT_NE(r.err.find("'p' has 5000 values; 1 to 4096 are possible"), std::string::npos) << r.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "space.csv"));
}

TEST_F(SpaceCommandLine, AFileWithoutResultsIsSaidToHaveNone) {
    write("t1.json", R"({"ConfigurationSpace": {"TuningParameters": [{"Name": "a", "Values": [1, 2]}]},
        "KernelSpecification": {"KernelName": "k"}})");
    for (const char* text : {R"({"results": []})", R"({"cache": {}, "tune_params_keys": ["a"]})"}) {
        write("none.json", text);
        for (const char* words : {"space --measured none.json", "space --measured none.json --t1 t1.json"}) {
            const Answer r = run(words);
            EXPECT_EQ(r.code, 2) << words << text;
            EXPECT_EQ(r.err, "error: none.json holds no result\n") << words << text;
        }
    }
    write("zero.json", R"({"results": [{"configuration": {"a": 1}, "measurements": [{"name": "time", "value": 0}]}]})");
    const Answer zero = run("space --measured zero.json --t1 t1.json");
    EXPECT_EQ(zero.code, 2);
    EXPECT_NE(zero.err.find("1 result left out: neither a time above 0 nor a failure"), std::string::npos) << zero.err;
}

TEST_F(SpaceCommandLine, WhatIsReadIsNotWrittenOver) {
    const std::string results = R"({"results": [{"configuration": {"a": 1}, "invalidity": "runtime"}]})";
    write("t4.json", results);
    std::filesystem::create_symlink("t4.json", folder / "link");
    for (const char* output : {"t4.json", "./t4.json", "link"}) {
        const Answer r = run(std::string{"space --measured t4.json -o "} + output);
        EXPECT_EQ(r.code, 1) << output;
        EXPECT_NE(r.err.find("is read, and would be written over\nhelp: name another file with -o"), std::string::npos)
            << r.err;
        EXPECT_EQ(read(folder / "t4.json"), results) << output;
    }
    const Answer both = run("space softmax --measured t4.json");
    EXPECT_EQ(both.code, 1);
    EXPECT_NE(both.err.find("--measured describes a space of its own, so 'softmax' has no place beside it"),
              std::string::npos)
        << both.err;
}

TEST_F(SpaceCommandLine, LargeCountsStayApart) {
    std::string parameters;
    for (int i = 0; i < 12; ++i)
        parameters += (i ? "," : "") + std::string{R"({"Name": "p)"} + std::to_string(i) +
                      R"(", "Values": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]})";
    write("t1.json", R"({"ConfigurationSpace": {"TuningParameters": [)" + parameters + "]}}");
    const Answer r = run("space --t1 t1.json");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find(" 1000000000000 1000000000000 "), std::string::npos) << r.out;
}

}  // namespace
}  // namespace autotune
