#include <cmath>

#include "tests/references/reference_run.h"

extern "C" int autotune_reference_reduce(const autotune_call* call);
extern "C" int autotune_reference_argreduce(const autotune_call* call);

namespace autotune {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

using Axis = std::vector<std::int64_t>;  // outer, n, inner

test::ReferenceRun reduce(const char* kind, const std::vector<float>& x, const Axis& axis) {
    test::ReferenceRun run;
    run.number("outer", double(axis[0])).number("n", double(axis[1])).number("inner", double(axis[2]));
    run.word("kind", kind).in("x", AUTOTUNE_F32, x, axis).out("y", AUTOTUNE_F32, {axis[0], axis[2]});
    return run.run(autotune_reference_reduce);
}

std::vector<double> argreduce(const char* kind, const std::vector<float>& x, const Axis& axis) {
    test::ReferenceRun run;
    run.number("outer", double(axis[0])).number("n", double(axis[1])).number("inner", double(axis[2]));
    run.word("kind", kind).in("x", AUTOTUNE_F32, x, axis).out("y", AUTOTUNE_I64, {axis[0], axis[2]});
    return run.run(autotune_reference_argreduce).value("y");
}

TEST(ReduceReference, FoldsARowAsEachKindSays) {
    const std::vector<float> x{3.0f, -4.0f, 0.5f, 2.0f};
    const auto one = [&](const char* kind) { return reduce(kind, x, {1, 4, 1}).value("y")[0]; };
    EXPECT_EQ(one("sum"), 1.5);
    EXPECT_EQ(one("mean"), 0.375);
    EXPECT_EQ(one("prod"), -12.0);
    EXPECT_EQ(one("min"), -4.0);
    EXPECT_EQ(one("max"), 3.0);
    EXPECT_EQ(one("l1"), 9.5);
    EXPECT_EQ(one("l2"), std::sqrt(29.25));
}

TEST(ReduceReference, ReducesTheMiddleOfThreeDimensions) {
    const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // [2, 3, 2]
    EXPECT_EQ(reduce("sum", x, {2, 3, 2}).value("y"), (std::vector<double>{9, 12, 27, 30}));
}

TEST(ReduceReference, CountsErrorsInTheTermsOfSums) {
    const std::vector<float> x{100.0f, -100.0f};
    EXPECT_EQ(reduce("sum", x, {1, 2, 1}).magnitude("y")[0], 200.0);
    EXPECT_EQ(reduce("mean", x, {1, 2, 1}).magnitude("y")[0], 100.0);
    EXPECT_EQ(reduce("prod", x, {1, 2, 1}).magnitude("y")[0], 10000.0);
}

TEST(ReduceReference, GivesNaNWhereAnElementIs) {
    for (const char* kind : {"sum", "mean", "prod", "min", "max", "l1", "l2"})
        for (const std::vector<float>& x : {std::vector{nan, 1.0f}, std::vector{1.0f, nan}})
            EXPECT_TRUE(std::isnan(reduce(kind, x, {1, 2, 1}).value("y")[0])) << kind;
}

TEST(ReduceReference, TakesInfinitiesAsTheyAre) {
    EXPECT_EQ(reduce("max", {-inf, -inf}, {1, 2, 1}).value("y")[0], -inf);
    EXPECT_EQ(reduce("min", {inf, inf}, {1, 2, 1}).value("y")[0], inf);
    EXPECT_TRUE(std::isnan(reduce("sum", {-inf, inf}, {1, 2, 1}).value("y")[0]));
}

TEST(ArgreduceReference, NamesTheFirstOfEqualOnes) {
    EXPECT_EQ(argreduce("argmax", {1, 5, 5, -1}, {1, 4, 1}), std::vector<double>{1});
    EXPECT_EQ(argreduce("argmin", {5, 2, 7, 2}, {1, 4, 1}), std::vector<double>{1});
    EXPECT_EQ(argreduce("argmax", {-inf, -inf}, {1, 2, 1}), std::vector<double>{0});
    EXPECT_EQ(argreduce("argmax", {-0.0f, 0.0f}, {1, 2, 1}), std::vector<double>{0});
}

TEST(ArgreduceReference, NamesTheFirstNaN) {
    for (const char* kind : {"argmax", "argmin"})
        EXPECT_EQ(argreduce(kind, {1, inf, nan, -inf, nan}, {1, 5, 1}), std::vector<double>{2}) << kind;
}

TEST(ArgreduceReference, KeepsColumnsApart) {
    EXPECT_EQ(argreduce("argmin", {3, 1, 2, 2, 1, 3}, {1, 3, 2}), (std::vector<double>{2, 0}));
}

}  // namespace
}  // namespace autotune
