// Goal: what `query --as cpp` writes compiles as it is and launches what was timed, whatever names and texts a record
// has. Method: the header is compiled with a stand-in for <cuda.h> whose launches print what they were given.
#include "tools/record_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/made_up_op.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

constexpr const char* stand_in = R"(#pragma once
#include <cstdio>
using CUresult = int; using CUfunction = void*; using CUstream = void*; using CUdeviceptr = unsigned long long;
constexpr int CUDA_SUCCESS = 0;
enum { CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4, CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2 };
struct CUlaunchAttribute { int id; struct { struct { unsigned x, y, z; } clusterDim; int cooperative; } value; };
struct CUlaunchConfig { unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes; CUstream hStream;
                        CUlaunchAttribute* attrs; unsigned numAttrs; };
inline CUresult cuLaunchKernel(CUfunction, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                               unsigned shared, CUstream, void** arguments, void**) {
    std::printf("plain %u %u %u, %u %u %u, %u", gx, gy, gz, bx, by, bz, shared);
    if (arguments) std::printf(", first %llu", *static_cast<CUdeviceptr*>(arguments[0]));
    std::puts("");
    return 0;
}
inline CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction, void**, void**) {
    std::printf("grid %u %u %u", c->gridDimX, c->gridDimY, c->gridDimZ);
    for (unsigned i = 0; i < c->numAttrs; ++i)
        if (c->attrs[i].id == 4) std::printf(", cluster %u", c->attrs[i].value.clusterDim.x);
        else std::printf(", cooperative %d", c->attrs[i].value.cooperative);
    std::puts("");
    return 0;
}
)";

class AsCpp : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "autotune-record-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        op_ = made_up_op({{"P", 2}});
    }
    void TearDown() override { fs::remove_all(folder_); }

    LaunchSpec& launch() { return op_.variants[0].launches[0]; }
    void rename_tensor(const std::string& name) {
        op_.tensors[0].name = name;
        launch().arguments[0].expression = Expression::parse(name);
    }

    std::string header() const {
        const Instance instance = Instance::make(op_, {}, made_up_limits());
        Record record;
        record.source = {.op = op_.name, .variant = "k"};
        record.problem = problem_;
        record.device.name = device_;
        record.config = instance.default_config();
        return record_as_cpp(record, instance);
    }
    /// What the header's first launch printed; what the compiler said if it does not compile.
    std::string launched(const std::string& more = "") const {
        const std::string text = header();
        std::ofstream{folder_ / "tuned.h"} << text;
        std::ofstream{folder_ / "cuda.h"} << stand_in;
        const std::size_t name = text.find("namespace tuned::") + 10;
        std::ofstream{folder_ / "main.cpp"} << "#include \"tuned.h\"\nint main() { return "
                                            << text.substr(name, text.find(' ', name) - name)
                                            << "::launch_0(nullptr, nullptr, 7" << more << "); }\n";
        const std::string in = "cd '" + folder_.string() + "' && ";
        const int status = std::system(
            (in + "c++ -std=c++17 -Wall -Wextra -Werror -I. main.cpp -o main 2> out && ./main > out").c_str());
        std::ifstream out{folder_ / "out"};
        std::string answer{std::istreambuf_iterator<char>{out}, {}};
        return status == 0 ? answer : "it does not compile:\n" + answer + text;
    }

    fs::path folder_;
    Op op_;
    ProblemIdentity problem_{.op = "made_up", .fields = {{"n", std::int64_t{64}}}};
    std::string device_ = "a GPU";
};

TEST_F(AsCpp, LaunchesTheKernelWithItsArguments) { EXPECT_EQ(launched(), "plain 1 1 1, 32 1 1, 0, first 7\n"); }

TEST_F(AsCpp, LaunchesClustersAndCooperativeKernelsAsSuch) {
    launch().grid = {Expression::parse("4")};
    launch().cluster = {Expression::parse("2")};
    launch().cooperative = true;
    EXPECT_EQ(launched(), "grid 4 1 1, cluster 2, cooperative 1\n");
}

TEST_F(AsCpp, LaunchesARepeatedKernelThatOften) {
    launch().repeat = Expression::parse("2");
    EXPECT_EQ(launched(), "plain 1 1 1, 32 1 1, 0, first 7\nplain 1 1 1, 32 1 1, 0, first 7\n");
}

TEST_F(AsCpp, LaunchesAKernelWithoutArguments) {
    launch().arguments.clear();
    EXPECT_EQ(launched(), "plain 1 1 1, 32 1 1, 0\n");
}

TEST_F(AsCpp, TakesScalarsAtEachLaunch) {
    op_.scalars.push_back({.name = "count", .dtype = DType::i64, .fallback = std::int64_t{5}});
    launch().arguments.insert(launch().arguments.begin(), {.expression = Expression::parse("count")});
    EXPECT_EQ(launched(", 42"), "plain 1 1 1, 32 1 1, 0, first 42\n");
    EXPECT_THAT(header(), testing::HasSubstr("/// count: a value of each launch; 5 where this was timed.\n"));
}

// Goal: a scalar that cannot change without the problem becoming another one is no parameter; and nothing is settled in
// silence.
TEST_F(AsCpp, SaysWhatItSettles) {
    op_.scalars.push_back({.name = "beta", .dtype = DType::f32, .fallback = 0.0, .check = {0.0}});
    op_.fields.push_back({.name = "no_c", .kind = Field::Kind::flag, .from = Expression::parse("beta == 0")});
    launch().arguments.push_back({.expression = Expression::parse("beta")});
    launch().arguments.push_back({.expression = Expression::parse("f32(beta + 1)")});
    launch().arguments.push_back({.expression = Expression::parse("i64(n)")});
    const std::string text = header();
    EXPECT_THAT(text, testing::HasSubstr("};  // beta = 0.0, so that no_c = true\n"));
    EXPECT_THAT(text, testing::HasSubstr("};  // f32(beta + 1), beta = 0.0, so that no_c = true\n"));
    EXPECT_THAT(text, testing::HasSubstr("};  // i64(n)\n"));
    EXPECT_EQ(launched(), "plain 1 1 1, 32 1 1, 0, first 7\n");

    op_.scalars[0].fallback = 0.5;
    EXPECT_THAT(header(),
                testing::HasSubstr("/// beta: a value of each launch; 0.5 where this was timed. It has to keep "
                                   "no_c = false.\n"));
    EXPECT_EQ(launched(", 0.25f"), "plain 1 1 1, 32 1 1, 0, first 7\n");
}

TEST_F(AsCpp, TakesTensorsByNamesThatHaveAnotherMeaningThere) {
    for (const char* name : {"kernel", "stream", "a0", "arguments", "default", "new"}) {
        rename_tensor(name);
        EXPECT_EQ(launched(), "plain 1 1 1, 32 1 1, 0, first 7\n") << name;
    }
}

// Goal: a text of a problem or the name of a device in somebody's database is no code here.
TEST_F(AsCpp, ATextOfTheRecordStaysAComment) {
    problem_.fields.emplace_back("note", std::string{"a\n#error code\r\n#error code"});
    device_ = "b\n#error code";
    EXPECT_EQ(launched(), "plain 1 1 1, 32 1 1, 0, first 7\n");
    EXPECT_THAT(header(), testing::StartsWith("// made_up n=64 note=a #error code  #error code on b #error code: "));
}

TEST_F(AsCpp, SymbolsAreNamed) {
    op_.variants[0].symbols.push_back({.name = "d_filter", .from = "y", .each_launch = false});
    EXPECT_THAT(header(), testing::HasSubstr("Before the first sequence: copy the tensor y to the variable d_filter of "
                                             "k.cu"));
}

TEST(AsToml, ATextOfTheRecordStaysAComment) {
    Record record;
    record.source = {.op = "x", .variant = "k"};
    record.device.name = "b\nevil = 1";
    EXPECT_EQ(record_as_toml(record).find("\nevil"), std::string::npos);
}

}  // namespace
}  // namespace autotune
