// Goal: each instruction, shape of the tensor cores and atomic operation gives what the PTX manual says.
// Method: opcode_cases.cpp and matrix_cases.cpp on an emulated device; instructions in both builds of the hot unit.
#include <gtest/gtest.h>

#include "device/emulator/rows.h"
#include "tests/device/emulator/kernel_cases.h"

namespace autotune {
namespace {

class Opcodes : public testing::TestWithParam<const emulator::RowBuild*> {
protected:
    void SetUp() override {
#if defined(__x86_64__)
        if (GetParam() != &emulator::baseline_rows && !__builtin_cpu_supports("avx2"))
            GTEST_SKIP() << "this CPU has no AVX2";
#endif
        emulator::choose_row_build(GetParam());
    }
    void TearDown() override { emulator::choose_row_build(nullptr); }
};

TEST_P(Opcodes, GiveWhatTheManualSays) {
    for (const KernelCase& one : opcode_cases()) ASSERT_NO_THROW(one.run(emulated_ground("sm_90"))) << one.name;
}

#if defined(AUTOTUNE_ROWS_BASELINE_ONLY)
const std::vector<const emulator::RowBuild*> row_builds{&emulator::baseline_rows};
#else
const std::vector<const emulator::RowBuild*> row_builds{&emulator::baseline_rows, &emulator::fast_rows};
#endif

INSTANTIATE_TEST_SUITE_P(Builds, Opcodes, testing::ValuesIn(row_builds),
                         [](const auto& one) { return std::string{one.param->name}; });

class Matrices : public testing::TestWithParam<KernelCase> {};

TEST_P(Matrices, AreThoseOfPlainLoops) { ASSERT_NO_THROW(GetParam().run(emulated_ground("sm_90"))); }

INSTANTIATE_TEST_SUITE_P(All, Matrices, testing::ValuesIn(matrix_cases()),
                         [](const testing::TestParamInfo<KernelCase>& one) { return one.param.name; });

}  // namespace
}  // namespace autotune
