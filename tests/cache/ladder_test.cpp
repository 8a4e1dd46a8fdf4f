// Goal: what was tuned elsewhere helps where nothing was tuned, in the order of the rungs, and never where it must not.
// Method: databases in memory, filled on GPUs that are only numbers; the ladder is asked directly.
#include "cache/dispatch/ladder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "autotune/error.h"
#include "tests/cache/dispatch_samples.h"
#include "tuner/model/key_reader.h"

namespace autotune {
namespace {

using namespace samples;

/// GPUs as numbers: the same one, one with a few SMs fewer, one of less, and one of another generation.
DeviceIdentity gpu(const std::string& fp, int sm_count, int cc = 90, int max_shared = 232448) {
    DeviceIdentity device = samples::device(fp);
    device.name = "GPU " + fp;
    device.limits.sm_count = sm_count;
    device.limits.cc = cc;
    device.limits.max_shared = max_shared;
    return device;
}

class Ladder : public testing::Test {
protected:
    DeviceIdentity here = gpu("here", 132), sibling = gpu("sibling", 128), other_sibling = gpu("other", 120),
                   family = gpu("family", 66, 90, 166000), older = gpu("older", 108, 80),
                   larger = gpu("larger", 132, 90, 300000);
    Op op = scale_op();
    Store store = Store::in_memory();
    LadderRules rules;

    Instance problem(std::int64_t n, const std::string& dtype = "f32", int align = 16) const {
        return Instance::make(op, {{"n", n}, {"dtype", dtype}}, here.limits, {.align = {{"x", align}, {"y", align}}});
    }
    RunStart start(const DeviceIdentity& device, const Instance& instance) const {
        return {.device = device,
                .environment = environment(),
                .templates = templates_of(op),
                .problem = problem_of(instance),
                .info = {.strategy = "local"}};
    }
    struct Search {
        double default_us = 100;
        bool stale = false;
        Verified verified = Verified::verified;
    };
    void tuned(Store& into, const DeviceIdentity& device, const Instance& instance,
               const std::vector<std::pair<Config, double>>& times, const Search& how) const {
        RunStart about = start(device, instance);
        if (how.stale)
            for (TemplateIdentity& source : about.templates) source.source_hash = "as it was";
        const RunId run = into.begin_run(about);
        RunEnd end{.default_us = how.default_us, .evaluated = 20, .space_size = 64};
        for (const auto& [config, time_us] : times) {
            end.finalists.push_back(finalist(config, time_us));
            end.finalists.back().verified = how.verified;
        }
        into.finish_run(run, end);
    }
    void tuned(const DeviceIdentity& device, std::int64_t n, const std::vector<std::pair<Config, double>>& times,
               const Search& how) {
        tuned(store, device, problem(n), times, how);
    }
    void tuned(const DeviceIdentity& device, std::int64_t n, const std::vector<std::pair<Config, double>>& times) {
        tuned(device, n, times, {});
    }

    OpKnowledge known() {
        const LayeredStore stores[] = {{&store, Layer::user}};
        return read_knowledge(stores, op, here, rules);
    }
    LadderStep answer(const Instance& instance) {
        for (LadderStep& step : ladder(instance, known()))
            if (step.refused.empty()) return step;
        return {.rung = Rung::none};
    }
    LadderStep answer(std::int64_t n) { return answer(problem(n)); }
    void fails(const DeviceIdentity& device, const Config& config) {
        store.put_negative({.device_fp = device.fp,
                            .source = template_of(op, *op.variant("vector")),
                            .config = config,
                            .ending = Ending::wrong_result},
                           environment());
    }
};

// Each rung answers exactly where no better one does: all of them lend a config of their own, and go one by one.
TEST_F(Ladder, EachRungAnswersWhereNoBetterOneCan) {
    struct Row {
        Rung rung;
        Config config;
        std::function<void(const Config&)> tune;
    };
    const Row rows[] = {
        {Rung::exact, vector_config(1, 64),
         [&](const Config& c) {
             tuned(here, 4096, {{c, 40.0}});
         }},
        {Rung::exact_stale, vector_config(1, 128),
         [&](const Config& c) {
             tuned(here, 4096, {{c, 10.0}}, {.stale = true});
         }},
        {Rung::nearest, vector_config(1, 512),
         [&](const Config& c) {
             tuned(here, 2048, {{c, 10.0}});
         }},
        {Rung::sibling, vector_config(2, 64),
         [&](const Config& c) {
             tuned(sibling, 4096, {{c, 10.0}});
         }},
        {Rung::sibling_nearest, vector_config(2, 128),
         [&](const Config& c) {
             tuned(sibling, 8192, {{c, 10.0}});
         }},
        {Rung::robust, vector_config(2, 256),
         [&](const Config& c) {
             for (const int n : {1 << 20, 1 << 24}) tuned(here, n, {{c, 10.0}}, {.default_us = 1000});
         }},
        {Rung::family, vector_config(2, 512),
         [&](const Config& c) {
             tuned(family, 4096, {{c, 10.0}});
         }},
        {Rung::predicted, vector_config(8, 64),
         [&](const Config& c) {
             RunStart about = start(gpu("twin", 132), problem(4096));
             about.device.emulated = true;
             about.environment.emulator = 1;
             const RunId run = store.begin_run(about);
             store.finish_run(
                 run, {.finalists = {finalist(c, 1.0)}, .evaluated = 20, .space_size = 64, .model_version = "1"});
         }},
    };
    for (const Row& row : rows) row.tune(row.config);
    const std::vector<LadderStep> steps = ladder(problem(4096), known());
    EXPECT_TRUE(std::ranges::is_sorted(steps, {}, &LadderStep::rung)) << "a rung stands above a better one";
    std::set<std::string> failed;
    for (const Row& row : rows) {
        const auto first = std::ranges::find_if(
            steps, [&](const LadderStep& step) { return step.refused.empty() && !failed.contains(step.name); });
        ASSERT_NE(first, steps.end());
        EXPECT_EQ(name_of(first->rung), name_of(row.rung));
        EXPECT_EQ(first->config, row.config) << first->why;
        failed.insert(first->name);
    }
    const auto last = std::ranges::find_if(
        steps, [&](const LadderStep& step) { return step.refused.empty() && !failed.contains(step.name); });
    ASSERT_NE(last, steps.end());
    EXPECT_EQ(last->rung, Rung::default_config);
}

TEST_F(Ladder, AFreshRowComesBeforeAStaleOneThatIsMoreVerified) {
    tuned(here, 4096, {{vector_config(1, 64), 10.0}}, {.stale = true, .verified = Verified::verified});
    tuned(here, 4096, {{vector_config(2, 64), 40.0}}, {.verified = Verified::checked});
    EXPECT_EQ(answer(4096).config, vector_config(2, 64));
    EXPECT_EQ(answer(4096).rung, Rung::exact);
}

// -- on the same GPU

TEST_F(Ladder, TheNearestProblemLendsAndSaysHowFarItIs) {
    tuned(here, 1024, {{vector_config(1, 64), 40.0}});
    tuned(here, 3072, {{vector_config(2, 64), 40.0}});
    tuned(here, 16384, {{vector_config(4, 64), 40.0}});
    const LadderStep step = answer(4096);
    EXPECT_EQ(step.rung, Rung::nearest);
    EXPECT_EQ(step.config, vector_config(2, 64));
    EXPECT_NEAR(step.distance, 0.415, 0.002);
    EXPECT_EQ(step.problem, "n=3072 dtype=f32");
    EXPECT_EQ(step.why, "tuned for n=3072 dtype=f32, 0.42 octaves away");
    EXPECT_FALSE(step.stale);
    EXPECT_TRUE(step.verified);
}

TEST_F(Ladder, OfEqualNeighboursTheLargerLends) {
    tuned(here, 2048, {{vector_config(1, 64), 40.0}});
    tuned(here, 8192, {{vector_config(2, 64), 40.0}});
    EXPECT_EQ(answer(4096).config, vector_config(2, 64));
}

TEST_F(Ladder, AFreshNeighbourLendsBeforeANearerStaleOne) {
    tuned(here, 4000, {{vector_config(1, 64), 10.0}}, {.stale = true});
    tuned(here, 8192, {{vector_config(2, 64), 40.0}});
    EXPECT_EQ(answer(4096).config, vector_config(2, 64));
    store = Store::in_memory();
    tuned(here, 4000, {{vector_config(1, 64), 10.0}}, {.stale = true});
    EXPECT_EQ(answer(4096).rung, Rung::nearest);
    EXPECT_TRUE(answer(4096).stale);
    EXPECT_NE(answer(4096).why.find("the source of 'vector' has changed"), std::string::npos);
}

TEST_F(Ladder, MoreThanFourTimesAwayIsNotNear) {
    tuned(here, 1024, {{vector_config(1, 64), 40.0}});
    EXPECT_EQ(answer(4096).rung, Rung::nearest);
    EXPECT_EQ(answer(4100).rung, Rung::robust);
    EXPECT_EQ(answer(256).rung, Rung::nearest);
    EXPECT_EQ(answer(252).rung, Rung::robust);
}

TEST_F(Ladder, ANeighbourThatWonNothingLendsNothing) {
    tuned(here, 2048, {{vector_config(1, 64), 98.0}});  // the default took 100
    EXPECT_EQ(answer(4096).rung, Rung::default_config);
    tuned(here, 8192, {{vector_config(2, 64), 90.0}});
    EXPECT_EQ(answer(4096).config, vector_config(2, 64));
}

TEST_F(Ladder, OtherFieldsHaveToBeEqualAndAlignmentNoBetter) {
    tuned(store, here, problem(2048, "f16"), {{vector_config(1, 64), 40.0}}, {});
    EXPECT_NE(answer(4096).rung, Rung::nearest) << "of another dtype";
    tuned(store, here, problem(4096, "f32", 4), {{vector_config(1, 128), 40.0}}, {});
    const LadderStep step = answer(4096);
    EXPECT_EQ(step.rung, Rung::nearest) << "loads that need less alignment run here too";
    EXPECT_EQ(step.config, vector_config(1, 128));
    EXPECT_EQ(step.distance, 0);
    store = Store::in_memory();
    tuned(here, 4096, {{vector_config(1, 64), 40.0}});
    EXPECT_NE(answer(problem(4096, "f32", 4)).rung, Rung::nearest) << "tuned on better aligned memory";
}

// A config of another shape is looked at with this shape's numbers before it runs.
TEST_F(Ladder, ABorrowedConfigThatIsNotValidHereIsPassedOver) {
    tuned(here, 1024, {{vector_config(8, 128), 40.0}, {vector_config(2, 64), 40.5}});
    const LadderStep step = answer(1022);  // 8 does not divide it
    EXPECT_EQ(step.rung, Rung::nearest);
    EXPECT_EQ(step.config, vector_config(2, 64));
    const LadderStep odd = answer(1021);
    EXPECT_EQ(odd.rung, Rung::default_config);
    const auto steps = ladder(problem(1021), known());
    EXPECT_NE(steps.front().refused.find("n splits into whole vectors"), std::string::npos) << steps.front().refused;
}

TEST_F(Ladder, WhatFailedHereIsNotBorrowed) {
    tuned(here, 2048, {{vector_config(1, 64), 40.0}});
    fails(here, vector_config(1, 64));
    EXPECT_EQ(answer(4096).rung, Rung::default_config);
}

TEST_F(Ladder, TheRobustConfigLosesLeastInItsWorstCase) {
    // VEC=1 is best or nearly so everywhere; each of the others wins once and is not even stored elsewhere.
    for (int i = 0; i < 3; ++i)
        tuned(here, std::int64_t{1} << (20 + 3 * i), {{vector_config(2, 64 << i), 40.0}, {vector_config(1, 512), 40.8}},
              {.default_us = 60});
    const LadderStep step = answer(1024);
    EXPECT_EQ(step.rung, Rung::robust);
    EXPECT_EQ(step.config, vector_config(1, 512));
    EXPECT_EQ(step.why, "loses at most 2 % on the 3 problems tuned on such GPUs");
}

TEST_F(Ladder, ASingleWinOrAWorstCaseNoBetterThanTheDefaultsIsNotRobust) {
    tuned(here, 1 << 20, {{vector_config(2, 64), 10.0}});
    EXPECT_EQ(answer(1024).rung, Rung::robust) << "it is all that was tuned";
    tuned(here, 1 << 24, {{vector_config(4, 64), 10.0}});
    EXPECT_EQ(answer(1024).rung, Rung::default_config) << "each won once";
    tuned(here, 1 << 28, {{vector_config(4, 64), 10.0}});
    EXPECT_EQ(answer(1024).rung, Rung::default_config) << "two wins, and as slow as the default on the first problem";
    tuned(here, 1 << 20, {{vector_config(2, 64), 8.0}, {vector_config(4, 64), 8.1}});
    EXPECT_EQ(answer(1024).rung, Rung::robust);
    EXPECT_EQ(answer(1024).config, vector_config(4, 64));
}

TEST_F(Ladder, ARobustConfigIsOfTheSameDtypeWhereThereIsOne) {
    tuned(store, here, problem(1 << 20, "f16"), {{vector_config(1, 64), 1.0}}, {});
    EXPECT_EQ(answer(1024).config, vector_config(1, 64)) << "better than nothing";
    tuned(here, 1 << 20, {{vector_config(2, 64), 40.0}});
    EXPECT_EQ(answer(1024).config, vector_config(2, 64));
}

// -- on other GPUs

TEST_F(Ladder, ASiblingLendsAndTheOneMostAlikeFirst) {
    tuned(other_sibling, 4096, {{vector_config(1, 64), 10.0}});
    EXPECT_EQ(answer(4096).rung, Rung::sibling);
    EXPECT_EQ(answer(4096).why, "tuned for this problem on GPU other, a sibling");
    tuned(sibling, 4096, {{vector_config(2, 64), 20.0}});
    EXPECT_EQ(answer(4096).config, vector_config(2, 64)) << "times of two GPUs were compared";
    EXPECT_EQ(answer(4096).device, "GPU sibling");
}

TEST_F(Ladder, WhatFailedOnASiblingIsNotBorrowedFromIt) {
    tuned(sibling, 4096, {{vector_config(1, 64), 40.0}, {vector_config(2, 64), 40.5}});
    fails(sibling, vector_config(1, 64));
    EXPECT_EQ(answer(4096).config, vector_config(2, 64));
}

TEST_F(Ladder, AFamilyLendsOnlyToLimitsThatAreNoSmaller) {
    tuned(family, 1 << 20, {{vector_config(1, 64), 40.0}});
    EXPECT_EQ(answer(1 << 20).rung, Rung::family);
    EXPECT_EQ(answer(1024).rung, Rung::family) << "its robust config, where the problem is not stored";
    EXPECT_EQ(answer(1024).why, "loses at most 0 % on the one problem tuned on GPUs of the same family");
    store = Store::in_memory();
    tuned(larger, 1 << 20, {{vector_config(1, 64), 40.0}});
    EXPECT_EQ(answer(1 << 20).rung, Rung::default_config);
}

TEST_F(Ladder, NothingIsBorrowedAcrossGenerations) {
    tuned(older, 4096, {{vector_config(1, 64), 10.0}});
    tuned(older, 8192, {{vector_config(1, 64), 10.0}});
    const std::vector<LadderStep> steps = ladder(problem(4096), known());
    EXPECT_EQ(steps.front().rung, Rung::default_config);
    const LayeredStore stores[] = {{&store, Layer::user}};
    const Explanation why = explanation_of(problem(4096), stores, here, rules);
    ASSERT_FALSE(why.closest.empty());
    EXPECT_EQ(why.closest.front().first, "n=4096 dtype=f32");
    EXPECT_EQ(why.closest.front().second, "measured on GPU older: capability 80 vs 90, SM count 108 vs 132");
}

// The same silicon may come under two labels; what is joined counts as one, and only silicon of one capability is.
TEST_F(Ladder, AliasesCountAsOneGpuAndAliasesOfAliasesToo) {
    tuned(older, 4096, {{vector_config(1, 64), 40.0}});
    tuned(larger, 4096, {{vector_config(2, 64), 40.0}});
    EXPECT_EQ(answer(4096).rung, Rung::default_config);
    EXPECT_THROW(store.put_alias(here, older), Error);
    EXPECT_THROW(store.put_alias(here, here), Error);
    const DeviceIdentity between = gpu("between", 132, 90, 250000);
    store.put_alias(between, here);
    store.put_alias(larger, between);
    store.put_alias(between, larger);  // again
    EXPECT_EQ(store.aliases().size(), 2u);
    EXPECT_EQ(answer(4096).rung, Rung::exact);
    EXPECT_EQ(answer(4096).config, vector_config(2, 64));
    EXPECT_EQ(answer(2048).rung, Rung::nearest);
    fails(larger, vector_config(2, 64));
    EXPECT_EQ(answer(4096).rung, Rung::default_config) << "a failure under the other label was forgotten";
    EXPECT_TRUE(store.remove_alias("larger", "between"));
    EXPECT_FALSE(store.remove_alias("larger", "between"));
    EXPECT_EQ(answer(4096).rung, Rung::default_config);
}

TEST_F(Ladder, AnAliasThatAFileMadeUpIsNotBelieved) {
    tuned(older, 4096, {{vector_config(1, 64), 40.0}});
    DeviceIdentity disguised = older;
    disguised.limits.cc = 90;  // as whoever writes the file may claim
    store.put_alias(disguised, here);
    EXPECT_EQ(answer(4096).rung, Rung::default_config);
}

// -- layers

class Layers : public Ladder {
protected:
    Store user = Store::in_memory(), system = Store::in_memory(), embedded = Store::in_memory();
    LadderStep first(std::int64_t n) {
        const LayeredStore stores[] = {{&embedded, Layer::embedded}, {&system, Layer::system}, {&user, Layer::user}};
        for (LadderStep& step : ladder(problem(n), read_knowledge(stores, op, here, rules)))
            if (step.refused.empty()) return step;
        return {};
    }
};

TEST_F(Layers, OfEquallyTrustworthyRowsTheNearerLayerWins) {
    tuned(user, here, problem(4096), {{vector_config(1, 64), 50.0}}, {});
    tuned(system, here, problem(4096), {{vector_config(2, 64), 40.0}}, {});
    EXPECT_EQ(first(4096).config, vector_config(1, 64));
    EXPECT_EQ(first(4096).layer, Layer::user);
}

TEST_F(Layers, AStaleRowOfTheUserHidesNoFreshOneOfTheSystem) {
    tuned(user, here, problem(4096), {{vector_config(1, 64), 10.0}}, {.stale = true});
    tuned(system, here, problem(4096), {{vector_config(2, 64), 40.0}}, {});
    EXPECT_EQ(first(4096).config, vector_config(2, 64));
    EXPECT_EQ(first(4096).layer, Layer::system);
    EXPECT_EQ(first(4096).rung, Rung::exact);
}

TEST_F(Layers, ARowThatWasVerifiedComesBeforeANearerOneThatWasNot) {
    tuned(user, here, problem(4096), {{vector_config(1, 64), 10.0}}, {.verified = Verified::checked});
    tuned(system, here, problem(4096), {{vector_config(2, 64), 40.0}}, {});
    EXPECT_EQ(first(4096).layer, Layer::system);
}

TEST_F(Layers, ANearerLayerDoesNotBeatABetterRung) {
    tuned(user, here, problem(4000), {{vector_config(1, 64), 10.0}}, {});
    tuned(embedded, here, problem(4096), {{vector_config(2, 64), 40.0}}, {});
    EXPECT_EQ(first(4096).rung, Rung::exact);
    EXPECT_EQ(first(4096).layer, Layer::embedded);
    EXPECT_TRUE(first(4096).imported) << "what an application brings along was measured elsewhere";
}

TEST_F(Layers, OnlyLocalRowsWhereOnlyTheyAreWanted) {
    tuned(user, here, problem(4000), {{vector_config(1, 64), 10.0}}, {});
    tuned(embedded, here, problem(4096), {{vector_config(2, 64), 40.0}}, {});
    rules.only_local = true;
    EXPECT_EQ(first(4096).config, vector_config(1, 64));
    EXPECT_EQ(first(4096).rung, Rung::nearest);
    Record record = samples::record(1, 5.0);
    record.device = here;
    record.source = template_of(op, *op.variant("vector"));
    record.problem = problem_of(problem(1 << 20));
    record.config = vector_config(4, 64);
    record.run.origin = "import:1";
    user.put({&record, 1});
    EXPECT_NE(first(1 << 20).config, vector_config(4, 64));
    rules.only_local = false;
    EXPECT_EQ(first(1 << 20).config, vector_config(4, 64));
    EXPECT_TRUE(first(1 << 20).imported);
}

// -- the index of neighbours

// Goal: the index gives what a look at every problem gives.
// Method: made-up keys of three dims, compared with the definition written out.
TEST(Neighbours, AgreesWithALookAtEveryProblem) {
    Op op = scale_op();
    op.fields.clear();
    for (const char* name : {"a", "b", "c"}) {
        Field field;
        field.name = name;
        field.near = true;
        op.fields.push_back(field);
    }
    const auto key_of = [](std::array<std::int64_t, 3> dims) {
        std::vector<std::byte> key;
        const auto number = [&](std::uint64_t value) {
            for (int shift = 0; shift < 64; shift += 8) key.push_back(static_cast<std::byte>(value >> shift));
        };
        const auto word = [&](std::string_view text) {
            number(text.size());
            for (const char c : text) key.push_back(static_cast<std::byte>(c));
        };
        number(1);
        word("scale");
        number(3);
        for (std::size_t i = 0; i < 3; ++i) {
            word(std::string_view{"abc"}.substr(i, 1));
            key.push_back(std::byte{1});
            number(static_cast<std::uint64_t>(dims[i]));
        }
        return key;
    };
    std::mt19937_64 random{11};
    const auto dim = [&] { return std::llround(std::exp2(std::uniform_real_distribution{0.0, 9.0}(random))); };
    std::vector<std::array<std::int64_t, 3>> problems;
    std::vector<Record> records;
    for (std::int64_t i = 0; i < 400; ++i) {
        problems.push_back({dim(), dim(), dim()});
        Record record = samples::record(i, i % 7 ? 50 : 99);
        record.problem.key = key_of(problems.back());
        record.default_us = 100;
        records.push_back(record);
    }
    Store store = Store::in_memory();
    store.put(records);
    Store* const stores[] = {&store};
    const Snapshot snapshot = Snapshot::read(stores, "scale", "h200", today());
    const Neighbours neighbours{op, snapshot, false};
    const KeySplitter splitter{op};
    int answered = 0;
    for (int round = 0; round < 300; ++round) {
        const std::array<std::int64_t, 3> asked{dim(), dim(), dim()};
        double best = 1e9;
        for (std::size_t i = 0; i < problems.size(); ++i) {
            double total = 0, most = 0;
            for (std::size_t d = 0; d < 3; ++d) {
                const double apart =
                    std::abs(std::log2(static_cast<double>(problems[i][d])) - std::log2(static_cast<double>(asked[d])));
                total += apart;
                most = std::max(most, apart);
            }
            if (i % 7 && most < 2.0003 && total < 3.0003) best = std::min(best, total);
        }
        SplitKey split;
        ASSERT_TRUE(splitter.split(key_of(asked), split));
        std::array<Neighbours::Found, 4> found;
        const std::size_t count = neighbours.nearest(split, found);
        ASSERT_EQ(count > 0, best < 1e9);
        if (count == 0) continue;
        ++answered;
        EXPECT_NEAR(static_cast<double>(found[0].distance) / octave, best, 0.001);
        EXPECT_TRUE(std::is_sorted(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count)));
    }
    EXPECT_GT(answered, 100);
}

TEST(KeyReader, ReadsWhatInstancesWriteAndStaysWithinAnyBytes) {
    const Op op = scale_op();
    const Instance instance = Instance::make(op, {{"n", std::int64_t{4096}}}, gpu("here", 132).limits);
    std::vector<std::string> fields;
    KeyReader reader{instance.key()};
    EXPECT_EQ(reader.op(), "scale");
    while (const auto field = reader.next()) fields.push_back(std::string{field->name} + '=' + to_text(field->read()));
    EXPECT_TRUE(reader.whole());
    EXPECT_EQ(fields, (std::vector<std::string>{"dtype=f32", "n=4096", "x.align=16", "x.layout=contiguous",
                                                "y.align=16", "y.layout=contiguous"}));
    EXPECT_EQ(problem_text(op, instance.key()), "n=4096 dtype=f32");
    std::mt19937 random{5};
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::byte> bytes = instance.key();
        if (round % 2) bytes.resize(random() % bytes.size());
        if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        KeyReader hostile{bytes};
        int count = 0;
        while (const auto field = hostile.next()) {
            field->read();
            ASSERT_LT(++count, 1000);
        }
        EXPECT_FALSE(round % 2 && hostile.whole());
    }
}

}  // namespace
}  // namespace autotune
