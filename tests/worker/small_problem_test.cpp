#include "tuner/worker/small_problem.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/occupancy.h"
#include "tuner/chains/chain_op.h"
#include "tuner/model/op_set.h"
#include "tuner/model/space.h"

namespace autotune {
namespace {

DeviceLimits ampere() {
    DeviceLimits limits = *limits_of_capability(86);
    limits.sm_count = 84;
    limits.memory_bytes = std::int64_t{48} << 30;
    return limits;
}

double elements_of(const Instance& instance) {
    double elements = 0;
    for (const BoundTensor& tensor : instance.tensors())
        if (tensor.present) elements += static_cast<double>(tensor.elements);
    return elements;
}

// Goal: every config of the default problems can be checked on something small on which it is valid.
TEST(SmallProblem, EveryConfigOfEveryOpHasOne) {
    const OpSet ops;
    for (const Op* op : ops.all()) {
        const Instance instance = Instance::make(*op, {}, ampere());
        const Space space = Space::make(instance);
        const std::size_t step = std::max<std::size_t>(1, space.size() / 50);
        for (std::size_t i = 0; i < space.size(); i += step) {
            const std::optional<Instance> small = small_problem(instance, space.config(i));
            ASSERT_TRUE(small) << op->name << " " << space.config(i).text();
            EXPECT_FALSE(small->objection(space.config(i))) << small->problem().text();
            EXPECT_LE(small->flops(), 6e8) << small->problem().text();
            EXPECT_LE(elements_of(*small), 6e6) << small->problem().text();
            EXPECT_EQ(small->binding().align, instance.binding().align);
            const std::vector<SourceSpec> checked = small->sources(space.config(i)),
                                          timed = instance.sources(space.config(i));
            ASSERT_EQ(checked.size(), timed.size());
            for (std::size_t s = 0; s < timed.size(); ++s) EXPECT_EQ(checked[s].hash(), timed[s].hash());
        }
    }
}

TEST(SmallProblem, OneThatIsSmallEnoughStaysAsItIs) {
    const OpSet ops;
    const Instance instance = Instance::make(
        ops.find("gemm"), {{"m", std::int64_t{33}}, {"n", std::int64_t{65}}, {"k", std::int64_t{17}}}, ampere());
    const std::optional<Instance> small = small_problem(instance, instance.default_config());
    ASSERT_TRUE(small);
    EXPECT_EQ(small->problem(), instance.problem());
}

// The naive variant writes the scores of all heads to memory, however short the heads are.
TEST(SmallProblem, WhatAConfigKeepsBetweenItsLaunchesCounts) {
    const OpSet ops;
    const Instance instance = Instance::make(ops.find("attention"), {{"head_dim", std::int64_t{1}}}, ampere());
    const std::optional<Instance> small = small_problem(instance, instance.default_config());
    ASSERT_TRUE(small);
    double scratch = 0;
    for (const ScratchBuffer& one : small->launches(instance.default_config(), 1).scratch)
        scratch += static_cast<double>(one.bytes);
    EXPECT_GT(scratch, 0);
    EXPECT_LE(scratch, 4e6);
}

// The extents of a chain's inputs are those of y, or 1: none of them can change alone.
TEST(SmallProblem, ExtentsThatFollowAnotherAreCutWithIt) {
    const Op op = chain_op("relu(x + bias) * scale");
    const Instance instance = Instance::make(
        op, {{"rows", std::int64_t{16384}}, {"cols", std::int64_t{4096}}, {"scale_rows", std::int64_t{1}}}, ampere());
    const std::optional<Instance> small = small_problem(instance, instance.default_config());
    ASSERT_TRUE(small);
    EXPECT_LE(elements_of(*small), 3e5);
    EXPECT_EQ(*small->problem().find("x_rows"), *small->problem().find("rows"));
    EXPECT_EQ(*small->problem().find("scale_rows"), Value{std::int64_t{1}});
}

TEST(SmallProblem, IsRaggedWhereTheConfigAllowsIt) {
    const OpSet ops;
    const Instance instance = Instance::make(ops.find("softmax"), {}, ampere());
    const std::optional<Instance> small = small_problem(instance, instance.default_config());
    ASSERT_TRUE(small);
    EXPECT_EQ(small->problem().text().substr(0, 8), "rows=19 ");
}

}  // namespace
}  // namespace autotune
