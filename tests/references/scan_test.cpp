#include <cmath>

#include "tests/references/reference_run.h"

extern "C" int autotune_reference_scan(const autotune_call* call);

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

}  // namespace
}  // namespace autotune
