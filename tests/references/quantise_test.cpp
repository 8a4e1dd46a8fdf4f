#include <cmath>

#include "tests/references/reference_run.h"

extern "C" int autotune_reference_quantise(const autotune_call* call);
extern "C" int autotune_reference_dequantise(const autotune_call* call);

namespace autotune {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct Quantised {
    std::vector<double> q, scale;
};

/// One row, one scale.
Quantised quantise(const char* format, const std::vector<float>& x, const char* scales = "row", int block = 128) {
    const auto cols = static_cast<std::int64_t>(x.size());
    const bool halved = std::string{format} == "int4";
    const std::int64_t groups = std::string{scales} == "block" ? cols / block : 1;
    test::ReferenceRun run;
    run.number("rows", 1)
        .number("cols", double(cols))
        .number("block", block)
        .word("format", format)
        .word("scales", scales);
    run.in("x", AUTOTUNE_F32, x, {1, cols}).out("q", AUTOTUNE_I8, {1, halved ? cols / 2 : cols});
    run.out("scale", AUTOTUNE_F32, {1, groups}).run(autotune_reference_quantise);
    return {run.value("q"), run.value("scale")};
}

TEST(QuantiseReference, ScalesTheLargestMagnitudeToTheLimit) {
    EXPECT_EQ(quantise("int8", {-127.0f, 63.4f, 1.0f}).q, (std::vector<double>{-127, 63, 1}));
    EXPECT_EQ(quantise("int8", {-127.0f}).scale[0], 1.0);
    EXPECT_EQ(quantise("e4m3", {1.0f, -448.0f}).q, (std::vector<double>{1, -448}));
    EXPECT_EQ(quantise("e5m2", {57344.0f, 3.0f}).q, (std::vector<double>{57344, 3}));
}

TEST(QuantiseReference, RoundsTiesToEven) {
    EXPECT_EQ(quantise("int8", {127.0f, 0.5f, 1.5f, -2.5f}).q, (std::vector<double>{127, 0, 2, -2}));
    // e4m3 has 8 steps an octave: 17 lies between 16 and 18, 19 between 18 and 20.
    EXPECT_EQ(quantise("e4m3", {448.0f, 17.0f, 19.0f}).q, (std::vector<double>{448, 16, 20}));
    // Its subnormals are whole numbers of 2^-9.
    EXPECT_EQ(quantise("e4m3", {448.0f, 0x1.8p-9f, 0x1p-10f}).q, (std::vector<double>{448, 0x1p-8, 0}));
}

TEST(QuantiseReference, PutsTheFirstOfTwoInTheLowHalf) {
    EXPECT_EQ(quantise("int4", {7.0f, -1.0f, -7.0f, 2.0f}).q, (std::vector<double>{0xf7, 0x29}));
}

TEST(QuantiseReference, GivesAGroupOfNothingZeros) {
    for (const char* format : {"int8", "int4", "e4m3", "e5m2"}) {
        const Quantised made = quantise(format, {0.0f, -0.0f, 0.0f, 0.0f});
        for (const double q : made.q) EXPECT_EQ(q, 0.0) << format;
        EXPECT_GT(made.scale[0], 0.0) << format;
    }
}

TEST(QuantiseReference, KeepsNaNOutOfTheScale) {
    const Quantised made = quantise("e4m3", {nan, 448.0f});
    EXPECT_TRUE(std::isnan(made.q[0]));
    EXPECT_EQ(made.q[1], 448.0);
    EXPECT_EQ(quantise("int8", {nan, 127.0f}).q, (std::vector<double>{0, 127}));
}

TEST(QuantiseReference, SaysAnInfinityByTheScale) {
    const Quantised made = quantise("int8", {inf, 5.0f});
    EXPECT_EQ(made.scale[0], inf);
    EXPECT_EQ(made.q, (std::vector<double>{0, 0}));
}

TEST(QuantiseReference, ScalesBlocksApart) {
    std::vector<float> x(32, 1.0f);
    for (std::size_t i = 16; i < 32; ++i) x[i] = 127.0f;
    const Quantised made = quantise("int8", x, "block", 16);
    EXPECT_EQ(made.scale, (std::vector<double>{1.0f / 127.0f, 1.0}));
    for (const double q : made.q) EXPECT_EQ(q, 127.0);
}

TEST(DequantiseReference, MultipliesByTheScaleOfTheGroup) {
    test::ReferenceRun run;
    run.number("rows", 2).number("cols", 2).number("block", 128).word("format", "int8").word("scales", "row");
    run.in("q", AUTOTUNE_I8, std::vector<std::int8_t>{1, -2, 3, -128}, {2, 2});
    run.in("scale", AUTOTUNE_F32, std::vector<float>{0.5f, 2.0f}, {2, 1}).out("y", AUTOTUNE_F32, {2, 2});
    run.run(autotune_reference_dequantise);
    EXPECT_EQ(run.value("y"), (std::vector<double>{0.5, -1, 6, -256}));
}

TEST(DequantiseReference, TakesHalvesOfBytesAsSigned) {
    test::ReferenceRun run;
    run.number("rows", 1).number("cols", 4).number("block", 128).word("format", "int4").word("scales", "tensor");
    run.in("q", AUTOTUNE_U8, std::vector<std::uint8_t>{0xf7, 0x08}, {1, 2});
    run.in("scale", AUTOTUNE_F32, std::vector<float>{1.0f}, {1, 1}).out("y", AUTOTUNE_F32, {1, 4});
    run.run(autotune_reference_dequantise);
    EXPECT_EQ(run.value("y"), (std::vector<double>{7, -1, -8, 0}));
}

}  // namespace
}  // namespace autotune
