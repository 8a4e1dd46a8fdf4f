#include "tuner/model/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace autotune {
namespace {

TEST(Value, ReadsBackAsItWasWritten) {
    const Value values[] = {true,
                            false,
                            std::int64_t{0},
                            std::int64_t{-4096},
                            std::numeric_limits<std::int64_t>::max(),
                            std::numeric_limits<std::int64_t>::min(),
                            0.1,
                            1.0,
                            -0.5,
                            1e300,
                            5e-324,
                            123456789.125,
                            std::string{"bf16"},
                            std::string{"inf"},
                            std::string{"-"},
                            std::string{""}};
    for (const Value& value : values) EXPECT_EQ(value_from_text(to_text(value)), value) << to_text(value);
}

TEST(Value, WritesTheShortestTextAndKeepsWholeDoublesDoubles) {
    EXPECT_EQ(to_text(0.1), "0.1");
    EXPECT_EQ(to_text(2.0), "2.0");
    EXPECT_EQ(to_text(std::int64_t{2}), "2");
    EXPECT_EQ(to_text(true), "true");
}

TEST(Value, TakesWordsThatOnlyLookLikeNumbersAsWords) {
    for (const char* word : {"nan", "inf", "1x", "0x10", "1,2", "True", "--1"})
        EXPECT_EQ(value_from_text(word), Value{std::string{word}}) << word;
}

TEST(Value, MeansTheSameAcrossNumberTypesAndNeverAcrossWords) {
    EXPECT_TRUE(same_value(std::int64_t{4}, 4.0));
    EXPECT_TRUE(same_value(true, std::int64_t{1}));
    EXPECT_FALSE(same_value(std::int64_t{4}, 4.5));
    EXPECT_FALSE(same_value(std::int64_t{4}, std::string{"4"}));
    // A double cannot hold 2^53 + 1, so comparing through doubles would call these equal.
    EXPECT_FALSE(same_value((std::int64_t{1} << 53) + 1, 0x1p53));
}

}  // namespace
}  // namespace autotune
