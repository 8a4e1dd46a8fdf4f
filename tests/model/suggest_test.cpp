#include "tuner/model/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace autotune {
namespace {

const std::vector<std::string> ops{"softmax", "gemm", "attention", "op"};

TEST(Suggest, FindsTheWordThatWasMeant) {
    EXPECT_EQ(suggestion("softmx", ops), "softmax");
    EXPECT_EQ(suggestion("gmem", ops), "gemm");
    EXPECT_EQ(suggestion("atention", ops), "attention");
    EXPECT_EQ(suggestion("opp", ops), "op");
}

TEST(Suggest, SaysNothingRatherThanSomethingFarOff) {
    EXPECT_EQ(suggestion("conv2d", ops), std::nullopt);
    EXPECT_EQ(suggestion("x", ops), std::nullopt);
    EXPECT_EQ(suggestion("", ops), std::nullopt);
    EXPECT_EQ(did_you_mean("conv2d", ops), "");
}

TEST(Suggest, NeverSuggestsTheWordTyped) {
    EXPECT_EQ(suggestion("gemm", std::vector<std::string>{"gemm"}), std::nullopt);
}

TEST(Suggest, CountsASwapOfNeighboursAsOneSlip) {
    EXPECT_EQ(edit_distance("rwos", "rows"), 1u);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
    EXPECT_EQ(edit_distance("", "abc"), 3u);
}

TEST(Suggest, EnumeratesAsPeopleDo) {
    EXPECT_EQ(enumerated(std::vector<std::string>{"m", "n", "k"}), "m, n and k");
    EXPECT_EQ(enumerated(std::vector<std::string>{"m"}), "m");
}

}  // namespace
}  // namespace autotune
