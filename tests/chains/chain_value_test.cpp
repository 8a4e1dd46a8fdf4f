#include "tuner/chains/chain_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernel_templates/philox.cuh"

namespace autotune {
namespace {

ChainValue value(const std::string& text, std::vector<double> inputs, std::vector<double> scalars = {},
                 std::uint64_t element = 0) {
    return value_of(Chain::parse(text),
                    {.inputs = inputs, .scalars = scalars, .seed = 1, .offset = 0, .element = element});
}

TEST(ChainValue, IsWhatTheChainSays) {
    EXPECT_DOUBLE_EQ(value("relu(x + bias) * c", {1, 2, 0.5}).value, 1.5);
    EXPECT_DOUBLE_EQ(value("relu(x)", {-3}).value, 0);
    EXPECT_DOUBLE_EQ(value("x ** 3 - x / 4", {2}).value, 7.5);
    EXPECT_DOUBLE_EQ(value("0 < x < 1 ? x : -x", {3}).value, -3);
    EXPECT_DOUBLE_EQ(value("x > 0 and not x > 2 ? 1 : 0", {3}).value, 0);
    EXPECT_NEAR(value("gelu(x)", {1}).value, 0.84134474606854293, 1e-15);
    EXPECT_NEAR(value("gelu_tanh(x)", {1}).value, 0.84119199, 1e-8);
    EXPECT_NEAR(value("silu(x)", {1}).value, 0.73105857863000488, 1e-15);
    EXPECT_DOUBLE_EQ(value("f16(x)", {1.0 + 0x1p-12}).value, 1.0 + 0x1p-12);
    EXPECT_GE(value("f16(x)", {1.0 + 0x1p-12}).error, 0x1p-12);
}

TEST(ChainValue, PassesNanAndInfinityThrough) {
    const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
    for (const char* const text : {"relu(x)", "gelu(x)", "max(x, 0)", "min(0, x)", "abs(x)", "tanh(x)", "x * 0"})
        EXPECT_TRUE(std::isnan(value(text, {nan}).value)) << text;
    EXPECT_EQ(value("relu(x)", {infinity}).value, infinity);
    EXPECT_EQ(value("relu(x)", {infinity}).error, 0);
    EXPECT_EQ(value("exp(x)", {100}).value, infinity);
    EXPECT_EQ(value("sigmoid(x)", {-100}).value, 0);
}

// Goal: what a float computes lies within the bound, and the bound is no more than a few units for a few steps.
// Method: chains of steps that C++ rounds as a GPU does, over random operands of many sizes.
TEST(ChainValue, BoundsWhatAFloatComputes) {
    const Chain chain = Chain::parse("(x + a) * (x - a) / (a ** 2 + 1) - relu(x) * 0.1");
    std::mt19937_64 random{7};
    std::normal_distribution<float> normal;
    for (int i = 0; i < 20000; ++i) {
        const float x = std::ldexp(normal(random), static_cast<int>(random() % 20) - 10), a = normal(random);
        const volatile float sum = x + a, difference = x - a, product = sum * difference, square = a * a,
                             below = square + 1.0f, ratio = product / below, part = (x < 0 ? 0.0f : x) * 0.1f,
                             result = ratio - part;
        const double operands[] = {x, a};
        const ChainValue exact = value_of(chain, {.inputs = operands, .scalars = {}});
        ASSERT_LE(std::fabs(result - exact.value), exact.error) << x << " " << a;
        const double terms = std::fabs(static_cast<double>(ratio)) + std::fabs(static_cast<double>(part)) +
                             std::fabs(static_cast<double>(product));
        ASSERT_LE(exact.error, 16 * 0x1p-24 * (terms + 1e-30)) << x << " " << a;
    }
}

TEST(ChainValue, IsUnsureWhereFloatsMayChooseTheOtherSide) {
    // x * a may round to either side of b; the two sides differ by 10.
    const ChainValue unsure = value("x * a > b ? 10 : 0", {1.0 + 0x1p-23, 1.0 + 0x1p-23, 1.0 + 0x1p-22});
    EXPECT_GE(unsure.error, 10);
    EXPECT_EQ(value("x > b ? 10 : 0", {1.0 + 0x1p-23, 1.0}).error, 0);
}

TEST(ChainValue, DropsAsOftenAsAsked) {
    int dropped = 0;
    constexpr int count = 20000;
    for (int i = 0; i < count; ++i) {
        const double y = value("dropout(x, p)", {1}, {0.25}, static_cast<std::uint64_t>(i)).value;
        if (y == 0)
            ++dropped;
        else
            ASSERT_NEAR(y, 4.0 / 3, 1e-12);
    }
    EXPECT_NEAR(dropped, count / 4, 5 * std::sqrt(count * 0.25 * 0.75));
    EXPECT_EQ(value("dropout(x, 0)", {1}).value, 1);
    EXPECT_EQ(value("dropout(x, 1)", {1}).value, 0);
}

// Neighbours share 32 bits: of the four outcomes of a pair each comes as often as of two independent draws.
TEST(ChainValue, DropsNeighboursApart) {
    int both = 0, first = 0;
    constexpr int pairs = 20000;
    for (int i = 0; i < pairs; ++i) {
        const bool one = value("dropout(x, 0.5)", {1}, {}, static_cast<std::uint64_t>(2 * i)).value == 0;
        const bool other = value("dropout(x, 0.5)", {1}, {}, static_cast<std::uint64_t>(2 * i + 1)).value == 0;
        both += one && other ? 1 : 0;
        first += one && !other ? 1 : 0;
    }
    EXPECT_NEAR(both, pairs / 4, 5 * std::sqrt(pairs * 0.25 * 0.75));
    EXPECT_NEAR(first, pairs / 4, 5 * std::sqrt(pairs * 0.25 * 0.75));
}

TEST(ChainValue, IsTheSameOfNarrowResultsWithinItsWiderBound) {
    for (const char* const text : {"gelu(x)", "gelu_tanh(x)", "silu(x)", "sigmoid(x)"})
        for (double x = -20; x < 20; x += 0.37) {
            const double operands[] = {x};
            const Chain chain = Chain::parse(text);
            const ChainValue wide = value_of(chain, {.inputs = operands, .scalars = {}}),
                             narrow = value_of(chain, {.inputs = operands, .scalars = {}, .narrow = true});
            ASSERT_LE(std::fabs(narrow.value - wide.value), wide.error + narrow.error) << text << " " << x;
            ASSERT_LE(narrow.error, std::fabs(narrow.value) * 0x1p-17 * (1 + x * x) + 0x1p-120) << text << " " << x;
        }
}

// The known answers of the paper's library (Random123, kat_vectors).
TEST(PhiloxBits, AreThoseOfThePaper) {
    const Philox zero = philox<10>({{0, 0, 0, 0}}, 0, 0);
    EXPECT_EQ(zero.word[0], 0x6627e8d5u);
    EXPECT_EQ(zero.word[1], 0xe169c58du);
    EXPECT_EQ(zero.word[2], 0xbc57ac4cu);
    EXPECT_EQ(zero.word[3], 0x9b00dbd8u);
    const Philox ones = philox<10>({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u);
    EXPECT_EQ(ones.word[0], 0x408f276du);
    EXPECT_EQ(ones.word[1], 0x41c83b0eu);
    EXPECT_EQ(ones.word[2], 0xa20bc7c6u);
    EXPECT_EQ(ones.word[3], 0x6d5451fdu);
    const Philox seven = philox<7>({{0, 0, 0, 0}}, 0, 0);
    EXPECT_EQ(seven.word[0], 0x5f6fb709u);
    EXPECT_EQ(seven.word[1], 0x0d893f64u);
    EXPECT_EQ(seven.word[2], 0x4f121f81u);
    EXPECT_EQ(seven.word[3], 0x4f730a48u);
}

}  // namespace
}  // namespace autotune
