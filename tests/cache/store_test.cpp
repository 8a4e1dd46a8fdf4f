// Goal: what a search stores is what later ones and the dispatcher find, and only that.
// Method: made-up searches of a made-up op; nothing here knows CUDA.
#include "cache/store/store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "autotune/error.h"
#include "cache/store/database.h"
#include "tests/cache/samples.h"
#include "tuner/model/hashing.h"
#include "tuner/model/problem_key.h"

namespace autotune {
namespace {

using namespace samples;

// SQLite takes such a name for a database in memory or for a URI.
TEST(Store, ANameThatMeansSomethingToSqliteIsThatOfAFile) {
    const Folder folder;
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());
    for (const char* name :
         {":memory:", "memory:", "file:x.db", "file:x.db?mode=memory", "it's \"so\" %41#?.db", "new\nline \xc3\xbc"}) {
        EXPECT_EQ(Store::open({.path = name}).put(std::vector{record(1, 50.0)}), 1u) << name;
        EXPECT_TRUE(std::filesystem::is_regular_file(name)) << name;
        EXPECT_EQ(Store::open({.path = name, .mode = Store::Mode::read}).records({}, today()).size(), 1u) << name;
    }
    std::filesystem::current_path(before);
}

TEST(Store, KeepsTheWinnerWithItsProvenance) {
    Store store = Store::in_memory();
    const RunSummary summary = search(store, start(), {{config(256, 4), 50.0}, {config(128, 4), 60.0}});
    EXPECT_EQ(summary.records, 1u);
    const std::vector<Record> records = store.records({.op = "scale"}, today());
    ASSERT_EQ(records.size(), 1u);
    const Record& record = records.front();
    EXPECT_EQ(record.config, config(256, 4));
    EXPECT_DOUBLE_EQ(record.time_us, 50.0);
    EXPECT_DOUBLE_EQ(record.default_us.value(), 100.0);
    EXPECT_EQ(record.device.name, "NVIDIA H200");
    EXPECT_EQ(record.device.limits, device().limits);
    EXPECT_EQ(record.environment, environment());
    EXPECT_EQ(record.problem.text(), "n=1024 dtype=f32");
    EXPECT_EQ(record.problem.key, problem().key);
    EXPECT_EQ(record.run.strategy, "local");
    EXPECT_EQ(record.run.reference, "CPU, fp64");
    EXPECT_EQ(record.run.host_hash.size(), 64u);
    EXPECT_TRUE(record.fresh()) << record.stale;
}

TEST(Store, RanksWhatComesWithinThreePercentAndAtMostEight) {
    Store store = Store::in_memory();
    std::vector<std::pair<Config, double>> times;
    for (int i = 0; i < 12; ++i) times.emplace_back(config(32 * (i + 1)), 100.0 + 0.2 * i);
    times.emplace_back(config(1024), 103.5);
    EXPECT_EQ(search(store, start(), times).records, 8u);

    Store other = Store::in_memory();
    EXPECT_EQ(search(other, start(), {{config(64), 100.0}, {config(128), 102.9}, {config(256), 103.1}}).records, 2u);
}

TEST(Store, TaintedFinalistsNeverBecomeRecords) {
    Store store = Store::in_memory();
    const RunId run = store.begin_run(start());
    Finalist tainted = finalist(config(256), 10.0);
    tainted.tainted = true;
    store.finish_run(run, {.finalists = {tainted, finalist(config(128), 50.0)}, .evaluated = 9, .space_size = 64});
    const auto records = store.records({}, today());
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records.front().config, config(128));
}

TEST(Store, TheDefaultAloneIsNeverStoredAsIfTuned) {
    Store store = Store::in_memory();
    const RunId run = store.begin_run(start());
    store.finish_run(run, {.finalists = {finalist(config(256), 50.0)}, .evaluated = 1, .space_size = 64});
    EXPECT_TRUE(store.records({}, today()).empty());
}

TEST(Store, AnInterruptedSearchKeepsItsBestTrials) {
    Store store = Store::in_memory();
    const RunId run = store.begin_run(start());
    store.record_trial(run, config(64), timed(80.0));
    store.record_trial(run, config(128), failed(Ending::wrong_result));
    store.record_trial(run, config(256), timed(40.0));
    const RunSummary summary = store.finish_run(run, {.evaluated = 3, .space_size = 64});
    EXPECT_EQ(summary.records, 1u);
    EXPECT_EQ(summary.negatives, 1u);
    EXPECT_EQ(store.records({}, today()).front().config, config(256));
    EXPECT_EQ(store.negatives("scale", "h200").front().ending, Ending::wrong_result);
}

TEST(Store, WhatTheMachineDidToATrialIsNoConfigsFailure) {
    Store store = Store::in_memory();
    const RunId run = store.begin_run(start());
    Outcome killed = failed(Ending::compile_failed);
    killed.tainted = true;
    store.record_trial(run, config(256), killed);
    store.record_trial(run, config(512), failed(Ending::compile_failed));
    EXPECT_EQ(store.finish_run(run, {.evaluated = 2, .space_size = 64}).negatives, 1u);
    EXPECT_EQ(store.negatives("scale", "h200").front().config, config(512));
    const auto known = store.known_outcomes(start());
    ASSERT_EQ(known.size(), 1u) << "a search that goes on tries the other one again";
    EXPECT_EQ(known.front().first, config(512));
}

TEST(Store, AConfigThatIsTimedAfterAllIsRefusedNoLonger) {
    Store store = Store::in_memory();
    const RunId first = store.begin_run(start());
    store.record_trial(first, config(256), failed(Ending::compile_failed));
    store.record_trial(first, config(512), failed(Ending::wrong_result));
    store.finish_run(first, {.evaluated = 2, .space_size = 64});
    EXPECT_EQ(store.negatives("scale", "h200").size(), 2u);
    RunStart newer = start();
    newer.environment.nvrtc_minor = 1;
    search(store, newer, {{config(256), 40.0}});
    const auto left = store.negatives("scale", "h200");
    ASSERT_EQ(left.size(), 1u) << "a winner that another compiler refused would never be dispatched";
    EXPECT_EQ(left.front().config, config(512));
}

TEST(Store, AFailureOnAProblemThatIsNotStoredIsNoneOnAllProblems) {
    Store store = Store::in_memory();
    search(store, start(1024), {{config(256), 50.0}});
    Negative negative{.device_fp = "h200",
                      .source = templates().front(),
                      .problem_key = problem(77).key,
                      .config = config(256),
                      .ending = Ending::wrong_result};
    store.put_negative(negative, environment());
    EXPECT_TRUE(store.negatives("scale", "h200").empty());
    negative.problem_key = problem(1024).key;
    store.put_negative(negative, environment());
    ASSERT_EQ(store.negatives("scale", "h200").size(), 1u);
    EXPECT_EQ(store.negatives("scale", "h200").front().problem_key, problem(1024).key);
}

TEST(Store, ATextFieldMayHoldAnyBytes) {
    Store store = Store::in_memory();
    RunStart odd = start();
    const std::string mask = "\xff\xfe causal";
    odd.problem.fields.emplace_back("mask", mask);
    odd.problem.key = CanonicalBytes{}
                          .add(problem_key_version)
                          .add("scale")
                          .add(std::uint64_t{3})
                          .add("dtype")
                          .add_value(std::string{"f32"})
                          .add("mask")
                          .add_value(mask)
                          .add("n")
                          .add_value(std::int64_t{1024})
                          .bytes();
    EXPECT_EQ(search(store, odd, {{config(256), 50.0}}).records, 1u);
    EXPECT_EQ(store.records({}, today()).front().problem.key, odd.problem.key);
    EXPECT_EQ(store.records({}, today()).front().problem.fields, odd.problem.fields);
}

TEST(Store, BytesThatAreNoKeyAreKeptAsTheyAre) {
    Store store = Store::in_memory();
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{40}, std::size_t{100}}) {
        RunStart odd = start();
        odd.problem.key.resize(size, std::byte{0xff});
        EXPECT_EQ(search(store, odd, {{config(256), 50.0}}).records, 1u) << size;
        if (size > 0) {
            EXPECT_EQ(store.records({.op = "scale", .problem_key = odd.problem.key}, today()).size(), 1u) << size;
        }
    }
    EXPECT_EQ(store.records({}, today()).size(), 4u);
}

TEST(Store, AGpuOfHereIsDescribedAsItIsHereWhateverWasTakenInOfIt) {
    Store store = Store::in_memory();
    Record taken = record(1024, 40.0);
    taken.device.name = "another name";
    taken.device.limits.max_threads = 1;
    taken.device.limits.memory_bytes = 1;
    store.put({&taken, 1});
    search(store, start(2048), {{config(256), 50.0}});
    const std::vector<DeviceIdentity> devices = store.devices();
    ASSERT_EQ(devices.size(), 1u);
    EXPECT_EQ(devices[0].name, device().name);
    EXPECT_EQ(devices[0].limits.max_threads, device().limits.max_threads);
    EXPECT_EQ(devices[0].limits.memory_bytes, device().limits.memory_bytes);
}

// Goal: what fails in ever new searches fills no disk.
// Method: more failures than are kept, of an earlier search and of an application; then one more search.
TEST(Store, OfFailuresTheOldestGo) {
    Store store = Store::in_memory();
    const RunId first = store.begin_run(start());
    store.record_trial(first, config(1), failed(Ending::launch_failed));
    store.record_trial(first, config(256), timed(50));
    store.finish_run(first, {.evaluated = 2, .space_size = 64});
    store.put_negative({.device_fp = device().fp,
                        .source = templates().front(),
                        .problem_key = problem(1024).key,
                        .config = config(2),
                        .ending = Ending::launch_failed,
                        .environment = environment()},
                       environment());
    store.transact([&](Database& db) {
        db.query(
              "INSERT INTO negative (device, template, config, form, numbers, env, outcome, run) WITH RECURSIVE c(i) "
              "AS "
              "(SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < ?1) SELECT n.device, n.template, n.config, "
              "1000 + i, n.numbers, n.env, n.outcome, n.run + 1 FROM c, negative n WHERE n.run IS NOT NULL")
            .bind(most_negatives)
            .run();
    });
    EXPECT_EQ(store.row_counts().at("negative"), most_negatives + 2);
    store.begin_run(start());  // whose those are
    const RunId last = store.begin_run(start());
    store.record_trial(last, config(3), failed(Ending::launch_failed));
    store.finish_run(last, {.evaluated = 1, .space_size = 64});
    EXPECT_EQ(store.row_counts().at("negative"), most_negatives);
    const auto kept = [&](const Config& one) {
        const auto all = store.negatives("scale", device().fp);
        return std::ranges::any_of(all, [&](const Negative& n) { return n.config == one; });
    };
    EXPECT_TRUE(kept(config(3))) << "of the last search";
    EXPECT_TRUE(kept(config(2))) << "what an application met";
}

/// As many refusals as are kept, each of a config of its own, that applications met.
void fill_with_refusals(Store& store) {
    const Negative first{.device_fp = device().fp,
                         .source = templates().front(),
                         .problem_key = problem(1024).key,
                         .config = config(1),
                         .ending = Ending::launch_failed,
                         .environment = environment()};
    search(store, start(), {{config(256), 50.0}});
    for (const std::int64_t threads : {2, 3}) {  // known, and of small ids
        Negative early = first;
        early.config = config(threads);
        store.put_negative(early, environment());
        store.strike_negative(early);
    }
    store.put_negative(first, environment());
    store.transact([&](Database& db) {
        db.query(
              "INSERT INTO negative (device, template, config, form, numbers, env, outcome, run) WITH RECURSIVE c(i) "
              "AS "
              "(SELECT 2 UNION ALL SELECT i + 1 FROM c WHERE i < ?1) SELECT n.device, n.template, 1000 + i, n.form, "
              "n.numbers, n.env, n.outcome, NULL FROM c, negative n")
            .bind(most_negatives)
            .run();
    });
    ASSERT_EQ(store.row_counts().at("negative"), most_negatives);
}

bool refuses(const Store& store, const Config& config) {
    return std::ranges::any_of(store.negatives("scale", device().fp),
                               [&](const Negative& n) { return n.config == config; });
}

TEST(Store, WhatAnApplicationHasJustMetIsKeptThoughItsConfigIsOldAndAllOthersHaveNoAgeEither) {
    Store store = Store::in_memory();
    fill_with_refusals(store);
    for (const std::int64_t threads : {2, 3}) {
        store.put_negative({.device_fp = device().fp,
                            .source = templates().front(),
                            .problem_key = problem(1024).key,
                            .config = config(threads),
                            .ending = Ending::launch_failed,
                            .environment = environment()},
                           environment());
        EXPECT_TRUE(refuses(store, config(threads))) << threads;
        EXPECT_EQ(store.row_counts().at("negative"), most_negatives);
    }
}

TEST(Store, WhatASearchHasJustMetIsKeptWhereApplicationsMetAsMuchAsIsKept) {
    Store store = Store::in_memory();
    fill_with_refusals(store);
    const RunId run = store.begin_run(start());
    store.record_trial(run, config(3), failed(Ending::launch_failed));
    store.finish_run(run, {.evaluated = 1, .space_size = 64});
    EXPECT_TRUE(refuses(store, config(3)));
    EXPECT_EQ(store.row_counts().at("negative"), most_negatives);
}

TEST(Store, ABetterSetOfRecordsStays) {
    Store store = Store::in_memory();
    search(store, start(), {{config(256), 50.0}, {config(128), 50.5}});
    const RunSummary slower = search(store, start(), {{config(64), 70.0}});
    EXPECT_TRUE(slower.kept_better);
    EXPECT_EQ(slower.records, 0u);
    const RunSummary faster = search(store, start(), {{config(512), 30.0}});
    EXPECT_FALSE(faster.kept_better);
    const auto records = store.records({}, today());
    ASSERT_EQ(records.size(), 1u) << "ranks of the slower search went with it";
    EXPECT_EQ(records.front().config, config(512));
}

TEST(Store, AClockThatWasSetBackLosesNothing) {
    std::int64_t clock = 2'000'000'000;
    Store store = Store::open({.mode = Store::Mode::memory, .now = [&clock] { return clock; }});
    search(store, start(), {{config(256), 50.0}});
    clock = 1'000'000'000;
    EXPECT_FALSE(search(store, start(), {{config(512), 30.0}}).kept_better);
    EXPECT_EQ(store.records({}, today()).front().config, config(512));
    const RunId run = store.begin_run(start(2048));
    clock -= 1000;
    store.finish_run(run, {.finalists = {finalist(config(64), 9.0)}, .evaluated = 5, .space_size = 64});
    for (const StoredRun& stored : store.runs()) EXPECT_GE(stored.info.ended, stored.info.started);
    EXPECT_TRUE(store.check().empty());
}

// Goal: what was stored while the clock was in the year 2100 neither stays for ever nor hides what is better.
TEST(Store, AClockThatWasFarAheadHidesNothingBetter) {
    std::int64_t clock = 4'102'444'800;
    Store store = Store::open({.mode = Store::Mode::memory, .now = [&clock] { return clock; }});
    search(store, start(), {{config(256), 50.0}});
    EXPECT_EQ(store.records({}, today()).front().tuned_at, clock);
    clock = 1'764'000'000;
    EXPECT_FALSE(search(store, start(), {{config(512), 30.0}}).kept_better);
    const auto records = store.records({}, today());
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records.front().config, config(512));
    EXPECT_EQ(records.front().tuned_at, clock);
    EXPECT_FALSE(store.known_outcomes(start()).empty());
    EXPECT_TRUE(store.check().empty());
}

TEST(Store, ATrialKeepsWhatTheEmulatorCounted) {
    Store store = Store::in_memory();
    const RunId run = store.begin_run(start());
    Outcome outcome = timed(20.0);
    outcome.predicted = true;
    emulator::CountedLaunch launch{.entry = "scale", .grid = {7}, .block = {128}, .blocks = 7};
    launch.interior.blocks = 3;
    launch.interior.flops = std::uint64_t{1} << 60;
    launch.edge.blocks = 1;
    launch.edge.classes[static_cast<std::size_t>(emulator::OpClass::mma)] = {5, 160};
    outcome.counters = {launch, launch};
    store.record_trial(run, config(256), outcome);
    store.record_trial(run, config(64), timed(30.0));
    const std::vector<StoredTrial> trials = store.trials(run);
    ASSERT_EQ(trials.size(), 2u);
    ASSERT_EQ(trials[0].outcome.counters.size(), 2u);
    EXPECT_EQ(trials[0].outcome.counters[1].interior, launch.interior);
    EXPECT_EQ(trials[0].outcome.counters[1].edge, launch.edge);
    EXPECT_EQ(trials[0].outcome.counters[1].grid, launch.grid);
    EXPECT_TRUE(trials[1].outcome.counters.empty());
}

TEST(Store, PredictionsAreKeptApartFromMeasurements) {
    Store store = Store::in_memory();
    RunStart emulated = start();
    emulated.device.emulated = true;
    emulated.environment.emulator = 1;
    const RunId run = store.begin_run(emulated);
    store.record_trial(run, config(256), timed(20.0));
    const RunSummary summary = store.finish_run(
        run, {.finalists = {finalist(config(256), 20.0)}, .evaluated = 5, .space_size = 64, .model_version = "1"});
    EXPECT_EQ(summary.predictions, 1u);
    EXPECT_TRUE(store.records({}, today()).empty());
    const auto predicted = store.records({.op = "scale", .predicted = true}, today());
    ASSERT_EQ(predicted.size(), 1u);
    EXPECT_TRUE(predicted.front().predicted);
    EXPECT_TRUE(store.known_outcomes(start()).empty()) << "a prediction was taken for a measured time";
    EXPECT_EQ(store.known_outcomes(emulated).size(), 1u);
}

TEST(Store, TheBestPredictionIsTheOneOfTheLeastTimeAndOfEqualOnesTheFirst) {
    for (const int best : {64, 128, 256, 512})
        for (const double others_us : {20.0, 20.01}) {
            Store store = Store::in_memory();
            RunStart emulated = start();
            emulated.device.emulated = true;
            emulated.environment.emulator = 1;
            std::vector<Finalist> finalists{finalist(config(best), 20.0)};
            for (const int other : {64, 128, 256, 512})
                if (other != best) finalists.push_back(finalist(config(other), others_us));
            store.finish_run(
                store.begin_run(emulated),
                {.finalists = std::move(finalists), .evaluated = 5, .space_size = 64, .model_version = "1"});
            const auto winners = store.records({.op = "scale", .winners_only = true, .predicted = true}, today());
            ASSERT_EQ(winners.size(), 1u);
            EXPECT_EQ(winners.front().config, config(best)) << others_us;
        }
}

TEST(Store, RanksOfOnePredictionBelongTogether) {
    Store store = Store::in_memory();
    RunStart emulated = start();
    emulated.device.emulated = true;
    emulated.environment.emulator = 1;
    const auto predict = [&](std::vector<Finalist> finalists) {
        return store.finish_run(
            store.begin_run(emulated),
            {.finalists = std::move(finalists), .evaluated = 5, .space_size = 64, .model_version = "1"});
    };
    predict({finalist(config(256), 20.0), finalist(config(128), 20.0), finalist(config(512), 20.1)});
    EXPECT_EQ(predict({finalist(config(64), 20.0), finalist(config(32), 20.2)}).predictions, 2u);
    const auto standing = [&] { return store.records({.op = "scale", .predicted = true}, today()); };
    ASSERT_EQ(standing().size(), 2u);
    EXPECT_TRUE(predict({finalist(config(16), 30.0)}).kept_better);
    EXPECT_EQ(standing().size(), 2u);
    predict({finalist(config(16), 10.0)});
    ASSERT_EQ(standing().size(), 1u);
    EXPECT_EQ(standing().front().config, config(16));
}

TEST(Store, PredictionsOfTwoModelsStandSideBySide) {
    Store store = Store::in_memory();
    const auto predict = [&](int model, double time_us) {
        RunStart emulated = start();
        emulated.device.emulated = true;
        emulated.environment.emulator = model;
        store.finish_run(store.begin_run(emulated), {.finalists = {finalist(config(64 * model), time_us)},
                                                     .evaluated = 5,
                                                     .space_size = 64,
                                                     .model_version = std::to_string(model)});
    };
    predict(1, 20.0);
    predict(2, 30.0);
    EXPECT_EQ(store.records({.op = "scale", .predicted = true}, today()).size(), 2u)
        << "a faster time of the old model hid the new one";
    EXPECT_TRUE(store.records({.op = "other", .predicted = true}, today()).empty());
}

// -- staleness

TEST(Store, SaysWhyARecordIsStale) {
    Store store = Store::in_memory();
    search(store, start(), {{config(256), 50.0}});
    const auto reason = [&store](const Today& now) { return store.records({}, now).front().stale; };
    EXPECT_EQ(reason(today()), "");
    Today newer = today();
    newer.nvrtc_minor = 1;
    EXPECT_EQ(reason(newer), "measured with NVRTC 13.0");
    Today no_compiler = today();
    no_compiler.nvrtc_major = no_compiler.nvrtc_minor = 0;
    EXPECT_EQ(reason(no_compiler), "");
    Today edited = today();
    edited.templates[0].source_hash = "a changed byte";
    EXPECT_EQ(reason(edited), "the source of 'vector' has changed");
    Today widened = today();
    widened.templates[0].space_hash = "more values";
    EXPECT_EQ(reason(widened), "the space of 'vector' has changed");
    Today gone = today();
    gone.templates.erase(gone.templates.begin());
    EXPECT_EQ(reason(gone), "variant 'vector' is gone");
}

TEST(Store, RowsOfSeveralToolchainsLiveSideBySide) {
    Store store = Store::in_memory();
    search(store, start(), {{config(256), 50.0}});
    RunStart newer = start();
    newer.environment.nvrtc_minor = 1;
    search(store, newer, {{config(512), 60.0}});
    Today now = today();
    now.nvrtc_minor = 1;
    const auto records = store.records({}, now);
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records.front().config, config(512)) << "fresh goes before stale, though slower";
    EXPECT_EQ(store.records({.winners_only = true}, now).size(), 1u);
    EXPECT_EQ(store.compilers(), (std::vector<std::pair<int, int>>{{13, 1}, {13, 0}}));
}

// -- resuming

TEST(Store, AResumedSearchKnowsWhatWasTried) {
    Store store = Store::in_memory();
    const RunId run = store.begin_run(start());
    store.record_trial(run, config(64), timed(80.0));
    store.record_trial(run, config(128), failed(Ending::compile_failed));
    store.record_trial(run, config(256), failed(Ending::out_of_memory));
    const auto known = store.known_outcomes(start());
    ASSERT_EQ(known.size(), 2u) << "want of memory says nothing about the config";
    EXPECT_EQ(known[0].first, config(64));
    EXPECT_EQ(known[0].second.samples_us, timed(80.0).samples_us);
    EXPECT_EQ(known[1].second.ending, Ending::compile_failed);
}

TEST(Store, FailuresAreForgottenWhenSourceOrSpaceChangeAndTimesWhenTheSourceDoes) {
    Store store = Store::in_memory();
    const RunId run = store.begin_run(start());
    store.record_trial(run, config(64), timed(80.0));
    store.record_trial(run, config(128), failed(Ending::wrong_result));
    RunStart edited = start();
    edited.templates[0].source_hash = "a changed byte";
    EXPECT_TRUE(store.known_outcomes(edited).empty());
    RunStart widened = start();
    widened.templates[0].space_hash = "more values";
    const auto known = store.known_outcomes(widened);
    ASSERT_EQ(known.size(), 1u) << "adding a value re-times nothing";
    EXPECT_TRUE(known.front().second.ok());
}

TEST(Store, NothingOfAnotherDeviceProblemOrCompilerIsKnown) {
    Store store = Store::in_memory();
    const RunId run = store.begin_run(start());
    store.record_trial(run, config(64), timed(80.0));
    RunStart other = start();
    other.device.fp = "a100";
    EXPECT_TRUE(store.known_outcomes(other).empty());
    EXPECT_TRUE(store.known_outcomes(start(4096)).empty());
    other = start();
    other.environment.nvrtc_minor = 1;
    EXPECT_TRUE(store.known_outcomes(other).empty());
}

TEST(Store, TheLaterOutcomeOfAConfigCounts) {
    Store store = Store::in_memory();
    const RunId first = store.begin_run(start());
    store.record_trial(first, config(64), timed(80.0));
    store.record_trial(first, config(64), timed(81.0));
    EXPECT_EQ(store.trials(first).size(), 1u);
    const RunId second = store.begin_run(start());
    store.record_trial(second, config(64), timed(70.0));
    const auto known = store.known_outcomes(start());
    ASSERT_EQ(known.size(), 1u);
    EXPECT_DOUBLE_EQ(known.front().second.time_us, 70.0);
}

TEST(Store, ShowsARunWithItsTrials) {
    Store store = Store::in_memory();
    const RunId run = store.begin_run(start());
    Outcome wrong = failed(Ending::wrong_result);
    wrong.log = std::string(100'000, 'x');
    store.record_trial(run, config(64), timed(80.0));
    store.record_trial(run, config(128), wrong);
    ASSERT_TRUE(store.run(run));
    EXPECT_FALSE(store.run(run)->finished);
    EXPECT_EQ(store.run(run)->trials, 2u);
    const auto trial = store.trial(run, 2);
    ASSERT_TRUE(trial);
    EXPECT_EQ(trial->outcome.reason, "it failed");
    EXPECT_EQ(trial->outcome.log.size(), 64u * 1024);
    EXPECT_FALSE(store.trial(run, 3));
    store.finish_run(run, {.evaluated = 2, .space_size = 64});
    EXPECT_TRUE(store.run(run)->finished);
    EXPECT_EQ(store.runs("scale").size(), 1u);
    EXPECT_TRUE(store.runs("softmax").empty());
}

// -- asking

TEST(Store, NarrowsByOpDeviceProblemAndAnExpression) {
    Store store = Store::in_memory();
    for (const std::int64_t n : {1000, 2000, 3000}) search(store, start(n), {{config(256), 50.0}});
    RunStart other = start(1000);
    other.device.fp = "a100";
    search(store, other, {{config(512), 90.0}});
    EXPECT_EQ(store.records({}, today()).size(), 4u);
    EXPECT_EQ(store.records({.device_fp = "a100"}, today()).size(), 1u);
    EXPECT_EQ(store.records({.op = "softmax"}, today()).size(), 0u);
    EXPECT_EQ(store.records({.op = "scale", .problem_key = problem(2000).key}, today()).size(), 1u);
    EXPECT_EQ(store.records({.where = Expression::parse("n >= 2000 and dtype == 'f32'")}, today()).size(), 2u);
    EXPECT_EQ(store.records({.where = Expression::parse("rows > 1")}, today()).size(), 0u)
        << "an unknown name matches nothing";
}

TEST(Store, FindsARecordByTheIdItPrinted) {
    Store store = Store::in_memory();
    search(store, start(), {{config(256), 50.0}});
    const std::string printed = store.records({}, today()).front().id.text();
    const auto key = RecordKey::parse(printed);
    ASSERT_TRUE(key) << printed;
    ASSERT_TRUE(store.record(*key, today()));
    EXPECT_EQ(store.record(*key, today())->config, config(256));
    for (const char* wrong : {"", "1", "1-2-3x00-13-0", "1-2-3x00-13.0-0-", "1-2-3x00-13.0-x", "-1-2-3x00-13.0-0",
                              "1-2-3-13.0-0", "1-2-3x0-13.0-0", "1-2-3x0g-13.0-0"})
        EXPECT_FALSE(RecordKey::parse(wrong)) << wrong;
}

// -- merging

TEST(Store, PuttingRecordsInAnyOrderAndTwiceEndsInTheSameRows) {
    std::vector<Record> records;
    for (int i = 0; i < 6; ++i) {
        Record record = samples::record(1024, 50.0 + (i % 3));
        record.run.uuid = std::string(31, '0') + std::to_string(i);
        record.tuned_at += i % 2;
        record.config = config(32 * (i + 1));
        record.verified = i == 4 ? Verified::verified : Verified::checked;
        records.push_back(record);
    }
    const auto rows_after = [](const std::vector<Record>& input) {
        Store store = Store::in_memory();
        for (const Record& record : input) store.put({&record, 1});
        std::vector<std::uint32_t> checksums;
        for (const Record& record : store.records({}, today())) checksums.push_back(crc_of(record));
        return checksums;
    };
    std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.run.uuid < b.run.uuid; });
    const auto expected = rows_after(records);
    ASSERT_EQ(expected.size(), 1u);
    EXPECT_EQ(expected.front(), crc_of(records[4]));
    do EXPECT_EQ(rows_after(records), expected);
    while (std::next_permutation(records.begin(), records.begin() + 4,
                                 [](const Record& a, const Record& b) { return a.run.uuid < b.run.uuid; }));
    std::vector<Record> twice = records;
    twice.insert(twice.end(), records.begin(), records.end());
    EXPECT_EQ(rows_after(twice), expected);
}

TEST(Store, PuttingPredictionsInAnyOrderEndsInTheSameRows) {
    std::vector<Record> records;
    for (int i = 0; i < 5; ++i) {
        Record record = samples::record(1024, i == 4 ? 60.0 : 50.0);
        record.predicted = true;
        record.model_version = "1";
        record.run.uuid = std::string(31, '0') + std::to_string(i);
        record.config = config(i == 3 ? 64 : 128);
        record.verified = i == 1 ? Verified::elsewhere : Verified::checked;
        records.push_back(record);
    }
    const auto less = [](const Record& a, const Record& b) { return a.run.uuid < b.run.uuid; };
    std::set<std::string> ends;
    do {
        Store store = Store::in_memory();
        for (const Record& record : records) store.put({&record, 1});
        EXPECT_EQ(store.put({&records[0], 1}),
                  store.records({.predicted = true}, today())[0].run.uuid == records[0].run.uuid ? 1u : 0u);
        for (const Record& record : store.records({.predicted = true}, today()))
            ends.insert(record.config.text() + ' ' + std::string{name_of(record.verified)} + ' ' + record.run.uuid);
    } while (std::next_permutation(records.begin(), records.end(), less));
    EXPECT_EQ(ends.size(), 1u) << *ends.begin() << ", " << *ends.rbegin();
    // Of the smaller config, whichever that is, the checked one of the smallest run.
    const bool first = config(128).hash() < config(64).hash();
    EXPECT_EQ(*ends.begin(), (first ? config(128) : config(64)).text() + " checked " + records[first ? 0 : 3].run.uuid);
}

TEST(Store, AForkedChildMayNotUseItsParentsDatabase) {
    Store store = Store::in_memory();
    const pid_t child = ::fork();
    if (child == 0) {
        try {
            store.begin_run(start());
        } catch (const Error& error) {
            ::_exit(error.kind() == Error::Kind::internal ? 7 : 1);
        }
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace autotune
