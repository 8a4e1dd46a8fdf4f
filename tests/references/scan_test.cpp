#include <cmath>

#include "tests/references/reference_run.h"

extern "C" int autotune_reference_histogram(const autotune_call* call);
extern "C" int autotune_reference_scan(const autotune_call* call);
extern "C" int autotune_reference_unique(const autotune_call* call);

namespace autotune {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

test::ReferenceRun scan(const std::vector<float>& x, std::int64_t rows, bool exclusive) {
    const auto n = static_cast<std::int64_t>(x.size()) / rows;
    test::ReferenceRun run;
    run.number("rows", double(rows)).number("n", double(n)).number("exclusive", exclusive).word("dtype", "f32");
    return run.in("x", AUTOTUNE_F32, x, {rows, n}).out("y", AUTOTUNE_F32, {rows, n}).run(autotune_reference_scan);
}

TEST(ScanReference, SumsEachRowUpToAnElementOrBeforeIt) {
    EXPECT_EQ(scan({1, 2, 3, 10, 20, 30}, 2, false).value("y"), (std::vector<double>{1, 3, 6, 10, 30, 60}));
    EXPECT_EQ(scan({1, 2, 3, 10, 20, 30}, 2, true).value("y"), (std::vector<double>{0, 1, 3, 0, 10, 30}));
}

TEST(ScanReference, CountsErrorsInTheTermsSoFar) {
    EXPECT_EQ(scan({1, -2, 3}, 1, false).magnitude("y"), (std::vector<double>{1, 3, 6}));
}

TEST(ScanReference, WrapsWholeNumbersAround) {
    test::ReferenceRun run;
    run.number("rows", 1).number("n", 2).number("exclusive", 0).word("dtype", "i32");
    run.in("x", AUTOTUNE_I32, std::vector<std::int32_t>{2147483647, 2}, {1, 2}).out("y", AUTOTUNE_I32, {1, 2});
    EXPECT_EQ(run.run(autotune_reference_scan).value("y"), (std::vector<double>{2147483647, -2147483647}));
}

std::vector<double> histogram(const std::vector<float>& x, std::int64_t bins) {
    test::ReferenceRun run;
    run.number("bins", double(bins)).number("low", -1).number("high", 1).word("dtype", "f32");
    run.in("x", AUTOTUNE_F32, x, {static_cast<std::int64_t>(x.size())}).out("counts", AUTOTUNE_I64, {bins});
    return run.run(autotune_reference_histogram).value("counts");
}

TEST(HistogramReference, CountsBinsWithTheUpperEndInTheLast) {
    EXPECT_EQ(histogram({-1.0f, -0.51f, -0.5f, 0.0f, 0.99f, 1.0f}, 4), (std::vector<double>{2, 1, 1, 2}));
}

TEST(HistogramReference, LeavesOutWhatHasNoBin) {
    EXPECT_EQ(histogram({nan, inf, -inf, 1.5f, -1.5f, 0.5f}, 1), std::vector<double>{1});
}

TEST(HistogramReference, TakesAWholeNumberAsItsBin) {
    test::ReferenceRun run;
    run.number("bins", 3).number("low", -1).number("high", 1).word("dtype", "i32");
    run.in("x", AUTOTUNE_I32, std::vector<std::int32_t>{-1, 0, 2, 2, 3}, {5}).out("counts", AUTOTUNE_I64, {3});
    EXPECT_EQ(run.run(autotune_reference_histogram).value("counts"), (std::vector<double>{1, 0, 2}));
}

test::ReferenceRun unique(const std::vector<float>& x) {
    const auto n = static_cast<std::int64_t>(x.size());
    test::ReferenceRun run;
    run.in("x", AUTOTUNE_F32, x, {n}).inout("y", AUTOTUNE_F32, std::vector<float>(x.size(), 9.0f), {n});
    return run.out("counts", AUTOTUNE_I64, {1}).run(autotune_reference_unique);
}

TEST(UniqueReference, KeepsOneOfEachRunAndLeavesTheRestAlone) {
    const auto run = unique({1, 1, 2, 5, 5, 5});
    EXPECT_EQ(run.value("y"), (std::vector<double>{1, 2, 5, 9, 9, 9}));
    EXPECT_EQ(run.value("counts"), std::vector<double>{3});
}

TEST(UniqueReference, TakesZerosAndNaNsAsEqual) {
    EXPECT_EQ(unique({-0.0f, 0.0f, 1.0f, nan, nan}).value("counts"), std::vector<double>{3});
}

}  // namespace
}  // namespace autotune
