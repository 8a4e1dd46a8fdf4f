#include "device/compile_log.h"

#include <gtest/gtest.h>

namespace autotune {
namespace {

TEST(CompileLog, TellsEachFunctionsResources) {
    const CompileLog log = read_compile_log(R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'gemm' for 'sm_90'
ptxas info    : Function properties for gemm
ptxas         .     136 bytes stack frame, 132 bytes spill stores, 140 bytes spill loads
ptxas info    : Used 255 registers, used 2 barriers, 136 bytes cumulative stack size, 4096 bytes smem
ptxas info    : Function properties for helper
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'copy' for 'sm_90'
ptxas info    : Function properties for copy
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 352 bytes cmem[0]
)");
    ASSERT_EQ(log.functions.size(), 3U);
    EXPECT_EQ(log.functions[0].symbol, "gemm");
    EXPECT_EQ(log.functions[0].registers, 255);
    EXPECT_EQ(log.functions[0].barriers, 2);
    EXPECT_EQ(log.functions[0].shared_bytes, 4096);
    EXPECT_EQ(log.functions[0].stack_bytes, 136);
    EXPECT_EQ(log.functions[0].spill_store_bytes, 132);
    EXPECT_EQ(log.functions[0].spill_load_bytes, 140);
    EXPECT_FALSE(log.functions[1].entry);
    EXPECT_EQ(log.functions[1].stack_bytes, 8);
    EXPECT_EQ(log.functions[2].symbol, "copy");
    EXPECT_EQ(log.functions[2].registers, 8);
    EXPECT_EQ(log.functions[2].barriers, 0);
}

TEST(CompileLog, FindsRemarksByNumber) {
    const CompileLog log = read_compile_log(
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register "
        "requirements.\n"
        "k.cu(3): warning #177-D: variable \"x\" (C) was declared\n"
        "ptxas info    : (C7600) something mild\n");
    ASSERT_EQ(log.remarks.size(), 2U);
    EXPECT_EQ(log.remarks[0].code, "C7508");
    EXPECT_TRUE(serialised(log.remarks[0]));
    EXPECT_FALSE(serialised(log.remarks[1]));
}

TEST(CompileLog, EmptyAndForeignTextGivesNothing) {
    EXPECT_TRUE(read_compile_log("").functions.empty());
    EXPECT_TRUE(read_compile_log("hello\n\n bytes stack frame\n registers Used\n(C\n(C12").functions.empty());
}

}  // namespace
}  // namespace autotune
