// `autotune replay`, run as people run it.
#include <string>

#include "tests/tools/command_line.h"

namespace autotune {
namespace {

class ReplayCommandLine : public CommandLine {
protected:
    void write_space(int configs) const {
        std::string values = "# values A:", rows;
        for (int i = 1; i <= configs; ++i) {
            values += " " + std::to_string(i);
            rows += std::to_string(i) + "," + std::to_string(1 + i * 7919 % 97) + ",,,ok\n";
        }
        write("space.csv", values + "\nA,time_ms,sd_ms,cost_ms,status\n" + rows);
    }
};

TEST_F(ReplayCommandLine, AnInterruptEndsItAtOnce) {
    write_space(2000);
    const Answer r = shell("timeout --foreground -k 20 -s TERM --preserve-status 1 '" AUTOTUNE_BINARY_DIR
                           "/bin/autotune' replay space.csv --seeds 10000 --evaluations 400");
    EXPECT_EQ(r.code, 143) << r.err;
    EXPECT_NE(r.err.find("of 10000 searches, which are too few to judge by"), std::string::npos) << r.err;
    EXPECT_EQ(r.out, "");
}

TEST_F(ReplayCommandLine, AnUnknownStrategyIsMetWithThoseThereAre) {
    write_space(2);
    const Answer near = run("replay space.csv --strategy gided");
    EXPECT_EQ(near.code, 1);
    EXPECT_NE(near.err.find("there is no strategy 'gided'; did you mean 'guided'?"), std::string::npos) << near.err;
    const Answer far = run("replay space.csv --strategy banana");
    EXPECT_EQ(far.code, 1);
    EXPECT_NE(far.err.find("; the strategies are guided, "), std::string::npos) << far.err;
}

TEST_F(ReplayCommandLine, RecordsThatAreNotOfTheKernelElsewhereAreMetWithAWarning) {
    const auto record = [](std::string kernel, std::string device) {
        return "# kernel: " + kernel + "\n# device: " + device +
               "\n# values A: 1 2\nA,time_ms,sd_ms,cost_ms,status\n1,1,,,ok\n2,2,,,ok\n";
    };
    write("here.csv", record("gemm", "V100"));
    write("there.csv", record("gemm", "A100"));
    write("other.csv", record("conv", "A100"));
    const std::string words = "replay here.csv --seeds 1 --evaluations 10 --with ";
    EXPECT_EQ(run(words + "there.csv").err, "");
    EXPECT_NE(run(words + "here.csv").err.find("warning: what is searched for is known"), std::string::npos);
    EXPECT_NE(run(words + "other.csv").err.find("a record of the kernel 'conv' is taken for one of 'gemm'"),
              std::string::npos);
}

}  // namespace
}  // namespace autotune
