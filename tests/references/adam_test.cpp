#include <cmath>

#include "tests/references/reference_run.h"

extern "C" int autotune_reference_adam(const autotune_call* call);

namespace autotune {
namespace {

struct Tensors {
    std::vector<std::int64_t> ends;
    std::vector<float> rate, decay;
};

test::ReferenceRun step(const std::vector<float>& p, const std::vector<float>& g, const Tensors& list) {
    const auto count = static_cast<std::int64_t>(p.size()), tensors = static_cast<std::int64_t>(list.ends.size());
    const std::vector<float> zero(p.size());
    test::ReferenceRun run;
    run.number("beta1", 0.5)
        .number("beta2", 0.75)
        .number("eps", 0)
        .number("correction1", 0.5)
        .number("correction2", 0.25);
    run.inout("p", AUTOTUNE_F32, p, {count}).in("g", AUTOTUNE_F32, g, {count});
    run.inout("m", AUTOTUNE_F32, zero, {count}).inout("v", AUTOTUNE_F32, zero, {count});
    run.in("ends", AUTOTUNE_I64, list.ends, {tensors}).in("rate", AUTOTUNE_F32, list.rate, {tensors});
    return run.in("decay", AUTOTUNE_F32, list.decay, {tensors}).run(autotune_reference_adam);
}

TEST(AdamReference, StepsByTheRateAgainstTheSignAtFirst) {
    const auto run = step({1.0f, 1.0f}, {8.0f, -0.5f}, {{2}, {0.25f}, {0.0f}});
    EXPECT_EQ(run.value("p"), (std::vector<double>{0.75, 1.25}));
    EXPECT_EQ(run.value("m"), (std::vector<double>{4.0, -0.25}));
    EXPECT_EQ(run.value("v"), (std::vector<double>{16.0, 0.0625}));
}

TEST(AdamReference, PullsTowardsZeroByTheDecay) {
    EXPECT_EQ(step({2.0f}, {1.0f}, {{1}, {0.5f}, {0.25f}}).value("p")[0], 2.0 - 0.5 * (1.0 + 0.25 * 2.0));
}

TEST(AdamReference, GivesEachTensorItsRate) {
    // The second tensor is empty; what lies behind the last end is the last tensor's.
    const auto run = step({0, 0, 0, 0}, {1, 1, 1, 1}, {{1, 1, 3}, {1.0f, 2.0f, 4.0f}, {0.0f, 0.0f, 0.0f}});
    EXPECT_EQ(run.value("p"), (std::vector<double>{-1, -4, -4, -4}));
}

}  // namespace
}  // namespace autotune
