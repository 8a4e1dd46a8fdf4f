#include "tuner/model/keyed_problem.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "autotune/error.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/model/op_set.h"

namespace autotune {
namespace {

constexpr DeviceLimits hopper{.cc = 90, .sm_count = 132, .max_shared = 232448, .shared_per_sm = 233472};

const Op& op(std::string_view name) {
    static const OpSet ops;
    return ops.find(name);
}

Instance back(const Instance& instance) {
    return instance_of_key(instance.op(), instance.problem().fields, instance.key_json(), instance.key(), hopper);
}

const BoundTensor& tensor(const Instance& instance, std::string_view name) {
    return *std::ranges::find(instance.tensors(), name, &BoundTensor::name);
}

TEST(KeyedProblem, APackedProblemComesBackAsItWas) {
    const Instance asked = Instance::make(op("softmax"), {{"rows", std::int64_t{5}}}, hopper);
    EXPECT_EQ(back(asked).key(), asked.key());
    EXPECT_TRUE(tensor(back(asked), "x").contiguous);
}

TEST(KeyedProblem, LowAlignmentComesBack) {
    const Instance asked = Instance::make(op("softmax"), {}, hopper, {.align = {{"x", 4}, {"y", 2}}});
    const Instance made = back(asked);
    EXPECT_EQ(made.key(), asked.key());
    EXPECT_EQ(tensor(made, "x").align, 4);
    EXPECT_EQ(tensor(made, "y").align, 2);
}

TEST(KeyedProblem, PitchedRowsComeBackPitchedAndAsWellAligned) {
    const std::int64_t cols = 4096;
    for (const std::int64_t pad : {1, 2, 8, 64}) {
        const Instance asked =
            Instance::make(op("softmax"), {{"cols", cols}}, hopper, {.strides = {{"ldx", cols + pad}}});
        const Instance made = back(asked);
        EXPECT_EQ(made.key(), asked.key()) << pad;
        EXPECT_FALSE(tensor(made, "x").contiguous);
        EXPECT_TRUE(tensor(made, "y").contiguous);
        EXPECT_EQ(tensor(made, "x").align, tensor(asked, "x").align) << pad;
    }
}

// Goal: attention over [batch, seq, heads, head_dim] memory is rebuilt as such, not as the packed default.
TEST(KeyedProblem, DimensionsInAnotherOrderComeBackInAnotherOrder) {
    const Instance packed = Instance::make(op("attention"), {}, hopper);
    const auto& shape = tensor(packed, "q").shape;
    const std::int64_t row = shape[1] * shape[3];
    const Instance asked = Instance::make(
        op("attention"), {}, hopper, {.strides = {{"q_batch", row * shape[2]}, {"q_head", shape[3]}, {"q_row", row}}});
    ASSERT_NE(asked.key(), packed.key());
    const Instance made = back(asked);
    EXPECT_EQ(made.key(), asked.key());
    EXPECT_LT(tensor(made, "q").strides[1], tensor(made, "q").strides[2]);
    EXPECT_EQ(tensor(made, "k").strides, tensor(packed, "k").strides);
}

TEST(KeyedProblem, AKeyThatTheOpNoLongerHasIsRefused) {
    const Instance asked = Instance::make(op("softmax"), {}, hopper);
    std::vector<std::byte> key = asked.key();
    key.back() ^= std::byte{1};
    EXPECT_THROW(instance_of_key(asked.op(), asked.problem().fields, asked.key_json(), key, hopper), Error);
    EXPECT_THROW(instance_of_key(asked.op(), asked.problem().fields, "no json", key, hopper), Error);
}

}  // namespace
}  // namespace autotune
