// Goal: every strategy keeps the promises of the interface.
// Method: each row of the table searches made-up spaces with made-up costs; no device is involved.
#include "tuner/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "autotune/error.h"
#include "tests/support/made_up_op.h"
#include "tuner/strategies/features.h"
#include "tuner/strategies/prior.h"

namespace autotune {
namespace {

using Cost = std::function<Outcome(const Config&)>;

Outcome timed(double time_us) { return {.ending = Ending::timed, .time_us = time_us}; }

/// A bowl with its bottom at A=7, B=3; one in five configs fails.
Outcome bowl(const Config& config) {
    const double a = number(config, "A"), b = number(config, "B");
    if (static_cast<int>(a * 3 + b * 7) % 5 == 4) return {.ending = Ending::compile_failed, .reason = "made up"};
    return timed(10 + (a - 7) * (a - 7) + (b - 3) * (b - 3));
}

class EveryStrategy : public testing::TestWithParam<std::string> {
protected:
    /// The sequence of asks in a search of `trials` with at most `window` outstanding, told in order.
    std::vector<std::size_t> search(const Cost& cost, std::size_t trials, std::uint64_t seed,
                                    std::size_t window = 4) const {
        const std::unique_ptr<Strategy> strategy = strategy_named(GetParam()).make(space, seed);
        strategy->tell(space.default_number(), cost(space.config(space.default_number())));
        std::vector<std::size_t> asked;
        std::size_t told = 0;
        while (asked.size() < trials) {
            const std::size_t room = std::min(window - (asked.size() - told), trials - asked.size());
            const std::vector<std::size_t> more = strategy->ask(room);
            EXPECT_LE(more.size(), room);
            asked.insert(asked.end(), more.begin(), more.end());
            if (told == asked.size()) break;
            strategy->tell(asked[told], cost(space.config(asked[told])));
            ++told;
        }
        return asked;
    }

    const Op op = made_up_op({{"A", 12}, {"B", 10}, {"C", 3}});
    const Instance instance = Instance::make(op, {}, made_up_limits());
    const Space space = Space::make(instance);
};

TEST_P(EveryStrategy, TriesEachConfigOnceAndTheWholeSpaceIfItMay) {
    const std::vector<std::size_t> asked = search(bowl, 100'000, 1);
    const std::set<std::size_t> distinct(asked.begin(), asked.end());
    EXPECT_EQ(distinct.size(), asked.size());
    EXPECT_EQ(asked.size(), space.size() - 1) << "all but the default, which was told";
    EXPECT_FALSE(distinct.contains(space.default_number()));
}

TEST_P(EveryStrategy, EqualSeedsGiveEqualSequences) { EXPECT_EQ(search(bowl, 100, 7), search(bowl, 100, 7)); }

TEST_P(EveryStrategy, ASpaceInWhichEverythingFailsIsSearchedToItsEnd) {
    const auto fails = [](const Config&) { return Outcome{.ending = Ending::wrong_result, .reason = "made up"}; };
    EXPECT_EQ(search(fails, 100'000, 3).size(), space.size() - 1);
}

TEST_P(EveryStrategy, ASpaceOfOneConfigIsDoneAtOnce) {
    const Op single = made_up_op({{"A", 1}});
    const Instance alone = Instance::make(single, {}, made_up_limits());
    const Space one = Space::make(alone);
    const std::unique_ptr<Strategy> strategy = strategy_named(GetParam()).make(one, 1);
    strategy->tell(0, timed(1));
    EXPECT_TRUE(strategy->ask(10).empty());
}

INSTANTIATE_TEST_SUITE_P(Table, EveryStrategy, testing::ValuesIn([] {
                             std::vector<std::string> names;
                             for (const StrategyEntry& row : strategies()) names.emplace_back(row.name);
                             return names;
                         }()),
                         [](const auto& row) { return row.param; });

class LocalStrategy : public EveryStrategy {};

TEST_P(LocalStrategy, FindsTheBottomOfABowlInAFractionOfTheSpace) {
    double best = 1e9;
    for (const std::size_t number : search(bowl, 100, 5, 1)) {
        const Outcome outcome = bowl(space.config(number));
        if (outcome.ok()) best = std::min(best, outcome.time_us);
    }
    EXPECT_EQ(best, 10.0);
}

INSTANTIATE_TEST_SUITE_P(Table, LocalStrategy, testing::Values("local"));

TEST(RandomStrategy, DifferentSeedsGiveDifferentSequences) {
    const Op op = made_up_op({{"A", 30}, {"B", 30}});
    const Instance instance = Instance::make(op, {}, made_up_limits());
    const Space space = Space::make(instance);
    EXPECT_NE(strategy_named("random").make(space, 1)->ask(20), strategy_named("random").make(space, 2)->ask(20));
}

TEST(Strategies, AreFoundByNameAndAnUnknownOneIsToldThoseThereAre) {
    EXPECT_EQ(strategy_named("local").name, "local");
    try {
        strategy_named("fastest");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::usage);
        EXPECT_TRUE(std::string{error.what()}.starts_with("there is no strategy 'fastest'; the strategies are guided, "));
    }
}

/// Every strategy behind a prior that expects the bowl to be elsewhere, and knows one config in three.
class BehindAPrior : public EveryStrategy {
protected:
    static double expected(const Config& config) {
        const double a = number(config, "A"), b = number(config, "B");
        return (a - 2) * (a - 2) + (b - 8) * (b - 8);
    }
    std::vector<std::size_t> ask_all(std::size_t window) const {
        std::vector<Expectation> expectations;
        for (std::size_t i = 0; i < space.size(); i += 3)
            if (i != space.default_number()) expectations.push_back({i, expected(space.config(i))});
        std::unique_ptr<Strategy> own = strategy_named(GetParam()).make(space, 5);
        own->tell(space.default_number(), bowl(space.config(space.default_number())));
        const std::unique_ptr<Strategy> strategy = make_prior(std::move(own), expectations, 16);
        std::vector<std::size_t> asked;
        for (std::size_t told = 0;; ++told) {
            const std::vector<std::size_t> more = strategy->ask(window - (asked.size() - told));
            asked.insert(asked.end(), more.begin(), more.end());
            if (told == asked.size()) return asked;
            strategy->tell(asked[told], bowl(space.config(asked[told])));
        }
    }
};

TEST_P(BehindAPrior, TheBestExpectedComeFirstAndNothingIsLeftOutOrTriedTwice) {
    for (const std::size_t window : {1u, 4u, 32u}) {
        const std::vector<std::size_t> asked = ask_all(window);
        const std::set<std::size_t> distinct(asked.begin(), asked.end());
        EXPECT_EQ(distinct.size(), asked.size());
        EXPECT_EQ(asked.size(), space.size() - 1);
        for (std::size_t i = 1; i < 16; ++i)
            EXPECT_LE(expected(space.config(asked[i - 1])), expected(space.config(asked[i])));
        for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(asked[i] % 3, 0u) << "no expectation, and first all the same";
    }
}

INSTANTIATE_TEST_SUITE_P(Table, BehindAPrior, testing::ValuesIn([] {
                             std::vector<std::string> names;
                             for (const StrategyEntry& row : strategies()) names.emplace_back(row.name);
                             return names;
                         }()),
                         [](const auto& row) { return row.param; });

TEST(Prior, WhatIsToldBeforeItsTurnIsNotAskedFor) {
    const Op op = made_up_op({{"A", 6}});
    const Instance instance = Instance::make(op, {}, made_up_limits());
    const Space space = Space::make(instance);
    const auto strategy = make_prior(strategy_named("exhaustive").make(space, 1), {{3, 1.0}, {5, 2.0}}, 2);
    strategy->tell(3, timed(1));
    EXPECT_EQ(strategy->ask(2), (std::vector<std::size_t>{5, 0}));
}

TEST(Prior, ASampleIsTheSameForASeedAndLeavesOutWhatIsKnown) {
    const Op op = made_up_op({{"A", 20}, {"B", 10}});
    const Instance instance = Instance::make(op, {}, made_up_limits());
    const Space space = Space::make(instance);
    const std::vector<std::size_t> known{1, 2, 3};
    const std::vector<std::size_t> sample = sample_of(space, known, 50, 4);
    EXPECT_EQ(sample.size(), 50u);
    EXPECT_EQ(sample, sample_of(space, known, 50, 4));
    EXPECT_NE(sample, sample_of(space, known, 50, 5));
    EXPECT_EQ(sample_of(space, known, 1000, 4).size(), space.size() - 3);
    for (const std::size_t number : known) EXPECT_EQ(std::ranges::count(sample, number), 0);
}

// A model keeps a number for each two levels of an axis, and there may be 65,535 values.
TEST(Features, AnAxisOfManyValuesIsSeenInSteps) {
    const Op op = made_up_op({{"A", 20'000}, {"B", 3}});
    const Instance instance = Instance::make(op, {}, made_up_limits());
    const Space space = Space::make(instance);
    std::vector<std::size_t> all(space.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    const Features features = features_of(space, all);
    ASSERT_EQ(features.columns.size(), 2U);
    const Features::Column& many = features.columns[0];
    EXPECT_EQ(many.levels, 1024U);
    // A runs slowest and its values ascend.
    std::size_t steps = 0;
    for (std::size_t i = 1; i < all.size(); ++i) {
        ASSERT_LE(many.level[i] - many.level[i - 1], 1) << i;
        ASSERT_GE(many.level[i], many.level[i - 1]) << i;
        steps += many.level[i] != many.level[i - 1];
    }
    EXPECT_EQ(steps, 1023U);
    EXPECT_EQ(std::set<std::uint64_t>(features.identity.begin(), features.identity.end()).size(), all.size());
}

}  // namespace
}  // namespace autotune
