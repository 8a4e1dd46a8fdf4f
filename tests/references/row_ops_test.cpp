// The references of what works on rows beside softmax: values that can be worked out by hand, and the special rows.
#include <cmath>

#include "tests/references/reference_run.h"

extern "C" int autotune_reference_log_softmax(const autotune_call* call);
extern "C" int autotune_reference_masked_softmax(const autotune_call* call);
extern "C" int autotune_reference_softmax_backward(const autotune_call* call);
extern "C" int autotune_reference_cross_entropy(const autotune_call* call);

namespace autotune {
namespace {

using test::ReferenceRun;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float log2 = 0.6931472f, log5 = 1.6094379f;

std::vector<double> log_softmax(const std::vector<float>& x) {
    const auto cols = static_cast<std::int64_t>(x.size());
    ReferenceRun run;
    run.number("rows", 1).number("cols", double(cols)).in("x", AUTOTUNE_F32, x, {1, cols});
    run.out("y", AUTOTUNE_F32, {1, cols}).run(autotune_reference_log_softmax);
    for (const double magnitude : run.magnitude("y")) EXPECT_FALSE(magnitude == inf);
    return run.value("y");
}

TEST(LogSoftmaxReference, AgreesWithSharesComputedByHand) {
    const auto y = log_softmax({0.0f, log2, log5});  // 1 : 2 : 5
    EXPECT_NEAR(y[0], std::log(1.0 / 8), 1e-7);
    EXPECT_NEAR(y[1], std::log(2.0 / 8), 1e-7);
    EXPECT_NEAR(y[2], std::log(5.0 / 8), 1e-7);
}

TEST(LogSoftmaxReference, GivesMinusInfinityToWhatHasNoShare) {
    const auto y = log_softmax({-inf, 3.0f});
    EXPECT_EQ(y[0], -inf);
    EXPECT_EQ(y[1], 0.0);
}

TEST(LogSoftmaxReference, HasNoAnswerForRowsWithoutOne) {
    for (const std::vector<float>& row : {std::vector{-inf, -inf}, std::vector{inf, 0.0f}, std::vector{0.0f, nan}})
        for (const double y : log_softmax(row)) EXPECT_TRUE(std::isnan(y)) << row[0] << " " << row[1];
}

/// Of two heads of one query.
std::vector<double> masked_softmax(const std::vector<float>& x, const char* kind,
                                   const std::vector<unsigned char>& keep, const std::vector<float>& add, bool causal,
                                   int queries = 1) {
    const auto keys = static_cast<std::int64_t>(x.size()) / 2 / queries;
    const std::vector<std::int64_t> all{1, 2, queries, keys};
    ReferenceRun run;
    run.number("batch", 1).number("heads", 2).number("queries", queries).number("keys", double(keys));
    run.number("causal", causal).number("scale", 2.0).word("mask", kind).in("x", AUTOTUNE_F32, x, all);
    run.in("keep", AUTOTUNE_U8, keep, {1, queries, keys}).in("add", AUTOTUNE_F32, add, {2, queries, keys});
    run.out("y", AUTOTUNE_F32, all).run(autotune_reference_masked_softmax);
    return run.value("y");
}

TEST(MaskedSoftmaxReference, LeavesOutWhatIsMaskedWhateverItHolds) {
    const auto y = masked_softmax({nan, 0.0f, log2 / 2, inf, 1.0f, 1.0f}, "keep", {0, 1, 1}, {}, false);
    EXPECT_EQ(y[0], 0.0);
    EXPECT_NEAR(y[1], 1.0 / 3, 1e-7);
    EXPECT_NEAR(y[2], 2.0 / 3, 1e-7);
    EXPECT_EQ((std::vector<double>{y[3], y[4], y[5]}), (std::vector<double>{0.0, 0.5, 0.5}));
}

TEST(MaskedSoftmaxReference, AddsToEachHeadItsOwn) {
    const auto y = masked_softmax({0.0f, 0.0f, 0.0f, 0.0f}, "add", {}, {0.0f, log2, -inf, 0.0f}, false);
    EXPECT_NEAR(y[0], 1.0 / 3, 1e-7);
    EXPECT_NEAR(y[1], 2.0 / 3, 1e-7);
    EXPECT_EQ(y[2], 0.0);
    EXPECT_EQ(y[3], 1.0);
}

TEST(MaskedSoftmaxReference, IsZeroWhereARowSeesNothing) {
    for (const double y : masked_softmax({1.0f, nan, inf, 4.0f}, "keep", {0, 0}, {}, false)) EXPECT_EQ(y, 0.0);
    // Three queries of one key: the first two come before it.
    const auto y = masked_softmax(std::vector<float>(6, 1.0f), "none", {}, {}, true, 3);
    EXPECT_EQ(y, (std::vector<double>{0, 0, 1, 0, 0, 1}));
}

std::vector<double> backward(bool log, const std::vector<float>& y, const std::vector<float>& dy) {
    const auto cols = static_cast<std::int64_t>(y.size());
    ReferenceRun run;
    run.number("rows", 1).number("cols", double(cols)).number("log", log);
    run.in("y", AUTOTUNE_F32, y, {1, cols}).in("dy", AUTOTUNE_F32, dy, {1, cols}).out("dx", AUTOTUNE_F32, {1, cols});
    return run.run(autotune_reference_softmax_backward).value("dx");
}

TEST(SoftmaxBackwardReference, AgreesWithGradientsComputedByHand) {
    EXPECT_EQ(backward(false, {0.25f, 0.75f}, {4.0f, 0.0f}), (std::vector<double>{0.75, -0.75}));
    EXPECT_EQ(backward(true, {0.0f, -inf}, {3.0f, 1.0f}), (std::vector<double>{-1.0, 1.0}));
}

struct Loss {
    double loss;
    std::vector<double> dx;
};

Loss cross_entropy(const std::vector<float>& x, std::int64_t label, double smoothing = 0.0, double scale = 1.0) {
    const auto cols = static_cast<std::int64_t>(x.size());
    ReferenceRun run;
    run.number("rows", 1).number("cols", double(cols)).number("ignore", -100).number("smoothing", smoothing);
    run.number("scale", scale).number("gradient", 1).in("x", AUTOTUNE_F32, x, {1, cols});
    run.in("label", AUTOTUNE_I64, std::vector<std::int64_t>{label}, {1}).out("loss", AUTOTUNE_F32, {1});
    run.out("dx", AUTOTUNE_F32, {1, cols}).run(autotune_reference_cross_entropy);
    return {run.value("loss")[0], run.value("dx")};
}

TEST(CrossEntropyReference, AgreesWithALossComputedByHand) {
    const Loss got = cross_entropy({0.0f, log2, log5}, 1, 0.0, 2.0);
    EXPECT_NEAR(got.loss, std::log(4.0), 1e-7);
    EXPECT_NEAR(got.dx[0], 2.0 / 8, 1e-7);
    EXPECT_NEAR(got.dx[1], 2.0 * (2.0 / 8 - 1.0), 1e-7);
    EXPECT_NEAR(got.dx[2], 2.0 * 5.0 / 8, 1e-7);
}

TEST(CrossEntropyReference, SmoothsTowardsTheMeanOfAllClasses) {
    const Loss got = cross_entropy({0.0f, log2, log5}, 1, 0.3);
    EXPECT_NEAR(got.loss, std::log(8.0) - 0.7 * std::log(2.0) - 0.3 * std::log(10.0) / 3, 1e-6);
    EXPECT_NEAR(got.dx[0], 1.0 / 8 - 0.1, 1e-7);
    EXPECT_NEAR(got.dx[1], 2.0 / 8 - 0.8, 1e-7);
}

TEST(CrossEntropyReference, HasNoLossForIgnoredRowsAndNoAnswerForLabelsThatAreNoColumn) {
    const Loss ignored = cross_entropy({1.0f, nan}, -100);
    EXPECT_EQ(ignored.loss, 0.0);
    EXPECT_EQ(ignored.dx, (std::vector<double>{0.0, 0.0}));
    for (const std::int64_t label : {-1, 2}) {
        const Loss wrong = cross_entropy({1.0f, 2.0f}, label);
        EXPECT_TRUE(std::isnan(wrong.loss) && std::isnan(wrong.dx[0]) && std::isnan(wrong.dx[1])) << label;
    }
}

TEST(CrossEntropyReference, LivesWithClassesOfNoChance) {
    const Loss got = cross_entropy({-inf, 0.0f, 0.0f}, 1);
    EXPECT_NEAR(got.loss, std::log(2.0), 1e-12);
    EXPECT_EQ(got.dx, (std::vector<double>{0.0, -0.5, 0.5}));
}

TEST(CrossEntropyReference, OfOneClassIsNothing) {
    const Loss got = cross_entropy({7.0f}, 0);
    EXPECT_EQ(got.loss, 0.0);
    EXPECT_EQ(got.dx[0], 0.0);
}

}  // namespace
}  // namespace autotune
