#include "device/support.h"

#include <gtest/gtest.h>

#include "device/nvrtc.h"

namespace autotune {
namespace {

TEST(Support, CompilesForEveryArchitecture) {
    if (!nvrtc_if_present()) GTEST_SKIP() << "no NVRTC here";
    Compiler compiler;
    for (const int cc : nvrtc().archs) {
        const CompileResult result = compiler.compile(support_request("sm_" + std::to_string(cc)));
        ASSERT_TRUE(result.ok) << cc << ": " << result.log;
        EXPECT_EQ(result.artefact.kernels.size(), 3U);
        EXPECT_EQ(result.log.find("warning"), std::string::npos) << result.log;
        for (const KernelInfo& kernel : result.artefact.kernels) EXPECT_EQ(kernel.spill_bytes, 0) << kernel.name;
    }
}

// Goal: the bits are the host's. Method: a fused multiply-add would show in the PTX.
TEST(Support, FusesNothing) {
    if (!nvrtc_if_present()) GTEST_SKIP() << "no NVRTC here";
    Compiler compiler;
    const CompileResult result = compiler.compile(support_request("sm_90"));
    ASSERT_TRUE(result.ok) << result.log;
    EXPECT_EQ(result.artefact.ptx.find("fma."), std::string::npos);
    EXPECT_NE(result.artefact.ptx.find("mul.rn.f64"), std::string::npos);
}

}  // namespace
}  // namespace autotune
