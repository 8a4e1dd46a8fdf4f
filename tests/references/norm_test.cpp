// The references of layernorm and rmsnorm, and of their backward passes.
#include <cmath>

#include "tests/references/reference_run.h"

extern "C" int autotune_reference_layernorm(const autotune_call* call);
extern "C" int autotune_reference_rmsnorm(const autotune_call* call);
extern "C" int autotune_reference_layernorm_backward(const autotune_call* call);
extern "C" int autotune_reference_rmsnorm_backward(const autotune_call* call);

namespace autotune {
namespace {

using test::ReferenceRun;
using Function = int (*)(const autotune_call*);

struct Call {
    Function function = autotune_reference_layernorm;
    std::vector<float> x, residual = {}, weight, bias = {};
    double eps = 0.0, offset = 0.0;
    const char* out = "same";
};

ReferenceRun forward(const Call& call) {
    const auto cols = static_cast<std::int64_t>(call.x.size());
    ReferenceRun run;
    run.number("rows", 1).number("cols", double(cols)).number("eps", call.eps).number("offset", call.offset);
    run.number("residual", !call.residual.empty()).number("bias", !call.bias.empty()).number("stats", 1);
    run.word("out", call.out).in("x", AUTOTUNE_F32, call.x, {1, cols}).in("weight", AUTOTUNE_F32, call.weight, {cols});
    run.in("residual", AUTOTUNE_F32, call.residual, {1, cols}).in("bias", AUTOTUNE_F32, call.bias, {cols});
    run.out("h", AUTOTUNE_F32, {1, cols}).out("y", AUTOTUNE_F32, {1, cols}).out("scale", AUTOTUNE_F32, {1});
    run.out("mean", AUTOTUNE_F32, {1}).out("rstd", AUTOTUNE_F32, {1}).run(call.function);
    return run;
}

TEST(NormReferences, AgreeWithRowsComputedByHand) {
    const ReferenceRun layer = forward({.x = {1.0f, 3.0f}, .weight = {10.0f, 20.0f}, .bias = {1.0f, 2.0f}});
    EXPECT_EQ(layer.value("y"), (std::vector<double>{-9.0, 22.0}));
    EXPECT_EQ(layer.value("mean")[0], 2.0);
    EXPECT_EQ(layer.value("rstd")[0], 1.0);
    const ReferenceRun rms =
        forward({.function = autotune_reference_rmsnorm, .x = {1.0f, 7.0f}, .weight = {5.0f, 10.0f}});
    EXPECT_EQ(rms.value("rstd")[0], 0.2);  // the mean square is 25
    EXPECT_DOUBLE_EQ(rms.value("y")[0], 1.0);
    EXPECT_DOUBLE_EQ(rms.value("y")[1], 14.0);
}

TEST(NormReferences, NormaliseTheSumWithTheResidual) {
    const ReferenceRun run = forward({.x = {1.0f, 1.0f}, .residual = {0.0f, 2.0f}, .weight = {1.0f, 1.0f}});
    EXPECT_EQ(run.value("h"), (std::vector<double>{1.0, 3.0}));
    EXPECT_EQ(run.value("y"), (std::vector<double>{-1.0, 1.0}));
}

TEST(NormReferences, AddTheOffsetToEachWeight) {
    EXPECT_EQ(forward({.x = {1.0f, 3.0f}, .weight = {0.0f, 1.0f}, .offset = 1.0}).value("y"),
              (std::vector<double>{-1.0, 2.0}));
}

TEST(NormReferences, GiveConstantRowsTheBias) {
    EXPECT_EQ(forward({.x = {5.0f, 5.0f}, .weight = {3.0f, 3.0f}, .bias = {0.5f, 0.0f}, .eps = 1e-5}).value("y"),
              (std::vector<double>{0.5, 0.0}));
}

TEST(NormReferences, QuantiseWithAScaleThatTakesTheLargestToTheLimit) {
    const ReferenceRun run = forward({.x = {1.0f, 3.0f}, .weight = {1.0f, 2.0f}, .out = "int8"});
    EXPECT_DOUBLE_EQ(run.value("scale")[0], 2.0 / 127);
    EXPECT_DOUBLE_EQ(run.value("y")[0], -63.5);
    EXPECT_DOUBLE_EQ(run.value("y")[1], 127.0);
    EXPECT_DOUBLE_EQ(forward({.x = {1.0f, 3.0f}, .weight = {1.0f, 2.0f}, .out = "e4m3"}).value("y")[1], 448.0);
    // A row of zeros has the least scale that there is.
    EXPECT_EQ(forward({.x = {1.0f, 1.0f}, .weight = {1.0f, 1.0f}, .eps = 1.0, .out = "int8"}).value("y")[0], 0.0);
}

TEST(NormReferences, HaveNoAnswerForARowWithNaN) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const char* const out : {"same", "e4m3"}) {
        const ReferenceRun run = forward({.x = {1.0f, nan}, .weight = {1.0f, 1.0f}, .out = out});
        for (const double y : run.value("y")) EXPECT_TRUE(std::isnan(y));
        if (std::string{out} != "same") {
            EXPECT_TRUE(std::isnan(run.value("scale")[0]));
        }
    }
}

ReferenceRun backward(Function function, const std::vector<float>& x, const std::vector<float>& dy,
                      const std::vector<float>& weight, const std::vector<float>& mean, const std::vector<float>& rstd,
                      const std::vector<float>& dh = {}) {
    const auto cols = static_cast<std::int64_t>(weight.size()), rows = static_cast<std::int64_t>(rstd.size());
    ReferenceRun run;
    run.number("rows", double(rows)).number("cols", double(cols)).number("offset", 0).number("bias", 1);
    run.number("dh", !dh.empty()).in("x", AUTOTUNE_F32, x, {rows, cols}).in("dy", AUTOTUNE_F32, dy, {rows, cols});
    run.in("weight", AUTOTUNE_F32, weight, {cols}).in("mean", AUTOTUNE_F32, mean, {rows});
    run.in("rstd", AUTOTUNE_F32, rstd, {rows}).in("dh", AUTOTUNE_F32, dh, {rows, cols});
    run.out("dx", AUTOTUNE_F32, {rows, cols}).out("dweight", AUTOTUNE_F32, {cols}).out("dbias", AUTOTUNE_F32, {cols});
    run.run(function);
    return run;
}

// Goal: the gradients are those of the forward pass.
// Method: the slope of sum(dy * y) by each x, from the forward reference a small step to either side.
TEST(NormReferences, HaveGradientsThatAreTheSlopesOfTheForwardPass) {
    const std::vector<float> x{0.5f, -1.25f, 2.0f, 0.75f}, weight{1.0f, 0.5f, -2.0f, 1.5f},
        dy{0.25f, 1.0f, -0.5f, 2.0f};
    for (const bool layer : {true, false}) {
        const Function function = layer ? autotune_reference_layernorm : autotune_reference_rmsnorm;
        const ReferenceRun at = forward({.function = function, .x = x, .weight = weight, .eps = 1e-5});
        const std::vector<float> mean{layer ? static_cast<float>(at.value("mean")[0]) : 0.0f};
        const ReferenceRun back =
            backward(layer ? autotune_reference_layernorm_backward : autotune_reference_rmsnorm_backward, x, dy, weight,
                     mean, {static_cast<float>(at.value("rstd")[0])});
        for (std::size_t c = 0; c < x.size(); ++c) {
            const float step = 1.0f / 1024;
            std::vector<float> more = x, less = x;
            more[c] += step;
            less[c] -= step;
            const ReferenceRun up = forward({.function = function, .x = more, .weight = weight, .eps = 1e-5});
            const ReferenceRun down = forward({.function = function, .x = less, .weight = weight, .eps = 1e-5});
            double slope = 0.0;
            for (std::size_t k = 0; k < x.size(); ++k)
                slope += static_cast<double>(dy[k]) * (up.value("y")[k] - down.value("y")[k]) / (2.0 * step);
            EXPECT_NEAR(back.value("dx")[c], slope, 1e-4) << layer << " " << c;
        }
    }
}

TEST(NormReferences, SumWeightGradientsOverRowsAndAddTheResidualBranch) {
    const ReferenceRun run = backward(autotune_reference_layernorm_backward, {1.0f, 3.0f}, {2.0f, 4.0f}, {1.0f},
                                      {0.0f, 1.0f}, {1.0f, 0.5f}, {10.0f, 20.0f});
    EXPECT_EQ(run.value("dweight")[0], 2.0 * 1.0 + 4.0 * 1.0);
    EXPECT_EQ(run.value("dbias")[0], 6.0);
    EXPECT_EQ(run.value("dx"), (std::vector<double>{8.0, 18.0}));  // 2 - 2 - 1 * 2 + 10, and (4 - 4 - 1 * 4) / 2 + 20
}

}  // namespace
}  // namespace autotune
