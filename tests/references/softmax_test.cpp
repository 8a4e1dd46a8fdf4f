#include <autotune/reference.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

extern "C" int autotune_reference_softmax(const autotune_call* call);

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct Result {
    std::vector<double> value, magnitude;
};

/// Runs the reference over f32 rows of `cols` elements, `pitch` apart.
Result softmax(std::vector<float> x, std::int64_t cols, std::int64_t pitch, int threads = 1) {
    const auto rows = static_cast<std::int64_t>(x.size()) / pitch;
    const std::int64_t shape[] = {rows, cols}, strides[] = {pitch, 1}, packed[] = {cols, 1};
    const auto count = static_cast<std::size_t>(rows * cols);
    Result result{std::vector<double>(count, nan), std::vector<double>(count, nan)};
    const autotune_tensor_view tensors[] = {{.name = "x",
                                             .dtype = AUTOTUNE_F32,
                                             .role = AUTOTUNE_IN,
                                             .rank = 2,
                                             .shape = shape,
                                             .strides = strides,
                                             .data = x.data(),
                                             .value = nullptr,
                                             .magnitude = nullptr},
                                            {.name = "y",
                                             .dtype = AUTOTUNE_F32,
                                             .role = AUTOTUNE_OUT,
                                             .rank = 2,
                                             .shape = shape,
                                             .strides = packed,
                                             .data = nullptr,
                                             .value = result.value.data(),
                                             .magnitude = result.magnitude.data()}};
    const auto field = [](const char* name, std::int64_t value) {
        return autotune_field{.name = name, .integer = value, .real = static_cast<double>(value), .text = nullptr};
    };
    const autotune_field fields[] = {field("rows", rows), field("cols", cols)};
    char message[256] = "";
    const autotune_call call{.abi = AUTOTUNE_REFERENCE_ABI,
                             .threads = threads,
                             .seed = 0,
                             .tensor_count = 2,
                             .tensors = tensors,
                             .field_count = 2,
                             .fields = fields,
                             .message = message,
                             .message_size = sizeof message};
    EXPECT_EQ(autotune_reference_softmax(&call), 0) << message;
    return result;
}

Result softmax(const std::vector<float>& row) {
    const auto cols = static_cast<std::int64_t>(row.size());
    return softmax(row, cols, cols);
}

TEST(SoftmaxReference, AgreesWithSharesComputedByHand) {
    const float log2 = 0.6931472f, log5 = 1.6094379f;
    const auto y = softmax({0.0f, log2, log5}).value;  // 1 : 2 : 5
    EXPECT_NEAR(y[0], 1.0 / 8, 1e-7);
    EXPECT_NEAR(y[1], 2.0 / 8, 1e-7);
    EXPECT_NEAR(y[2], 5.0 / 8, 1e-7);
}

TEST(SoftmaxReference, GivesASingleElementExactlyOne) {
    for (const float x : {0.0f, -3.5f, 1e4f, -3e38f, 3e38f}) EXPECT_EQ(softmax({x}).value[0], 1.0) << x;
}

TEST(SoftmaxReference, SharesEquallyAmongEqualElements) {
    for (const double y : softmax(std::vector<float>(1000, 7.25f)).value) EXPECT_DOUBLE_EQ(y, 0.001);
}

TEST(SoftmaxReference, DoesNotOverflowFarFromZero) {
    const auto y = softmax({1e4f, 1e4f - 1.0f}).value;
    EXPECT_NEAR(y[0], 1.0 / (1.0 + std::exp(-1.0)), 1e-12);
    EXPECT_NEAR(y[0] + y[1], 1.0, 1e-15);
}

TEST(SoftmaxReference, GivesMinusInfinityNothing) {
    const auto y = softmax({-inf, 2.0f, -inf, 2.0f}).value;
    EXPECT_EQ(y, (std::vector<double>{0.0, 0.5, 0.0, 0.5}));
}

TEST(SoftmaxReference, HasNoAnswerForRowsWithoutOne) {
    for (const std::vector<float>& row : {std::vector{-inf, -inf}, std::vector{inf, 0.0f}, std::vector{0.0f, nan, 1.0f},
                                          std::vector{nan, nan}, std::vector{-inf, inf}})
        for (const double y : softmax(row).value) EXPECT_TRUE(std::isnan(y)) << row[0] << " " << row[1];
}

TEST(SoftmaxReference, KeepsRowsApartAndSkipsThePitch) {
    const auto y = softmax({0.0f, 0.0f, nan, nan, nan, 1.0f, inf, inf}, 2, 4).value;
    EXPECT_EQ(y[0], 0.5);
    EXPECT_EQ(y[1], 0.5);
    EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3]));
}

TEST(SoftmaxReference, BoundsTheErrorByTheDistanceToTheMaximum) {
    const auto [value, magnitude] = softmax({0.0f, -8.0f, -inf, -800.0f});
    EXPECT_DOUBLE_EQ(magnitude[0] / value[0], 8.5);         // 8 + sqrt(4) / 4
    EXPECT_DOUBLE_EQ(magnitude[1] / value[1], 8.5 + 10.0);  // + 1.25 * 8
    EXPECT_EQ(magnitude[2], 0.0);
    EXPECT_EQ(magnitude[3], 0.0);
}

TEST(SoftmaxReference, GivesTheSameOnManyThreads) {
    std::vector<float> x(64 * 33);
    std::iota(x.begin(), x.end(), -1000.0f);
    for (float& v : x) v = std::sin(v) * 9.0f;
    EXPECT_EQ(softmax(x, 33, 33, 1).value, softmax(x, 33, 33, 7).value);
}

}  // namespace
