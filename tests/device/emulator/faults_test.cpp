// Goal: what no GPU tells: each kind of fault is reported with its kind and with the line that is to blame.
// Method: one small kernel a fault, whose faulty line carries the comment `// here`; a right one beside it says
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/device/emulator/kernel.h"

namespace autotune {
namespace {

using Kind = DeviceFault::Kind;
using testing::ContainsRegex;
using testing::HasSubstr;

struct Faulty {
    const char* name;
    Kind kind;
    const char* words;  ///< of the report
    const char* body;   ///< of kernel(int* x, int* y, int n): x has n elements, y too and is not written yet
    unsigned threads = 64;
    unsigned shared = 0;
    unsigned blocks = 1;
    const char* block = "(0,0,0)";  ///< that is to blame
};

/// The number of the line that `// here` stands on.
std::string marked_line(const std::string& source) {
    std::istringstream in{source};
    int number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.find("// here") != std::string::npos) return "kernel.cu:" + std::to_string(number);
    }
    return "no line is marked";
}

std::string source_of(const Faulty& fault) {
    return std::string{
               "#include <cuda_pipeline_primitives.h>\n"
               "extern \"C\" __global__ void kernel(int* x, int* y, int n) {\n"
               "const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"} +
           fault.body + "\n}\n";
}

constexpr int n = 64;

const Faulty faults[] = {
    {"ReadBehind", Kind::out_of_bounds, "0 bytes behind the end of argument 0 (256 bytes)",
     "y[i] = x[i + 1];  // here"},
    {"ReadFarBehind", Kind::out_of_bounds, "of argument 0", "y[i] = x[i + 900];  // here"},
    {"ReadBefore", Kind::out_of_bounds, "4 bytes before the start of argument 0", "y[i] = x[i - 1];  // here"},
    {"WriteBehind", Kind::out_of_bounds, "a store of 4 bytes", "if (i < n)\ny[i + 4] = 1;  // here"},
    {"WideReadOverTheEdge", Kind::out_of_bounds, "a load of 16 bytes",
     "const int4 v = reinterpret_cast<int4*>(x + 4)[i % 16];  // here\ny[i] = v.x + v.y + v.z + v.w;"},
    {"NullPointer", Kind::invalid_access, "null pointer",
     "int* p = reinterpret_cast<int*>(static_cast<long long>(n - 64));\ny[i] = p[i];  // here"},
    {"Misaligned", Kind::invalid_access, "misaligned",
     "y[i] = *reinterpret_cast<int*>(reinterpret_cast<char*>(x) + 1);  // here"},
    {"UninitialisedGlobal", Kind::invalid_access, "never written", "x[i] = y[i];  // here"},
    {"UninitialisedShared", Kind::invalid_access, "never written",
     "__shared__ int s[64];\nif (i != 5) s[i] = i;\n__syncthreads();\ny[i] = s[63 - i];  // here"},
    {"SharedBehind", Kind::out_of_bounds, "of shared memory",
     "extern __shared__ int s[];\ns[i] = i;  // here\n__syncthreads();\ny[i] = s[63 - i];", 64, 128},
    {"SharedFarOutside", Kind::out_of_bounds, "of shared memory",
     "__shared__ int s[64];\ns[i * 65536] = i;  // here\n__syncthreads();\ny[i] = s[0];"},
    {"SharedIntoTheNextArray", Kind::out_of_bounds, "shared memory",
     "__shared__ int s[64];\n__shared__ int t[64];\ns[i] = t[i] = i;\n__syncthreads();\ny[i] = t[63 - i] + s[i + x[i] "
     "- x[i] + 8];  // here"},
    {"LocalOutside", Kind::out_of_bounds, "local memory",
     "int a[8];\nfor (int k = 0; k < 8; ++k) a[k] = x[k];\ny[i] = a[x[i] * 0 + n * 1000];  // here"},
    {"WriteReadRace", Kind::race, "without a barrier between",
     "__shared__ int s[64];\ns[i] = i;\ny[i] = s[63 - i];  // here"},
    {"ReadWriteRace", Kind::race, "without a barrier between",
     "__shared__ int s[64];\ns[i] = i;\n__syncthreads();\nconst int v = s[63 - i];\ny[i] = v;\ns[i] = v + 1;  // here"},
    {"WriteWriteRace", Kind::race, "without a barrier between",
     "__shared__ int s[64];\ns[i % 32] = i;  // here\n__syncthreads();\ny[i] = s[i % 32];"},
    {"RaceInsideAWarp", Kind::race, "another lane of its warp",
     "__shared__ volatile int s[64];\ns[i] = i;\ny[i] = s[i ^ 1];  // here"},
    {"HalvesOfAWordRaceInsideAWarp", Kind::race, "another lane of its warp",
     "__shared__ volatile unsigned short s[64];\ns[i] = i;\ns[i] = s[i] + 1;\ny[i] = s[i ^ 1];  // here"},
    {"AtomicAndPlainRace", Kind::race, "an atomic access",
     "__shared__ int s;\nif (i == 0) s = 0;\n__syncthreads();\natomicAdd(&s, 1);\ny[i] = s;  // here"},
    {"NamedBarrierOfTheWrongHalf", Kind::race, "without a barrier between",
     "__shared__ int s[128];\ns[i] = i;\nif (i < 64) asm volatile(\"bar.sync 1, 64;\" ::: \"memory\");\nelse asm "
     "volatile(\"bar.sync 2, 64;\" ::: \"memory\");\nif (i < 64) y[i] = s[127 - i];  // here",
     128},
    {"AsyncCopyNotWaitedFor", Kind::race, "not waited for",
     "__shared__ int s[64];\n__pipeline_memcpy_async(s + i, x + i, 4);\n__pipeline_commit();\ny[i] = s[i];  // here"},
    {"AsyncCopyWithoutABarrier", Kind::race, "without a barrier between",
     "__shared__ int s[64];\n__pipeline_memcpy_async(s + i, x + i, "
     "4);\n__pipeline_commit();\n__pipeline_wait_prior(0);\ny[i] = s[63 - i];  // here"},
    {"DivergentBarrier", Kind::barrier_misuse, "only a part of a warp",
     "if (i % 2)\nasm volatile(\"bar.sync 0;\" ::: \"memory\");  // here\nelse\nasm volatile(\"bar.sync 0;\" ::: "
     "\"memory\");\ny[i] = i;"},
    {"BarriersOfTwoBranches", Kind::barrier_misuse, "only a part of a warp",
     "if (x[i] > 5) { y[i] = 1; asm volatile(\"bar.sync 0;\" ::: \"memory\"); }  // here\nelse { y[i] = 2; asm "
     "volatile(\"bar.sync 0;\" ::: \"memory\"); }"},
    {"NobodyElseArrives", Kind::deadlock, "never arrive",
     "if (i < 32) asm volatile(\"bar.sync 1, 64;\");  // here\ny[i] = i;"},
    {"CountsDiffer", Kind::barrier_misuse, "is said to take",
     "if (i < 32) asm volatile(\"bar.sync 1, 64;\");\nelse asm volatile(\"bar.sync 1, 32;\");  // here\ny[i] = i;"},
    {"LaneNotInItsMask", Kind::barrier_misuse, "not in the mask of its own",
     "y[i] = __shfl_xor_sync(0x0000ffff, i, 1);  // here"},
    {"MaskNamesAbsentLanes", Kind::barrier_misuse, "do not arrive",
     "if (i % 32 < 16) y[i] = __shfl_xor_sync(0xffffffff, i, 1);  // here\nasm volatile(\"bar.sync 0;\" ::: "
     "\"memory\");"},
    {"ShuffleFromAnAbsentLane", Kind::barrier_misuse, "does not take part",
     "if (i % 32 < 16)\ny[i] = __shfl_sync(0x0000ffff, i, 20);  // here"},
    {"NeverEnds", Kind::deadlock, "beyond the steps", "while (atomicAdd(x, 0) != 12345) {}  // here"},
    {"SpinsForALaterFlag", Kind::deadlock, "beyond the steps",
     "if (i == 0) y[0] = 0;\n__syncthreads();\nwhile (*reinterpret_cast<volatile int*>(y) == 0) {}  // here"},
    {"TwoBlocksWriteOneWord", Kind::race, "with a store of block (0,0,0)", "y[threadIdx.x] = blockIdx.x + 1;  // here",
     64, 0, 2, "(1,0,0)"},
    {"ABlockReadsWhatAnotherWrites", Kind::race,
     "a load of global memory conflicts, with nothing that orders the blocks",
     "if (blockIdx.x == 0) y[threadIdx.x] = 7;\nelse x[threadIdx.x] = y[threadIdx.x] + 1;  // here", 64, 0, 2,
     "(1,0,0)"},
    {"ABlockWritesWhatAnotherReads", Kind::race, "at byte 128 of argument 0 (256 bytes), with a load of block (0,0,0)",
     "if (blockIdx.x == 0) y[threadIdx.x] = x[threadIdx.x];\nelse if (threadIdx.x > 31) x[threadIdx.x] = -9;  // here",
     64, 0, 2, "(1,0,0)"},
    {"ABlockWritesWhatManyRead", Kind::race, "with a load of other blocks",
     "if (blockIdx.x < 2) y[threadIdx.x] = x[threadIdx.x];\nelse if (threadIdx.x > 31) x[threadIdx.x] = -9;  // here",
     64, 0, 3, "(2,0,0)"},
    {"ABlockWritesAWordOfWhatAnotherReads", Kind::race,
     "at byte 132 of argument 0 (256 bytes), with a load of block (0,0,0)",
     "if (blockIdx.x == 0) reinterpret_cast<int4*>(y)[threadIdx.x] = reinterpret_cast<int4*>(x)[threadIdx.x];\nelse if "
     "(threadIdx.x == 1) x[33] = -9;  // here",
     16, 0, 2, "(1,0,0)"},
    {"ABlockCopiesWhatAnotherWrites", Kind::race, "a load of global memory conflicts",
     "__shared__ int s[64];\nif (blockIdx.x == 0) { y[threadIdx.x] = 7; return; }\n__pipeline_memcpy_async(s + "
     "threadIdx.x, y + threadIdx.x, 4);  // here\n__pipeline_commit();\n__pipeline_wait_prior(0);\nx[threadIdx.x] = "
     "s[threadIdx.x];",
     64, 0, 2, "(1,0,0)"},
    {"AFenceAloneOrdersNothing", Kind::race, "with a store of block (0,0,0)",
     "if (blockIdx.x == 0) y[threadIdx.x] = 7;\n__threadfence();\nif (blockIdx.x == 1) x[threadIdx.x] = "
     "y[threadIdx.x];  "
     "// here",
     64, 0, 2, "(1,0,0)"},
    {"Trap", Kind::crashed, "trap", "if (i == 3) __trap();  // here\ny[i] = i;"},
    {"Assertion", Kind::crashed, "the assertion 'i < 40'",
     "#undef NDEBUG\n#define STR(x) #x\nextern __device__ void __assertfail(const char*, const char*, unsigned, const "
     "char*, size_t);\nif (!(i < 40)) __assertfail(\"i < 40\", \"kernel.cu\", 9, \"kernel\", 1);  // here\ny[i] = i;"},
    {"NotEmulated", Kind::not_emulated, "not emulated: szext.wrap.s32",
     "int r; asm volatile(\"szext.wrap.s32 %0, %1, 7;\" : \"=r\"(r) : \"r\"(i));  // here\ny[i] = r;"},
};

class Faults : public testing::TestWithParam<Faulty> {};

TEST_P(Faults, AreReportedWithTheirLine) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    const Faulty& fault = GetParam();
    const std::string source = source_of(fault);
    EmulatorOptions options;
    options.steps = 2'000'000;
    Kernel kernel{compiled(source), "sm_80", options};
    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = i;
    kernel.buffer(x);
    kernel.empty(n * sizeof(int));
    try {
        kernel.run("kernel", {fault.blocks}, {fault.threads}, {BufferArgument{0}, BufferArgument{1}, value(n)},
                   fault.shared);
        FAIL() << "nothing was reported";
    } catch (const DeviceFailure& failure) {
        EXPECT_EQ(failure.fault().kind, fault.kind) << failure.what();
        EXPECT_THAT(failure.what(), HasSubstr(fault.words));
        EXPECT_THAT(failure.what(), ContainsRegex(marked_line(source) + "( |\\)|$)"));  // of a race, either side
        EXPECT_THAT(failure.what(), HasSubstr(std::string{"of 'kernel', block "} + fault.block + ", thread ("));
        EXPECT_FALSE(failure.fault().sticky);
    }
    // The device lives on.
    EXPECT_EQ(kernel.contents<int>(0)[5], 5);
}

INSTANTIATE_TEST_SUITE_P(All, Faults, testing::ValuesIn(faults),
                         [](const testing::TestParamInfo<Faulty>& one) { return std::string{one.param.name}; });

TEST(Faults, AReleasedBufferIsNotToBeTouched) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    Kernel kernel{compiled("extern \"C\" __global__ void kernel(int* x) { x[threadIdx.x] = 1; }")};
    kernel.empty(256);
    kernel.device->release(kernel.buffers[0]);
    try {
        kernel.run("kernel", {1}, {32}, {BufferArgument{0}});
        FAIL() << "nothing was reported";
    } catch (const DeviceFailure& failure) {
        EXPECT_EQ(failure.fault().kind, Kind::invalid_access);
        EXPECT_THAT(failure.what(), HasSubstr("memory that was released"));
    }
}

/// Right kernels that come near to each fault.
struct Right {
    const char* name;
    const char* body;
    unsigned threads = 64;
    unsigned blocks = 1;
};
const Right rights[] = {
    {"Barriers",
     "__shared__ int s[64];\ns[i] = i;\n__syncthreads();\nconst int v = s[63 - i];\n__syncthreads();\ns[i] = v;\ny[i] "
     "= s[i];"},
    {"WarpBarriers", "__shared__ int s[64];\ns[i] = i;\n__syncwarp();\ny[i] = s[i ^ 1];"},
    {"NamedBarriers",
     "__shared__ int s[128];\ns[i] = i;\nif (i < 64) { asm volatile(\"bar.sync 1, 64;\" ::: \"memory\"); y[i] = s[63 - "
     "i]; }\nelse asm volatile(\"bar.sync 2, 64;\" ::: \"memory\");",
     128},
    {"ArriveAndSync",
     "__shared__ int s[64];\nif (i < 32) { s[i] = i; asm volatile(\"bar.arrive 1, 64;\" ::: \"memory\"); }\nelse { asm "
     "volatile(\"bar.sync 1, 64;\" ::: \"memory\"); y[i] = s[63 - i]; }"},
    {"AsyncCopies",
     "__shared__ int s[64];\n__pipeline_memcpy_async(s + i, x + i, "
     "4);\n__pipeline_commit();\n__pipeline_wait_prior(0);\n__syncthreads();\ny[i] = s[63 - i];"},
    {"AtomicsOnly",
     "__shared__ int s;\nif (i == 0) s = 0;\n__syncthreads();\natomicAdd(&s, 1);\n__syncthreads();\ny[i] = s;"},
    {"ExitedLanes", "if (i % 32 >= 20) return;\ny[i] = __shfl_xor_sync(0x000fffff, i, 1);"},
    {"ExitBeforeABarrier", "if (i >= 32) return;\n__syncthreads();\ny[i] = i;"},
    {"MasksOfHalves",
     "if (i % 32 < 16) y[i] = __shfl_xor_sync(0x0000ffff, i, 1);\nelse y[i] = __shfl_xor_sync(0xffff0000, i, 1);"},
    {"SpinLock",
     "__shared__ int lock, sum;\nif (i == 0) lock = sum = 0;\n__syncthreads();\nbool done = false;\nwhile (!done) if "
     "(atomicCAS(&lock, 0, 1) == 0) { atomicAdd(&sum, 1); __threadfence_block(); atomicExch(&lock, 0); done = true; "
     "}\n__syncthreads();\ny[i] = atomicAdd(&sum, 0);"},
    {"BlocksWriteTheSame", "y[threadIdx.x] = 3;", 64, 3},
    {"BlocksReadTheSame", "y[i] = x[threadIdx.x];", 32, 2},
    {"BlocksHaveHalvesOfAWord", "reinterpret_cast<unsigned short*>(y)[2 * threadIdx.x + blockIdx.x] = i;", 64, 2},
    {"BlocksAddToOneWord", "atomicAdd(x, 1);\ny[i] = i;", 32, 2},
    {"TheLastBlockAddsUp",
     "__shared__ int before;\ny[i] = i;\n__threadfence();\n__syncthreads();\nif (threadIdx.x == 0) before = "
     "atomicAdd(x + 1, 1);\n__syncthreads();\nif (before == 2) y[32 + threadIdx.x] = y[threadIdx.x] + y[16 + "
     "threadIdx.x];",
     16, 2},
    {"ABlockWaitsForAFlag",
     "volatile int* flag = x;\nif (blockIdx.x == 0) {\ny[threadIdx.x] = 5;\n__threadfence();\n__syncthreads();\nif "
     "(threadIdx.x == 0) *flag = 77;\n} else {\nif (threadIdx.x == 0) while (*flag != 77) {}\n__syncthreads();\ny[32 + "
     "threadIdx.x] = y[threadIdx.x];\n}",
     32, 2},
    {"ALaterBlockSetsTheFlag",
     "volatile int* flag = x;\nif (blockIdx.x == 1) {\ny[threadIdx.x] = 5;\n__threadfence();\n__syncthreads();\nif "
     "(threadIdx.x == 0) *flag = 77;\n} else {\nif (threadIdx.x == 0) while (*flag != 77) {}\n__syncthreads();\ny[32 + "
     "threadIdx.x] = y[threadIdx.x];\n}",
     32, 2},
    {"HalvesOfAWordInTurn",
     "__shared__ volatile unsigned short s[64];\nfor (int round = 0; round < 3; ++round) {\nif (i % 2) s[i] = i;\nif "
     "(i % 2 == 0) s[i] = i;\ns[i] = s[i] + 1;\n__syncwarp();\ny[i] = s[i ^ 1];\n__syncwarp();\n}"},
    {"BytesOfOneWord", "__shared__ unsigned char s[64];\ns[i] = i;\n__syncthreads();\ny[i] = s[63 - i];", 64},
};

class RightKernels : public testing::TestWithParam<Right> {};

TEST_P(RightKernels, AreNotReported) {
    if (!no_compiler().empty()) GTEST_SKIP() << no_compiler();
    Faulty like{};
    like.body = GetParam().body;
    Kernel kernel{compiled(source_of(like))};
    kernel.buffer(std::vector<int>(n, 1));
    kernel.empty(n * sizeof(int));
    EXPECT_NO_THROW(kernel.run("kernel", {GetParam().blocks}, {GetParam().threads},
                               {BufferArgument{0}, BufferArgument{1}, value(n)}));
}

INSTANTIATE_TEST_SUITE_P(All, RightKernels, testing::ValuesIn(rights),
                         [](const testing::TestParamInfo<Right>& one) { return std::string{one.param.name}; });

}  // namespace
}  // namespace autotune
