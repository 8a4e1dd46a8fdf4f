#include "device/compare.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "device/guards.h"

namespace autotune {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Comparison compared(std::vector<float> got, std::vector<double> want, const Bound& bound = {}) {
    const std::array<std::int64_t, 1> shape{static_cast<std::int64_t>(got.size())}, strides{1};
    return compare_on_host(std::as_bytes(std::span{got}), DType::f32, shape, strides, want, {}, bound, 0xff);
}

TEST(Compare, ErrorIsHeldAgainstAllThreeTermsOfTheBound) {
    const std::vector<float> got{1.5F};
    const std::vector<double> want{1.0}, magnitude{4.0};
    const std::array<std::int64_t, 1> shape{1}, strides{1};
    const auto judge = [&](const Bound& bound) {
        return compare_on_host(std::as_bytes(std::span{got}), DType::f32, shape, strides, want, magnitude, bound, 0)
            .bad;
    };
    EXPECT_EQ(judge({.of_value = 0.5}), 0U);
    EXPECT_EQ(judge({.of_value = 0.49}), 1U);
    EXPECT_EQ(judge({.of_magnitude = 0.125}), 0U);
    EXPECT_EQ(judge({.of_magnitude = 0.12}), 1U);
    EXPECT_EQ(judge({.absolute = 0.5}), 0U);
    EXPECT_EQ(judge({.of_value = 0.25, .of_magnitude = 0.0625}), 0U);
}

TEST(Compare, NanAndInfinitiesMatchByClass) {
    const auto f = [](double x) { return static_cast<float>(x); };
    EXPECT_EQ(compared({f(nan), f(infinity), f(-infinity)}, {nan, infinity, -infinity}).bad, 0U);
    const Comparison wrong =
        compared({1, f(nan), f(-infinity), f(nan), f(infinity)}, {nan, infinity, infinity, 1, 1}, {.absolute = 1e30});
    EXPECT_EQ(wrong.bad, 5U);
    EXPECT_EQ(wrong.not_finite, 2U);
}

TEST(Compare, OverflowOfTheTypeMayBecomeAnInfinity) {
    const std::array<std::uint16_t, 3> got{0x7c00, 0x7c00, 0xfc00};  // infinities of f16
    const std::vector<double> want{70000, 60000, 70000};
    const std::array<std::int64_t, 1> shape{3}, strides{1};
    const Comparison result =
        compare_on_host(std::as_bytes(std::span{got}), DType::f16, shape, strides, want, {}, {}, 0);
    EXPECT_EQ(result.bad, 2U);
    EXPECT_EQ(result.first_bad, 1U);
}

TEST(Compare, FirstBadElementIsReportedWithItsFacts) {
    const Comparison result = compared({1, 2, 9, 4, 9}, {1, 2, 3, 4, 5}, {.absolute = 2});
    EXPECT_EQ(result.elements, 5U);
    EXPECT_EQ(result.bad, 2U);
    EXPECT_EQ(result.first_bad, 2U);
    EXPECT_EQ(result.got, 9);
    EXPECT_EQ(result.want, 3);
    EXPECT_EQ(result.bound, 2);
    EXPECT_EQ(result.largest_ratio, 3);
}

TEST(Compare, ElementsNeverWrittenAreCounted) {
    std::vector<float> got(4, 1);
    std::memset(&got[2], 0xff, sizeof(float));
    const Comparison result = compared(got, {1, 1, 1, 2});
    EXPECT_EQ(result.bad, 2U);
    EXPECT_EQ(result.still_poison, 1U);
}

TEST(Compare, StridedOutputIsReadInRowMajorOrder) {
    // Two rows of three in a transposed layout with gaps.
    const std::vector<float> got{1, 4, -1, 2, 5, -1, 3, 7, -1};
    const std::vector<double> want{1, 2, 3, 4, 5, 6};
    const std::array<std::int64_t, 2> shape{2, 3}, strides{1, 3};
    const Comparison result =
        compare_on_host(std::as_bytes(std::span{got}), DType::f32, shape, strides, want, {}, {}, 0xff);
    EXPECT_EQ(result.bad, 1U);
    EXPECT_EQ(result.first_bad, 5U);
    EXPECT_EQ(result.got, 7);
}

TEST(Compare, NothingToCompareIsAllRight) { EXPECT_EQ(compared({}, {}).bad, 0U); }

TEST(Guards, NearestChangeCountsFromTheBuffer) {
    std::vector<std::byte> before(16), after(16);
    const auto mend = [&] {
        for (std::uint64_t i = 0; i < 16; ++i) {
            before[i] = guard_byte(100 + i);
            after[i] = guard_byte(131 + i);
        }
    };
    mend();
    EXPECT_FALSE(nearest_change(before, 100, after, 131));
    after[0] = std::byte{0};
    EXPECT_EQ(nearest_change(before, 100, after, 131), 0);
    mend();
    before[15] = std::byte{0};
    EXPECT_EQ(nearest_change(before, 100, after, 131), -1);
    after[3] = std::byte{0};
    EXPECT_EQ(nearest_change(before, 100, after, 131), -1);
    before[15] = guard_byte(115);
    before[0] = std::byte{0};
    EXPECT_EQ(nearest_change(before, 100, after, 131), 3);
}

}  // namespace
}  // namespace autotune
