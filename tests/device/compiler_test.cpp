#include "device/compiler.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "autotune/error.h"
#include "device/cubin.h"
#include "device/nvrtc.h"

namespace autotune {
namespace {

constexpr std::string_view templated = R"(// line 1
#include "part.cuh"
#ifdef __CUDACC_RTC__
#pragma nv_hdrstop
#endif
#ifndef WIDTH
#define WIDTH 1
#endif
template <class T, int N>
__global__ void __launch_bounds__(128) kern(T* x) { __shared__ T part[WIDTH * N]; part[threadIdx.x] = x[threadIdx.x];
  __syncthreads(); x[threadIdx.x] = part[threadIdx.x ^ 1] + two(); }
extern "C" __global__ void plain(float* x) { x[0] = WIDTH; }
)";
constexpr std::string_view part = "#include <cuda_fp16.h>\n__device__ inline float two() { return 2.0f; }\n";

CompileRequest request() {
    return {.name = "kern.cu",
            .source = std::string{templated},
            .headers = {{"part.cuh", std::string{part}}},
            .defines = {{"WIDTH", "32"}},
            .options = {},
            .entries = {"kern<float, 4>", "plain"},
            .arch = "sm_86"};
}

#define SKIP_WITHOUT_NVRTC() \
    if (!nvrtc_if_present()) GTEST_SKIP() << "no NVRTC here"

TEST(WithDefines, StandBehindTheHeaderStopAndKeepLineNumbers) {
    const std::string text = with_defines("a\n  #pragma nv_hdrstop\nb\n", "k.cu", std::vector<Define>{{"X", "4"}});
    EXPECT_EQ(text, "a\n  #pragma nv_hdrstop\n#define X 4\n#line 3 \"k.cu\"\nb\n");
}

TEST(WithDefines, StandBeforeTheFirstLineWithoutHeaderStop) {
    EXPECT_EQ(with_defines("a\n", "k.cu", std::vector<Define>{{"X", "4"}}), "#define X 4\n#line 1 \"k.cu\"\na\n");
}

TEST(WithDefines, RefuseWhatWouldBeCode) {
    EXPECT_THROW(with_defines("", "k.cu", std::vector<Define>{{"X", "4\nint y;"}}), Error);
    EXPECT_THROW(with_defines("", "k.cu", std::vector<Define>{{"X Y", "4"}}), Error);
    EXPECT_THROW(with_defines("", "k.cu", std::vector<Define>{{"", "4"}}), Error);
}

TEST(NearestArch, IsTheOneAskedForOrTheNextLower) {
    const std::array known{75, 80, 86, 90};
    EXPECT_EQ(nearest_arch("sm_86", known, "NVRTC"), "sm_86");
    EXPECT_EQ(nearest_arch("sm_90a", known, "NVRTC"), "sm_90a");
    EXPECT_EQ(nearest_arch("sm_89", known, "NVRTC"), "sm_86");
    EXPECT_EQ(nearest_arch("sm_120", known, "NVRTC"), "sm_90");
    EXPECT_THROW(nearest_arch("sm_70", known, "NVRTC 13.0"), Error);
    for (const char* bad : {"86", "sm_", "sm_x", "sm_90q", "compute_90"})
        EXPECT_THROW(nearest_arch(bad, known, "NVRTC"), Error) << bad;
}

TEST(Compiler, GivesCubinPtxAndNamesOfOneCompile) {
    SKIP_WITHOUT_NVRTC();
    Compiler compiler;
    const CompileResult result = compiler.compile(request());
    ASSERT_TRUE(result.ok) << result.log;
    EXPECT_EQ(result.artefact.arch, "sm_86");
    EXPECT_NE(result.artefact.ptx.find(".target sm_86"), std::string::npos);
    ASSERT_EQ(result.artefact.kernels.size(), 2U);
    for (const KernelInfo& kernel : result.artefact.kernels) {
        EXPECT_TRUE(kernel.name == "kern<float, 4>" || kernel.name == "plain") << kernel.name;
        EXPECT_GT(kernel.registers, 0);
        if (kernel.name == "plain") {
            EXPECT_EQ(kernel.symbol, "plain");
        }
        if (kernel.name == "kern<float, 4>") {
            EXPECT_EQ(kernel.static_shared_bytes, 32 * 4 * 4);
            EXPECT_EQ(kernel.max_threads, 128);
            EXPECT_NE(kernel.symbol, kernel.name);
            EXPECT_NE(result.artefact.ptx.find(kernel.symbol), std::string::npos);
        }
    }
}

TEST(Compiler, MessageNamesTheUsersOwnLine) {
    SKIP_WITHOUT_NVRTC();
    Compiler compiler;
    CompileRequest bad = request();
    bad.source += "nonsense here;\n";
    bad.precompiled_headers = false;
    const CompileResult result = compiler.compile(bad);
    EXPECT_FALSE(result.ok);
    EXPECT_NE(result.log.find("kern.cu(13)"), std::string::npos) << result.log;
}

// Goal: a binary is made of what its key holds.
// Method: a header that lies in the working folder and is no part of the request.
TEST(Compiler, TakesNoHeaderFromTheWorkingFolder) {
    SKIP_WITHOUT_NVRTC();
    std::string folder = testing::TempDir() + "autotune-compiler-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder);
    std::ofstream{"stray.cuh"} << "#define STRAY 1\n";
    CompileRequest bad = request();
    bad.source = "#include \"stray.cuh\"\n" + bad.source;
    const CompileResult result = Compiler{}.compile(bad);
    std::filesystem::current_path(before);
    std::filesystem::remove_all(folder);
    EXPECT_FALSE(result.ok);
    EXPECT_NE(result.log.find("kern.cu(1): catastrophic error: cannot open source file \"stray.cuh\""),
              std::string::npos)
        << result.log;
}

TEST(Compiler, TellsNoFolderOfThisMachineInWhatItMakes) {
    SKIP_WITHOUT_NVRTC();
    const CompileResult result = Compiler{}.compile(request());
    ASSERT_TRUE(result.ok) << result.log;
    const std::string folder = std::filesystem::current_path().string();
    const auto* bytes = reinterpret_cast<const char*>(result.artefact.cubin.data());
    EXPECT_EQ(std::string_view(bytes, result.artefact.cubin.size()).find(folder), std::string_view::npos);
    EXPECT_EQ(result.artefact.ptx.find(folder), std::string::npos);
    EXPECT_EQ(result.artefact.ptx.find("/dev/null"), std::string::npos);
}

// Goal: what is timed is what is shipped, whichever way it was compiled.
// Method: with a precompiled header, written first and then reused, and without.
TEST(Compiler, PrecompiledHeadersChangeNoByte) {
    SKIP_WITHOUT_NVRTC();
    Compiler compiler;
    CompileRequest plain = request();
    plain.precompiled_headers = false;
    const CompileResult without = compiler.compile(plain);
    const CompileResult first = compiler.compile(request());
    const CompileResult second = compiler.compile(request());
    ASSERT_TRUE(without.ok && first.ok && second.ok) << second.log;
    EXPECT_EQ(first.artefact.cubin, without.artefact.cubin);
    EXPECT_EQ(second.artefact.cubin, without.artefact.cubin);
    EXPECT_EQ(second.artefact.ptx, without.artefact.ptx);
}

TEST(Compiler, DefinesReachTheCodeBehindAPrecompiledHeader) {
    SKIP_WITHOUT_NVRTC();
    Compiler compiler;
    for (const char* width : {"32", "64", "128"}) {
        CompileRequest next = request();
        next.defines = {{"WIDTH", width}};
        const CompileResult result = compiler.compile(next);
        ASSERT_TRUE(result.ok) << result.log;
        for (const KernelInfo& kernel : result.artefact.kernels)
            if (kernel.name != "plain") {
                EXPECT_EQ(kernel.static_shared_bytes, std::stoi(width) * 16);
            }
    }
}

// A header of the same name with other contents: NVRTC itself would take the old one.
TEST(Compiler, ChangedHeaderIsNotAnsweredFromAnOldPrecompiledOne) {
    SKIP_WITHOUT_NVRTC();
    Compiler compiler;
    const CompileResult before = compiler.compile(request());
    CompileRequest changed = request();
    changed.headers[0].text = "#include <cuda_fp16.h>\n__device__ inline float two() { return 22.0f; }\n";
    const CompileResult after = compiler.compile(changed);
    changed.precompiled_headers = false;
    const CompileResult plain = compiler.compile(changed);
    ASSERT_TRUE(before.ok && after.ok && plain.ok) << after.log;
    EXPECT_NE(after.artefact.ptx, before.artefact.ptx);
    EXPECT_EQ(after.artefact.ptx, plain.artefact.ptx);
}

TEST(Compiler, UnknownOptionIsAnAnswer) {
    SKIP_WITHOUT_NVRTC();
    Compiler compiler;
    CompileRequest bad = request();
    bad.options = {"--no-such-option"};
    const CompileResult result = compiler.compile(bad);
    EXPECT_FALSE(result.ok);
    EXPECT_NE(result.log.find("no-such-option"), std::string::npos) << result.log;
}

TEST(Compiler, MissingCudaHeadersAreNoCandidatesFault) {
    SKIP_WITHOUT_NVRTC();
    Compiler compiler{std::span<const std::string>{}};
    EXPECT_THROW(compiler.compile(request()), Error);
    CompileRequest own = request();
    own.source = "extern \"C\" __global__ void k() {}\n";
    own.entries = {"k"};
    EXPECT_TRUE(compiler.compile(own).ok);
}

TEST(Compiler, CompilesHalfPrecisionHere) {
    SKIP_WITHOUT_NVRTC();
    EXPECT_EQ(compiler_trouble(), "");
}

// Goal: the cubin's own fields and the compiler's report agree, on every architecture that NVRTC knows.
// Method: one kernel with barriers, static shared memory, a stack frame and spills.
TEST(Cubin, AgreesWithTheCompilersReportOnEveryArchitecture) {
    SKIP_WITHOUT_NVRTC();
    Compiler compiler;
    CompileRequest job{.name = "spill.cu",
                       .source = R"(
extern "C" __global__ void __launch_bounds__(256, 8) spilling(float* x, int n) {
    __shared__ float part[300];
    float v[96];
    #pragma unroll
    for (int i = 0; i < 96; ++i) v[i] = x[threadIdx.x + i * n];
    part[threadIdx.x] = v[0];
    asm volatile("bar.sync 3, 64;");
    __syncthreads();
    float s = part[threadIdx.x ^ 1];
    #pragma unroll
    for (int i = 0; i < 96; ++i) for (int j = 0; j < i; j += 7) s += v[i] * v[j];
    for (int i = 0; i < 96; ++i) x[threadIdx.x + i * n] = v[i] * s;
}
extern "C" __global__ void indexed(int* x, int k) { int v[40]; for (int i = 0; i < 40; ++i) v[i] = x[i]; x[0] = v[k]; }
extern "C" __global__ void plain(int* x) { x[0] = 1; }
)",
                       .headers = {},
                       .defines = {},
                       .options = {},
                       .entries = {},
                       .arch = {}};
    for (const int arch : nvrtc().archs) {
        job.arch = "sm_" + std::to_string(arch);
        SCOPED_TRACE(job.arch);
        const CompileResult result = compiler.compile(job);
        ASSERT_TRUE(result.ok) << result.log;
        const Cubin cubin = read_cubin(result.artefact.cubin);
        EXPECT_EQ(cubin.cc, arch);
        const CompileLog log = read_compile_log(result.log);
        ASSERT_EQ(cubin.kernels.size(), 3U);
        ASSERT_EQ(log.functions.size(), 3U) << result.log;
        for (const CubinKernel& kernel : cubin.kernels)
            for (const CompiledFunction& said : log.functions)
                if (said.symbol == kernel.symbol) {
                    SCOPED_TRACE(kernel.symbol);
                    EXPECT_EQ(kernel.registers, said.registers);
                    EXPECT_EQ(kernel.static_shared_bytes, said.shared_bytes);
                    EXPECT_EQ(kernel.stack_bytes, said.stack_bytes);
                    EXPECT_EQ(kernel.barriers, said.barriers);
                    EXPECT_EQ(kernel.spills, said.spill_store_bytes + said.spill_load_bytes > 0);
                }
        for (const KernelInfo& kernel : result.artefact.kernels) {
            EXPECT_EQ(kernel.spill_bytes > 0, kernel.name == "spilling");
            EXPECT_EQ(kernel.max_threads, kernel.name == "spilling" ? 256 : 0);
        }
    }
}

TEST(Nvrtc, FindsTheHeadersOfHalfPrecision) {
    SKIP_WITHOUT_NVRTC();
    EXPECT_FALSE(cuda_include_folders().empty());
    EXPECT_FALSE(nvrtc().path.empty());
    EXPECT_GE(nvrtc().major, 12);
}

TEST(Nvrtc, AnIncludeFolderWithoutTheHeadersIsRefusedWhereItWasNamed) {
    ::setenv("AUTOTUNE_CUDA_INCLUDE", "/dev/null", 1);
    try {
        cuda_include_folders();
        ADD_FAILURE() << "it was ignored";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "AUTOTUNE_CUDA_INCLUDE is '/dev/null', which holds no cuda_fp16.h");
    }
    ::unsetenv("AUTOTUNE_CUDA_INCLUDE");
}

}  // namespace
}  // namespace autotune
