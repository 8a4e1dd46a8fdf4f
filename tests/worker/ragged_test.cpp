#include "tuner/worker/ragged.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "autotune/error.h"
#include "device/occupancy.h"
#include "tests/worker/bad_op.h"
#include "tuner/chains/chain_op.h"
#include "tuner/model/op_set.h"
#include "tuner/worker/reference_desk.h"

namespace autotune {
namespace {

std::vector<std::string> texts(const std::vector<Instance>& instances) {
    std::vector<std::string> all;
    for (const Instance& instance : instances) all.push_back(instance.problem().text());
    return all;
}

DeviceLimits limits() {
    DeviceLimits made = *limits_of_capability(90);
    made.sm_count = 132;
    return made;
}

TEST(Ragged, VariesEachDimensionAndTakesTheOpsList) {
    const Instance instance = bad_problem(limits(), 3000);
    EXPECT_THAT(texts(ragged_problems(instance, bad_kernel("good"), 2)),
                testing::UnorderedElementsAre("n=997", "n=2999", "n=3001", "n=1", "n=1000"));
}

TEST(Ragged, LeavesOutWhatCostsTooMuchAndTheProblemItself) {
    const Instance instance = bad_problem(limits(), 1000);
    EXPECT_THAT(texts(ragged_problems(instance, bad_kernel("good"), 1)),
                testing::UnorderedElementsAre("n=331", "n=999", "n=1"));
}

TEST(Ragged, LeavesOutWhereTheConfigMayNotRun) {
    Op op = bad_op();
    for (Variant& variant : op.variants)
        variant.constraints.push_back({.claim = "n splits into pairs", .holds = Expression::parse("n % 2 == 0")});
    const Instance instance = Instance::make(op, {{"n", std::int64_t{3000}}}, limits());
    EXPECT_THAT(texts(ragged_problems(instance, bad_kernel("good"), 2)), testing::ElementsAre("n=1000"));
}

TEST(Ragged, VariesWithADimensionThoseThatFollowIt) {
    const Op op = chain_op("x * scale");
    const Instance instance = Instance::make(
        op, {{"rows", std::int64_t{300}}, {"cols", std::int64_t{64}}, {"scale_cols", std::int64_t{1}}}, limits());
    std::vector<std::vector<std::int64_t>> shapes;
    for (const Instance& near : ragged_problems(instance, instance.default_config(), 2))
        for (const BoundTensor& tensor : near.tensors())
            if (tensor.name == "scale") shapes.push_back(tensor.shape);
    EXPECT_THAT(shapes,
                testing::IsSupersetOf({std::vector<std::int64_t>{1, 97, 1}, {1, 299, 1}, {1, 301, 1}, {1, 1, 1}}));
}

TEST(Ragged, PrimesAreFoundFromBelow) {
    EXPECT_EQ(prime_below(1365), 1361);
    EXPECT_EQ(prime_below(13), 13);
    EXPECT_EQ(prime_below(1), 2);
    EXPECT_EQ(prime_below(0), 2);
}

TEST(SmallProblems, AreOddSizedAndFew) {
    const std::vector<Instance> small = small_problems(bad_problem(limits(), 1 << 20));
    EXPECT_THAT(texts(small), testing::ElementsAre("n=37", "n=1000"));
}

/// Of what a reference on the device is compiled.
std::vector<std::string> reference_hashes(const Instance& instance) {
    std::vector<std::string> hashes;
    for (const SourceSpec& source : instance.reference_sources()) hashes.push_back(source.hash());
    return hashes;
}

// Goal: whatever is tuned, its reference on the device can be held against the CPU's on something small: else the CPU's
// runs at full size, for minutes. Method: every op's default problem, and with each choice and flag changed alone.
TEST(SmallProblems, ThereAreOfEveryOp) {
    const OpSet ops;
    for (const Op* op : ops.all()) {
        std::vector<GivenFields> asked{{}};
        for (const Field& field : op->fields) {
            if (!field.from.empty() || field.from_inputs) continue;
            for (const Value& choice : field.choices) asked.push_back({{field.name, choice}});
            if (field.kind == Field::Kind::flag)
                for (const bool value : {false, true}) asked.push_back({{field.name, value}});
        }
        int legal = 0;
        for (const GivenFields& fields : asked) {
            try {
                const Instance instance = Instance::make(*op, fields, limits());
                ++legal;
                EXPECT_TRUE(std::ranges::any_of(
                    small_problems(instance),
                    [&](const Instance& small) { return reference_hashes(small) == reference_hashes(instance); }))
                    << op->name << " " << instance.problem().text();
            } catch (const Error&) {  // no legal problem by itself
            }
        }
        EXPECT_GT(legal, 0) << op->name;
    }
}

// Goal: of a chain they are broadcast as the problem is, since each way is a kernel of its own.
TEST(SmallProblems, OfAChainHaveItsBroadcasts) {
    const Op op = chain_op("relu(x + bias) * scale");
    const Instance instance = Instance::make(op,
                                             {{"batch", std::int64_t{3}},
                                              {"rows", std::int64_t{5000}},
                                              {"cols", std::int64_t{4096}},
                                              {"bias_rows", std::int64_t{1}},
                                              {"bias_batch", std::int64_t{1}},
                                              {"scale_cols", std::int64_t{1}}},
                                             limits());
    const std::vector<Instance> small = small_problems(instance);
    ASSERT_FALSE(small.empty());
    EXPECT_EQ(reference_hashes(small.front()), reference_hashes(instance));
}

}  // namespace
}  // namespace autotune
