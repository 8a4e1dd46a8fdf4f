#include <cmath>

#include "tests/references/reference_run.h"

extern "C" int autotune_reference_rope(const autotune_call* call);

namespace autotune {
namespace {

struct Case {
    const char* convention = "half";
    int rot = 4;
    double base = 10000.0;
};

/// One head of 4 elements, q alone.
std::vector<double> turned(const std::vector<float>& x, std::int64_t position, const Case& how = {}) {
    test::ReferenceRun run;
    run.number("tokens", 1).number("q_heads", 1).number("kv_heads", 1).number("dim", 4).number("rot", how.rot);
    run.number("qkv", 0).number("base", how.base).word("convention", how.convention).word("angles", "computed");
    run.in("x", AUTOTUNE_F32, x, {1, 1, 4}).in("positions", AUTOTUNE_I64, std::vector<std::int64_t>{position}, {1});
    return run.out("q", AUTOTUNE_F32, {1, 1, 4}).run(autotune_reference_rope).value("q");
}

TEST(RopeReference, LeavesPositionZeroAlone) { EXPECT_EQ(turned({1, 2, 3, 4}, 0), (std::vector<double>{1, 2, 3, 4})); }

TEST(RopeReference, TurnsTheFirstPairByThePosition) {
    const auto half = turned({1, 0, 0, 0}, 2);
    EXPECT_NEAR(half[0], std::cos(2.0), 1e-15);
    EXPECT_NEAR(half[2], std::sin(2.0), 1e-15);
    const auto interleaved = turned({1, 0, 0, 0}, 2, {.convention = "interleaved"});
    EXPECT_NEAR(interleaved[0], std::cos(2.0), 1e-15);
    EXPECT_NEAR(interleaved[1], std::sin(2.0), 1e-15);
}

TEST(RopeReference, TurnsLaterPairsSlower) {
    const auto y = turned({0, 1, 0, 0}, 300, {.base = 100.0});  // the second pair: 300 * 100^(-2/4) = 30
    EXPECT_NEAR(y[1], std::cos(30.0), 1e-12);
    EXPECT_NEAR(y[3], std::sin(30.0), 1e-12);
}

TEST(RopeReference, LeavesWhatIsBeyondRot) {
    const auto y = turned({1, 2, 3, 4}, 7, {.rot = 2});
    EXPECT_NEAR(y[0], std::cos(7.0) - 2 * std::sin(7.0), 1e-15);
    EXPECT_EQ(y[2], 3.0);
    EXPECT_EQ(y[3], 4.0);
}

TEST(RopeReference, SplitsQkvAndTurnsNoV) {
    test::ReferenceRun run;
    run.number("tokens", 1).number("q_heads", 2).number("kv_heads", 1).number("dim", 2).number("rot", 2);
    run.number("qkv", 1).number("base", 10000).word("convention", "half").word("angles", "table");
    run.in("x", AUTOTUNE_F32, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {1, 4, 2});
    run.in("positions", AUTOTUNE_I64, std::vector<std::int64_t>{1}, {1});
    run.in("table", AUTOTUNE_F32, std::vector<float>{1, 0, 0, 1}, {2, 2});  // position 1: a quarter turn
    run.out("q", AUTOTUNE_F32, {1, 2, 2}).out("k", AUTOTUNE_F32, {1, 1, 2}).out("v", AUTOTUNE_F32, {1, 1, 2});
    run.run(autotune_reference_rope);
    EXPECT_EQ(run.value("q"), (std::vector<double>{-2, 1, -4, 3}));
    EXPECT_EQ(run.value("k"), (std::vector<double>{-6, 5}));
    EXPECT_EQ(run.value("v"), (std::vector<double>{7, 8}));
}

}  // namespace
}  // namespace autotune
