#include <numeric>

#include "tests/references/reference_run.h"

extern "C" int autotune_reference_copy(const autotune_call* call);
extern "C" int autotune_reference_permute(const autotune_call* call);
extern "C" int autotune_reference_transpose(const autotune_call* call);

namespace autotune {
namespace {

std::vector<float> counted(int count) {
    std::vector<float> x(static_cast<std::size_t>(count));
    std::iota(x.begin(), x.end(), 0.0f);
    return x;
}

TEST(CopyReference, CopiesEachElement) {
    test::ReferenceRun run;
    run.in("x", AUTOTUNE_F32, counted(6), {2, 3}).out("y", AUTOTUNE_F32, {2, 3}).run(autotune_reference_copy);
    EXPECT_EQ(run.value("y"), (std::vector<double>{0, 1, 2, 3, 4, 5}));
}

TEST(TransposeReference, SwapsTheLastTwoDimensionsOfEachBatch) {
    test::ReferenceRun run;
    run.number("batch", 2).number("rows", 2).number("cols", 3);
    run.in("x", AUTOTUNE_F32, counted(12), {2, 2, 3})
        .out("y", AUTOTUNE_F32, {2, 3, 2})
        .run(autotune_reference_transpose);
    EXPECT_EQ(run.value("y"), (std::vector<double>{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}));
}

std::vector<double> permute(int order, std::vector<std::int64_t> shape, std::vector<std::int64_t> to) {
    test::ReferenceRun run;
    run.number("d0", double(shape[0])).number("d1", double(shape[1]));
    run.number("d2", double(shape[2])).number("d3", double(shape[3])).number("order", order);
    run.in("x", AUTOTUNE_F32, counted(24), std::move(shape)).out("y", AUTOTUNE_F32, std::move(to));
    return run.run(autotune_reference_permute).value("y");
}

TEST(PermuteReference, TakesTheDimensionsInTheOrderOfTheDigits) {
    // 0213 of [1, 2, 3, 4]: rows of 4 change places.
    EXPECT_EQ(
        permute(213, {1, 2, 3, 4}, {1, 3, 2, 4}),
        (std::vector<double>{0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19, 8, 9, 10, 11, 20, 21, 22, 23}));
    // 3210 turns everything around: y[i, j, k, l] = x[l, k, j, i].
    EXPECT_EQ(permute(3210, {1, 2, 3, 4}, {4, 3, 2, 1})[1], 12.0);
    EXPECT_EQ(permute(3210, {1, 2, 3, 4}, {4, 3, 2, 1})[2], 4.0);
}

TEST(PermuteReference, LeavesTheOrderOfXAlone) {
    const std::vector<double> y = permute(123, {1, 2, 3, 4}, {1, 2, 3, 4});
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], static_cast<double>(i));
}

}  // namespace
}  // namespace autotune
