#include "tuner/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "autotune/error.h"
#include "tests/support/made_up_op.h"
#include "tests/support/scripted_bench.h"

namespace autotune {
namespace {

Outcome timed(double time_us) { return {.ending = Ending::timed, .samples_us = {time_us}, .time_us = time_us}; }
Outcome wrong() { return {.ending = Ending::wrong_result, .reason = "y[0] is 1, reference 2"}; }

class Tune : public testing::Test {
protected:
    Tuning run(ScriptedBench& bench, const TuneOptions& options, const TuneEvents& events = {}) const {
        return tune(bench, instance, options, events);
    }

    const Op op = made_up_op({{"VEC", 8}, {"ROWS", 6}});
    const Instance instance = Instance::make(op, {}, made_up_limits());
};

// Goal: a kernel that is fast but wrong never wins.
// Method: larger VEC is faster, and the largest one wrong.
TEST_F(Tune, KeepsTheFastestConfigThatIsCorrect) {
    ScriptedBench bench{
        [](const Config& config) { return number(config, "VEC") == 7 ? wrong() : timed(80 - number(config, "VEC")); }};
    const Tuning tuning = run(bench, {.strategy = "exhaustive"});
    ASSERT_TRUE(tuning.best.has_value());
    EXPECT_EQ(number(tuning.best->config, "VEC"), 6);
    EXPECT_EQ(tuning.counts.at(Ending::wrong_result), 6u);
    EXPECT_EQ(tuning.tried, 48u);
}

TEST_F(Tune, ASpaceInWhichNothingIsValidIsToldWithItsReason) {
    Op none = op;
    none.variants[0].constraints.push_back(
        {.claim = "VEC is more than it may be", .holds = Expression::parse("VEC > 99")});
    ScriptedBench bench{[](const Config&) { return timed(1); }};
    for (const Prior prior : {Prior::records, Prior::model}) try {
            tune(bench, Instance::make(none, {}, made_up_limits()), {.strategy = "guided", .prior = prior}, {});
            FAIL();
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), Error::Kind::nothing_found);
            EXPECT_NE(std::string{error.what()}.find("VEC is more than it may be"), std::string::npos) << error.what();
        }
    EXPECT_TRUE(bench.submitted.empty());
}

// Goal: what the GPU could not tell of a failure is told after all timing, once an ending, and the search is the same.
TEST_F(Tune, TheFirstFailureOfEachEndingIsExplainedWhenNothingIsTimedAnyMore) {
    const auto answer = [](const Config& config) {
        if (number(config, "VEC") == 7) return wrong();
        return number(config, "VEC") == 6 ? Outcome{.ending = Ending::crashed, .reason = "ILLEGAL"}
                                          : timed(80 - number(config, "VEC"));
    };
    ScriptedBench silent{answer}, bench{answer};
    int asked = 0;
    bench.explanation = [&](const Config&, const Outcome& outcome) {
        EXPECT_EQ(bench.verified.size(), 1u);
        ++asked;
        return outcome.ending == Ending::crashed ? std::string{"emulated: at a.cu:7"} : std::string{};
    };
    std::vector<Trial> explained;
    const Tuning tuning =
        run(bench, {.strategy = "exhaustive"}, {.explained = [&](const Trial& trial) { explained.push_back(trial); }});
    EXPECT_EQ(asked, 2);
    ASSERT_EQ(explained.size(), 1u);
    EXPECT_EQ(explained[0].outcome.reason, "ILLEGAL; emulated: at a.cu:7");
    EXPECT_EQ(number(explained[0].config, "VEC"), 6);
    const auto kept = std::ranges::find(tuning.failures_by_example, Ending::crashed,
                                        [](const Trial& trial) { return trial.outcome.ending; });
    ASSERT_NE(kept, tuning.failures_by_example.end());
    EXPECT_EQ(kept->outcome.reason, explained[0].outcome.reason);
    EXPECT_EQ(run(silent, {.strategy = "exhaustive"}).best->config, tuning.best->config);
}

TEST_F(Tune, TriesTheDefaultFirstAndKeepsItAFinalist) {
    ScriptedBench bench{[](const Config& config) { return timed(100 - number(config, "VEC") * 10); }};
    const Tuning tuning = run(bench, {.strategy = "random", .budget = {.trials = 20}});
    EXPECT_EQ(bench.submitted.front(), tuning.default_config);
    ASSERT_TRUE(tuning.default_result.has_value());
    EXPECT_EQ(tuning.default_result->config, tuning.default_config);
    EXPECT_FALSE(tuning.default_result->same_as_best);
}

// Goal: a compile that takes for ever takes no more than the budget, but the default's is waited for.
TEST_F(Tune, ATimeBudgetEndsThoughTrialsDoNot) {
    ScriptedBench bench{[](const Config& config) { return timed(100 - number(config, "VEC") * 10); }};
    std::size_t asked = 0;
    bench.hangs = [&](const Config& config) { return config == bench.submitted.front() ? ++asked < 1000 : true; };
    const Tuning tuning = run(bench, {.strategy = "random", .budget = {.seconds = 1e-9}});
    EXPECT_EQ(tuning.tried, 1u);
    EXPECT_GT(tuning.unfinished, 0u);
    EXPECT_EQ(tuning.unfinished + 1, bench.submitted.size());
    EXPECT_EQ(bench.cancelled, tuning.unfinished);
    EXPECT_EQ(asked, 1000u);
    ASSERT_TRUE(tuning.best.has_value());
    EXPECT_EQ(tuning.best->config, tuning.default_config);
}

TEST_F(Tune, ACountBudgetCountsFailuresAndTheDefault) {
    ScriptedBench bench{[](const Config& config) { return number(config, "ROWS") < 3 ? wrong() : timed(10); }};
    const Tuning tuning = run(bench, {.strategy = "random", .budget = {.trials = 17}});
    EXPECT_EQ(tuning.tried, 17u);
    EXPECT_EQ(bench.submitted.size(), 17u);
}

// Goal: compilers can begin before the problem is prepared.
TEST_F(Tune, TheBenchIsToldWhatWillBeSubmittedFirst) {
    for (const std::string strategy : {"exhaustive", "random", "local"}) {
        ScriptedBench bench{[](const Config& config) { return timed(100 - number(config, "VEC") * 10); }};
        run(bench, {.strategy = strategy, .budget = {.trials = 40}});
        ASSERT_GT(bench.expected.size(), 8u) << strategy;
        // The default comes first, and a strategy that asks for it, too, does not have it tried twice.
        const Config first = bench.expected.front();
        bench.expected.erase(std::remove(bench.expected.begin() + 1, bench.expected.end(), first),
                             bench.expected.end());
        EXPECT_TRUE(std::equal(bench.expected.begin(), bench.expected.end(), bench.submitted.begin())) << strategy;
    }
}

TEST_F(Tune, ASeedAndACountGiveTheSameTrialsAgain) {
    const auto answer = [](const Config& config) { return timed(50 + number(config, "VEC") - number(config, "ROWS")); };
    ScriptedBench first{answer}, second{answer};
    run(first, {.strategy = "local", .seed = 3, .budget = {.trials = 30}});
    run(second, {.strategy = "local", .seed = 3, .budget = {.trials = 30}});
    EXPECT_EQ(first.submitted, second.submitted);
}

TEST_F(Tune, NothingValidLeavesNoWinnerAndExamplesOfEachReason) {
    ScriptedBench bench{[](const Config& config) {
        return number(config, "VEC") < 4 ? wrong()
                                         : Outcome{.ending = Ending::timed_out, .reason = "still running after 10 s"};
    }};
    const Tuning tuning = run(bench, {.strategy = "exhaustive"});
    EXPECT_FALSE(tuning.best.has_value());
    EXPECT_TRUE(bench.verified.empty());
    EXPECT_EQ(tuning.failures_by_example.size(), 2u);
    EXPECT_EQ(bench.rounds_run, 0);
}

TEST_F(Tune, AWinnerThatFailsItsRecheckIsStruckOutAndTheNextTakesItsPlace) {
    ScriptedBench bench{[](const Config& config) {
        return timed(number(config, "ROWS") == 5 ? 10 + 0.01 * number(config, "VEC") : 90);
    }};
    bench.verification = [](const Config& config) {
        Verification v{.problems = 3, .inputs = 3};
        if (number(config, "VEC") < 2) v.failure = wrong();
        return v;
    };
    std::vector<Trial> told;
    const Tuning tuning = run(bench, {.strategy = "exhaustive"}, {.trial = [&](const Trial& t) { told.push_back(t); }});
    ASSERT_TRUE(tuning.best.has_value());
    EXPECT_EQ(number(tuning.best->config, "VEC"), 2);
    EXPECT_EQ(bench.verified.size(), 3u);
    EXPECT_EQ(tuning.counts.at(Ending::wrong_result), 2u);
    EXPECT_EQ(told.back().outcome.ending, Ending::wrong_result) << "the store must learn of it";
}

TEST_F(Tune, AWinnerWhoseRecheckIsInterruptedIsKeptAndTheRunIsInterrupted) {
    ScriptedBench bench{[](const Config& config) { return timed(50 - number(config, "VEC")); }};
    bench.verification = [](const Config&) -> Verification { throw Error{Error::Kind::interrupted, "made up"}; };
    const Tuning tuning = run(bench, {.strategy = "exhaustive"});
    EXPECT_TRUE(tuning.interrupted);
    EXPECT_TRUE(tuning.best.has_value());
    EXPECT_EQ(tuning.verification.inputs, 0);
}

/// VEC 1 is by far the fastest, and what is slower than it by 30 % is dropped for its sake; of the others VEC 7 is
/// best.
class TuneWithAFalseRecord : public Tune {
protected:
    TuneWithAFalseRecord()
        : bench{[this](const Config& config) {
              const double time_us = time_of(config);
              return bench.best_us > 0 && time_us > 1.3 * bench.best_us ? dropped(time_us) : timed(time_us);
          }} {
        bench.final_answer = [](const Config& config) { return timed(time_of(config)); };
    }
    static double time_of(const Config& config) {
        return number(config, "VEC") == 1 ? 1.0 : 30.0 - static_cast<double>(2 * number(config, "VEC"));
    }
    static Outcome dropped(double time_us) {
        return {.ending = Ending::dropped, .samples_us = {time_us}, .time_us = time_us};
    }
    static std::size_t sum_of(const std::map<Ending, std::size_t>& counts) {
        std::size_t sum = 0;
        for (const auto& [ending, count] : counts) sum += count;
        return sum;
    }
    ScriptedBench bench;
};

TEST_F(TuneWithAFalseRecord, WhatWasDroppedForAWinnerThatFailsItsRecheckIsTriedAgain) {
    bench.verification = [](const Config& config) {
        Verification v{.problems = 1, .inputs = 1};
        if (number(config, "VEC") == 1) v.failure = wrong();
        return v;
    };
    const Tuning tuning = run(bench, {.strategy = "exhaustive"});
    ASSERT_TRUE(tuning.best.has_value());
    EXPECT_EQ(number(tuning.best->config, "VEC"), 7);
    EXPECT_EQ(tuning.counts.at(Ending::wrong_result), 6u);
    EXPECT_EQ(tuning.tried, 48u);
    EXPECT_EQ(sum_of(tuning.counts), 48u);
    EXPECT_FALSE(tuning.verification.failure);
}

TEST_F(TuneWithAFalseRecord, WhatWasDroppedForAFinalistThatFailsInItsRoundsIsTriedAgain) {
    bench.final_answer = [](const Config& config) {
        return number(config, "VEC") == 1 ? Outcome{.ending = Ending::crashed, .reason = "signal 11"}
                                          : timed(time_of(config));
    };
    const Tuning tuning = run(bench, {.strategy = "exhaustive"});
    ASSERT_TRUE(tuning.best.has_value());
    EXPECT_EQ(number(tuning.best->config, "VEC"), 7);
    EXPECT_EQ(tuning.counts.at(Ending::crashed), 6u);
    EXPECT_EQ(sum_of(tuning.counts), 48u);
}

// Goal: a short while is left for them even where the budget is spent, and they are no new trials.
// Method: an earlier run knows all configs, those of VEC 1 as wrong, and the budget has no second left.
TEST_F(TuneWithAFalseRecord, WhatAnEarlierRunDroppedForAConfigThatFailedSinceIsTriedAgain) {
    const Space space = Space::make(instance);
    TuneOptions options{.strategy = "exhaustive", .budget = {.seconds = 0}};
    for (std::size_t i = 0; i < space.size(); ++i) {
        const Config config = space.config(i);
        const auto vec = number(config, "VEC");
        options.known.emplace_back(config, vec == 1   ? wrong()
                                           : vec == 0 ? timed(time_of(config))
                                                      : dropped(time_of(config)));
    }
    const Tuning tuning = run(bench, options);
    ASSERT_TRUE(tuning.best.has_value());
    EXPECT_EQ(number(tuning.best->config, "VEC"), 7);
    EXPECT_EQ(tuning.tried, 0u);
    EXPECT_EQ(tuning.resumed, 48u);
}

TEST_F(TuneWithAFalseRecord, AnInterruptionEndsTheTrialsOfWhatWasDropped) {
    bench.verification = [](const Config&) { return Verification{.problems = 1, .inputs = 1, .failure = wrong()}; };
    const Tuning tuning =
        run(bench, {.strategy = "exhaustive"}, {.stop_requested = [&] { return bench.submitted.size() > 50; }});
    EXPECT_TRUE(tuning.interrupted);
    EXPECT_LE(bench.submitted.size(), 48u + 40u);
    EXPECT_TRUE(tuning.best.has_value());
}

TEST_F(Tune, WhatAnEarlierRunKnowsIsToldAndNotTriedAgain) {
    const auto answer = [](const Config& config) { return timed(100 - number(config, "VEC")); };
    const Space space = Space::make(instance);
    TuneOptions options{.strategy = "exhaustive"};
    for (std::size_t i = 0; i < space.size(); i += 2)
        options.known.emplace_back(space.config(i), answer(space.config(i)));
    ScriptedBench bench{answer};
    const Tuning tuning = run(bench, options);
    EXPECT_EQ(tuning.resumed, 24u);
    EXPECT_EQ(tuning.tried, 24u);
    for (const auto& [config, outcome] : options.known)
        EXPECT_EQ(std::ranges::find(bench.submitted, config), bench.submitted.end());
    EXPECT_EQ(number(tuning.best->config, "VEC"), 7);
}

TEST_F(Tune, AnInterruptionEndsTheSearchKeepsTheBestAndSkipsTheRecheck) {
    ScriptedBench bench{[](const Config& config) { return timed(10 + number(config, "VEC")); }};
    std::size_t trials = 0;
    const Tuning tuning =
        run(bench, {.strategy = "exhaustive"},
            {.trial = [&](const Trial&) { ++trials; }, .stop_requested = [&] { return trials == 5; }});
    EXPECT_TRUE(tuning.interrupted);
    EXPECT_EQ(tuning.tried, 5u);
    EXPECT_GT(bench.cancelled, 0u);
    ASSERT_TRUE(tuning.best.has_value());
    EXPECT_TRUE(bench.verified.empty());
}

TEST_F(Tune, FinalsThatAreDisturbedAreTimedAgainAndThenKeptMarked) {
    ScriptedBench bench{[](const Config&) { return timed(10); }};
    bench.final_answer = [](const Config&) {
        Outcome outcome = timed(10);
        outcome.tainted = true;
        return outcome;
    };
    const Tuning tuning = run(bench, {.strategy = "exhaustive"});
    EXPECT_EQ(bench.rounds_run, 3);
    ASSERT_TRUE(tuning.best.has_value());
    EXPECT_TRUE(tuning.best->outcome.tainted);
}

TEST_F(Tune, ADroppedCandidateIsNoFinalist) {
    ScriptedBench bench{[](const Config& config) {
        return number(config, "VEC") == 0 ? timed(100)
                                          : Outcome{.ending = Ending::dropped, .samples_us = {50}, .time_us = 50};
    }};
    const Tuning tuning = run(bench, {.strategy = "exhaustive"});
    ASSERT_TRUE(tuning.best.has_value());
    EXPECT_EQ(number(tuning.best->config, "VEC"), 0);
}

TEST_F(Tune, AnUnknownStrategyIsBadUse) {
    ScriptedBench bench{[](const Config&) { return timed(1); }};
    EXPECT_THROW(run(bench, {.strategy = "magic"}), Error);
}

/// ROWS 4 is fastest; a model knows it, and something of VEC that is not so. It says nothing of VEC 3.
class TuneWithAPrior : public testing::Test {
protected:
    static Outcome answer(const Config& config) {
        return timed(100 + 10 * std::abs(number(config, "ROWS") - 4) + number(config, "VEC"));
    }
    static std::optional<double> prediction(const Config& config) {
        if (number(config, "VEC") == 3) return std::nullopt;
        return 50 + 10 * std::abs(number(config, "ROWS") - 4) - 0.1 * number(config, "VEC");
    }
    ScriptedBench search(std::uint64_t seed, std::size_t trials) {
        ScriptedBench bench{answer};
        bench.prediction = prediction;
        tuning = tune(bench, instance,
                      {.strategy = "random", .seed = seed, .budget = {.trials = trials}, .prior = Prior::model});
        return bench;
    }

    const Op op = made_up_op({{"VEC", 16}, {"ROWS", 32}});
    const Instance instance = Instance::make(op, {}, made_up_limits());
    Tuning tuning;
};

TEST_F(TuneWithAPrior, TriesTheBestPredictedAfterTheDefaultAndThenGoesOn) {
    const ScriptedBench bench = search(1, 60);
    ASSERT_EQ(bench.submitted.size(), 60u);
    EXPECT_EQ(bench.submitted.front(), tuning.default_config);
    std::vector<double> all;
    for (const Config& config : bench.asked_to_predict)
        if (prediction(config) && config != tuning.default_config) all.push_back(*prediction(config));
    std::ranges::sort(all);
    for (std::size_t i = 0; i < prior_first; ++i) EXPECT_EQ(prediction(bench.submitted[i + 1]), all[i]) << i;
    EXPECT_TRUE(std::ranges::any_of(bench.submitted, [](const Config& c) { return !prediction(c); }))
        << "what the model says nothing of has its turn as well";
}

TEST_F(TuneWithAPrior, SaysHowManyWerePredictedAndWhetherItWasRight) {
    const ScriptedBench bench = search(1, 60);
    ASSERT_TRUE(tuning.prior);
    EXPECT_EQ(tuning.prior->model, "made up");
    EXPECT_EQ(tuning.prior->asked, prior_pool);
    EXPECT_EQ(bench.asked_to_predict.size(), prior_pool);
    EXPECT_EQ(tuning.prior->first, prior_first);
    EXPECT_LT(tuning.prior->predicted, prior_pool);
    EXPECT_GT(tuning.prior->predicted, prior_pool * 3 / 4);
    EXPECT_GT(tuning.prior->compared, prior_first);
    EXPECT_GT(tuning.prior->rank_correlation.value(), 0.8);
}

TEST_F(TuneWithAPrior, ASeedAndACountGiveTheSameTrialsAgain) {
    EXPECT_EQ(search(3, 40).submitted, search(3, 40).submitted);
    EXPECT_NE(search(3, 40).submitted, search(4, 40).submitted);
}

TEST_F(TuneWithAPrior, WithoutAModelTheSearchIsTheUsualOne) {
    ScriptedBench without{answer}, usual{answer};
    TuneOptions options{.strategy = "local", .seed = 2, .budget = {.trials = 40}, .prior = Prior::model};
    const Tuning same = tune(without, instance, options);
    options.prior = Prior::none;
    tune(usual, instance, options);
    EXPECT_EQ(without.submitted, usual.submitted);
    EXPECT_EQ(same.prior->predicted, 0u);
    EXPECT_FALSE(same.prior->rank_correlation);
}

// Goal: a resumed search asks the model about what is new only.
TEST_F(TuneWithAPrior, WhatRecordsNameComesRightAfterTheDefaultWhereItIsValidAndNotKnown) {
    const auto config = [](int vec, int rows) {
        return Config{.variant = "k", .values = {{"VEC", vec}, {"ROWS", rows}}};
    };
    for (const Prior prior : {Prior::records, Prior::model}) {
        ScriptedBench bench{answer};
        bench.prediction = prediction;
        const Tuning led = tune(bench, instance,
                                {.strategy = "random",
                                 .budget = {.trials = 30},
                                 .known = {{config(2, 9), timed(150)}},
                                 .first = {config(5, 7), config(99, 1), config(2, 9), config(3, 8), config(5, 7)},
                                 .prior = prior});
        EXPECT_EQ(led.asked_first, 2u);
        ASSERT_GE(bench.submitted.size(), 3u);
        EXPECT_EQ(bench.submitted[0], led.default_config);
        EXPECT_EQ(bench.submitted[1], config(5, 7));
        EXPECT_EQ(bench.submitted[2], config(3, 8));
        EXPECT_EQ(std::ranges::count(bench.submitted, config(5, 7)), 1);
        EXPECT_EQ(led.tried, 30u);
    }
}

TEST_F(TuneWithAPrior, WhatIsKnownIsNotPredicted) {
    ScriptedBench bench{answer};
    bench.prediction = prediction;
    const Space space = Space::make(instance);
    TuneOptions options{.strategy = "random", .budget = {.trials = 30}, .prior = Prior::model};
    for (std::size_t i = 0; i < space.size(); ++i)
        if (i % 8 != 0) options.known.emplace_back(space.config(i), answer(space.config(i)));
    tune(bench, instance, options);
    EXPECT_EQ(bench.asked_to_predict.size(), space.size() / 8);
    for (const auto& [config, outcome] : options.known)
        EXPECT_EQ(std::ranges::count(bench.asked_to_predict, config), 0);
}

TEST_F(TuneWithAPrior, AnInterruptionEndsThePredictions) {
    ScriptedBench bench{answer};
    bench.prediction = prediction;
    int looks = 0;
    const Tuning ended = tune(bench, instance, {.strategy = "random", .prior = Prior::model},
                              {.stop_requested = [&] { return ++looks > 5; }});
    EXPECT_TRUE(ended.interrupted);
    EXPECT_LT(bench.asked_to_predict.size(), 8u);
}

// Goal: a search ends when its strategy expects nothing of more trials, says why, and not where effort is full.
// Method: a smooth cost over 1,600 configs, whose best one a model finds within a few dozen trials.
TEST(Stopping, EndsWhenNoTrialIsExpectedToPay) {
    const Op op = made_up_op({{"A", 40}, {"B", 40}});
    const Instance instance = Instance::make(op, {}, made_up_limits());
    const auto smooth = [](const Config& config) {
        const double a = number(config, "A") - 25, b = number(config, "B") - 12;
        return timed(100 + a * a + b * b);
    };
    ScriptedBench normal{smooth}, full{smooth};
    const Tuning stopped = tune(normal, instance, {.budget = {.trials = 600}});
    EXPECT_LT(stopped.tried, 400u);
    EXPECT_NE(stopped.stopped.find("none was expected to gain 0.01 %"), std::string::npos) << stopped.stopped;
    ASSERT_TRUE(stopped.best.has_value());
    EXPECT_EQ(stopped.best->time_us, 100);
    const Tuning whole = tune(full, instance, {.budget = {.trials = 400}, .effort = Effort::full});
    EXPECT_EQ(whole.tried, 400u);
    EXPECT_EQ(whole.stopped, "");
}

}  // namespace
}  // namespace autotune
