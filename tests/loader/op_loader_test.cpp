#include "tuner/loader/op_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autotune/error.h"

namespace autotune {
namespace {

const std::filesystem::path examples = AUTOTUNE_SOURCE_DIR "/tests/loader/ops";

TEST(OpLoader, LoadsTheExamplesOfTheFormat) {
    const auto ops = load_op_folder(examples);
    std::vector<std::string> names;
    for (const Op& op : ops) names.push_back(op.name);
    EXPECT_THAT(names, testing::ElementsAre("conv2d", "gemm", "paged_attention"));
}

}  // namespace
}  // namespace autotune
